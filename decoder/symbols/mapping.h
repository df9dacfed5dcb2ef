// Mapping: a piece of a file in a process's memory, as /proc/PID/maps tells it.
//
// Threading: values; functions without state.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

struct ElfSegment;

struct Mapping {
  Address begin;
  Address end;
  std::uint64_t file_offset_bytes = 0;
  bool executable = false;
  std::string path;  // of the file; "[vdso]" and the like are none
  // Where the file can be opened instead, as one that was deleted; empty: at its path.
  std::string readable_at = {};

  bool has_file() const { return !path.empty() && path.front() == '/'; }
  const std::string& file() const { return readable_at.empty() ? path : readable_at; }
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// What /proc/PID/maps says now. Errors: as read_file.
Result<std::string> process_maps(std::int32_t pid);

// The mappings that have a name, in order of their addresses. Lines that are none are left out, as
// are those behind the first kMaxMappings and those that overlap an earlier one.
std::vector<Mapping> parse_maps(std::string_view maps);

// What was mapped in an epoch of the code, in order of addresses.
using MappingsIn = std::function<std::vector<Mapping>(Epoch)>;

// The one of `mappings`, in order, that an address is in; null: none.
const Mapping* mapping_at(std::span<const Mapping> mappings, Address address);

// A file that a process had mapped and has no more.
struct FormerModule {
  std::optional<Epoch> until;  // of the code, from which on other code is there; nothing: none came
  std::vector<Mapping> mappings;

  // The one that an address is of; null: none.
  const Mapping* find(Address address) const;
};

// The former maps of a snapshot (decoder/code/former_maps.h), what went last first. Lines that are
// none are left out, as are those behind the first kMaxMappings.
std::vector<FormerModule> parse_former_maps(std::string_view former);

// The difference between the addresses of a process and a file's own, where `mapping`, which is one
// of `mappings`, is of the file with these segments; nothing when no segment lies there. Linkers
// (lld) put the end of a segment and the begin of the next into one page of the file, so its offset
// alone does not tell whose the mapping is: it is the segment's with which most of the file's
// mappings nearby are where they should be.
std::optional<std::uint64_t> load_bias(std::span<const ElfSegment> segments,
                                       std::span<const Mapping> mappings, const Mapping& mapping);

// How /proc/PID/maps would show the segments of an ELF file that was loaded there; empty when the
// file cannot be read.
std::string maps_of_module(const std::string& path, Address load_address);

constexpr std::size_t kMaxMappings = 1 << 16;
constexpr std::size_t kMaxMaps_bytes = 16 << 20;  // of a process

}  // namespace tailtrace
