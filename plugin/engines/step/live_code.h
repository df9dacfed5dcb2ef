// LiveCode: the code of a running process, read as it is executed, and watched for change.
//
// A page is read when it is first executed. A page that only a system call of the process can
// change is then trusted until the memory map shows that one did; any other page (writable, or
// shared with a writable mapping elsewhere) is compared each time it is executed. A change begins
// a new epoch of the image; so does other code in the place of a library that is gone.
//
// Threading: one thread at a time; images handed out do not change any more.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "decoder/base/types.h"
#include "decoder/code/code_image.h"
#include "decoder/code/code_reader.h"
#include "decoder/code/former_maps.h"
#include "plugin/engines/step/memory_map.h"

namespace tailtrace {

class LiveCode {
 public:
  // Reads memory of the process, without breakpoints. Returns how many bytes could be read.
  using Read = std::function<std::size_t(Address, std::span<std::uint8_t>)>;
  using ReadMap = std::function<std::string()>;  // the text of /proc/PID/maps

  // Versions of code that are kept, all together. Beyond it the history begins anew.
  static constexpr std::size_t kMaxImage_bytes = 256u << 20;

  LiveCode(Read read, ReadMap read_map);

  // The instruction that the process would execute there now; nothing when it is unreadable or
  // none. May begin an epoch.
  std::optional<Instruction> at(Address address);

  // REQUIRES: an instruction that at() gave, and no call since.
  Bytes bytes_of(const Instruction& instruction) const { return reader_->bytes_of(instruction); }

  // Whether that is code of the kernel's in the process, as clock_gettime().
  bool is_in_vdso(Address address) const;

  // Where code is that only a system call of the process can change, by address: the kernel's, if
  // that is at `pc`, else all other.
  std::span<const FormerMaps::Range> stable_code(Address pc) const {
    return stable_code_[is_in_vdso(pc)];
  }

  // Compares what is held of the page with the process. True when a new epoch began.
  bool recheck(Address address);

  // A system call was executed: mappings may have changed, which may begin an epoch.
  void system_call_done();
  // Somebody wrote to memory from outside.
  void written(Address address, std::uint64_t size_bytes);

  Epoch epoch() const { return image_->newest(); }
  // True when the limit is reached: the owner makes another LiveCode.
  bool is_full() const { return held_bytes_ > kMaxImage_bytes; }
  std::shared_ptr<const CodeImage> image() const { return image_; }
  // Files that are gone (decoder/code/former_maps.h), of the image's epochs.
  std::string former_maps() const { return former_maps_.text(); }

 private:
  static constexpr Address kNoPage{1};
  struct Page {
    bool readable = false;
    bool stable = false;   // only a system call can change it
    bool suspect = false;  // compare before it is used again
  };
  static Address page_of(Address a) { return {a.value & ~(kPage_bytes - 1)}; }

  void take_map(MemoryMap map);
  Page& prepare(Address page);
  void load(Address page, Page& state);
  bool compare(Address address, std::size_t size_bytes);
  CodeImage& writable_image();
  void add(Address address, Bytes bytes, Epoch from);

  Read read_;
  ReadMap read_map_;
  MemoryMap map_;
  std::array<std::vector<FormerMaps::Range>, 2> stable_code_;  // of it; and in the vDSO
  FormerMaps former_maps_;
  std::shared_ptr<CodeImage> image_;
  std::unique_ptr<CodeReader> reader_;
  std::unordered_map<Address, Page> pages_;
  Address trusted_page_ = kNoPage;  // the page last used, when it needs no preparation
  std::size_t held_bytes_ = 0;
};

}  // namespace tailtrace
