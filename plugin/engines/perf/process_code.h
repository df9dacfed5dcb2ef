// ProcessCode: all code that a process has mapped, as hardware traces need it: a trace tells which
// way branches went, and not what the instructions were.
//
// It is read when a trace is, so what was mapped and gone in between is not known. Code that
// changed since the last look begins a new epoch of the image; whoever decodes says at what point.
//
// Threading: one thread at a time; images handed out do not change any more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>

#include "decoder/code/code_image.h"
#include "plugin/engines/step/memory_map.h"

namespace tailtrace::perf {

class ProcessCode {
 public:
  // Reads memory of the process as it is without breakpoints. Returns how much could be read.
  using Read = std::function<std::size_t(Address, std::span<std::uint8_t>)>;

  // All code together; what is beyond is not known.
  static constexpr std::uint64_t kMaxImage_bytes = 1ull << 30;

  // Without `read` memory is read from /proc, and a breakpoint in code that a file backs is
  // replaced by what the file has.
  explicit ProcessCode(std::int32_t pid, Read read = {});

  // Looks at the process. Returns how many epochs began: 0 or 1.
  // Errors: kGone, kPermission: its memory map cannot be read.
  Result<std::uint32_t> update();

  std::shared_ptr<const CodeImage> image() const { return image_; }

 private:
  struct Held {
    MemoryRegion region;
    Bytes bytes;  // of code that may change without the map telling
    std::uint64_t size_bytes = 0;
  };

  Bytes read_region(const MemoryRegion& region) const;
  void hide_breakpoints(const MemoryRegion& region, Bytes& bytes) const;

  std::int32_t pid_;
  bool own_read_;
  Read read_;
  std::shared_ptr<CodeImage> image_;
  std::map<Address, Held> held_;
  std::uint64_t size_bytes_ = 0;
  bool first_ = true;
};

}  // namespace tailtrace::perf
