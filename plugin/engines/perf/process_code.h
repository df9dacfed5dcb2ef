// ProcessCode: all code that a process has mapped, as hardware traces need it: a trace tells which
// way branches went, and not what the instructions were.
//
// It is read when a trace is. What was mapped and gone in between the kernel tells of, and is read
// from its file; generated code that is gone is not known. Code that comes where none was known
// belongs to the epoch that there is: nobody executed it before. Where it takes the place of other
// code an epoch of the image begins, at the time that the kernel told, or else at the last look.
//
// Threading: one thread at a time; images handed out do not change any more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/perf/events.h"
#include "decoder/pt/tail.h"
#include "plugin/engines/perf/told_maps.h"
#include "plugin/engines/step/memory_map.h"

namespace tailtrace::perf {

// Code that the kernel told was mapped. Times are the hardware's clock; 0 unknown.
struct MapChange {
  std::uint64_t time = 0;
  MmapEvent map;
};

class ProcessCode {
 public:
  // Reads memory of the process as it is without breakpoints. Returns how much could be read.
  using Read = std::function<std::size_t(Address, std::span<std::uint8_t>)>;

  // All code together; what is beyond is not known.
  static constexpr std::uint64_t kMaxImage_bytes = 1ull << 30;

  struct Range {
    Address begin, end;
    std::uint64_t size_bytes() const { return end.value - begin.value; }
    bool overlaps(Range other) const { return begin < other.end && other.begin < end; }
  };

  // Without `read` memory is read from /proc, and a breakpoint in code that a file backs is
  // replaced by what the file has.
  explicit ProcessCode(std::int32_t pid, Read read = {});

  // Code that is there beside the process's own, from the beginning: the kernel's.
  // REQUIRES: nothing was looked at yet.
  void begin_with(const CodeImage& image) { image_ = std::make_shared<CodeImage>(image); }

  // Looks at the process at the time `now`, with what was told since the last look. Returns how
  // many epochs began.
  // Errors: kGone, kPermission: its memory map cannot be read, and nothing was told.
  Result<std::uint32_t> update(std::vector<MapChange> told = {}, std::uint64_t now = 0);

  std::shared_ptr<const CodeImage> image() const { return image_; }
  // Files that are gone (decoder/code/former_maps.h), of the image's epochs.
  std::string former_maps() const { return maps_.former(); }
  // All epochs but the first, in their order.
  const std::vector<pt::EpochBegin>& begins() const { return begins_; }

  // The code of a process that this one has just made: the same.
  ProcessCode of_child(std::int32_t pid) const;

 private:
  struct Held {
    MemoryRegion region;
    Bytes bytes;  // of code that may change without the map telling
  };
  // Code that was found, and from when on it was there; no bytes: nobody knows what it was.
  struct Found {
    std::uint64_t time = 0;
    Range range;
    Bytes bytes;
  };

  void find_told(const MemoryMap& map, const std::vector<MapChange>& told,
                 std::vector<Found>& found) const;
  void find_untold(const MemoryMap& map, const std::vector<MapChange>& told,
                   std::vector<Found>& found);
  Result<bool> put(CodeImage& image, Found found, Epoch before);
  Result<bool> put_unknown(CodeImage& image, const Found& found, Epoch before);
  Result<bool> begin_files(CodeImage& image, const ToldMaps::Lines& lines, std::uint64_t time,
                           Epoch before);
  ToldMaps::Lines untold_lines(const MemoryMap& map, const std::vector<MapChange>& told) const;
  Epoch epoch_from(const CodeImage& image, std::uint64_t time, Epoch before);
  Bytes read_region(const MemoryRegion& region) const;
  void hide_breakpoints(const MemoryRegion& region, Bytes& bytes) const;

  std::int32_t pid_;
  bool own_read_;
  Read read_;
  std::shared_ptr<CodeImage> image_;
  std::map<Address, Held> held_;
  std::vector<pt::EpochBegin> begins_;
  ToldMaps maps_;
  std::vector<Range> unknown_;  // code was there that could not be read
  std::uint64_t size_bytes_ = 0;
  std::uint64_t last_look_ = 0;
};

}  // namespace tailtrace::perf
