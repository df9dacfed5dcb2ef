// CodeLog: the bytes of the program's code as they were executed, with epochs. It keeps what each
// page of code was last seen to hold, and writes to the file `code` what is new.
//
// A byte that was never executed before holds from the beginning (epoch 0), whenever it is first
// met: nothing older can contradict it. A byte that was executed and has another value now is a
// change and begins a new epoch. So is all that is executed where another library was before.
//
// Threading: one thread at a time; the caller holds a lock.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoder/base/types.h"
#include "decoder/code/former_maps.h"
#include "plugin/engines/qemu/session_format.h"
#include "plugin/engines/qemu_plugin/shared_file.h"

namespace tailtrace {

class CodeLog {
 public:
  bool create(const std::string& path, std::size_t capacity_bytes);
  bool move_to(const std::string& path);

  // `size` bytes at `pc` are about to be executed; `memory`, if given, is where the program's
  // memory at `pc` can be read, whole pages of it. The epoch from which the pages under them hold;
  // nothing when the file is full.
  std::optional<std::uint32_t> see(std::uint64_t pc, const std::uint8_t* bytes, std::size_t size,
                                   const std::uint8_t* memory);

  std::uint32_t epoch() const { return epoch_; }

  // Whether anything was executed there since other code came last.
  bool was_executed(FormerMaps::Range range) const;
  // Other code came there, whatever its bytes are: it begins a new epoch.
  void begin_epoch(const std::vector<FormerMaps::Range>& ranges);

 private:
  struct Page {
    std::array<std::uint8_t, kPage_bytes> bytes;
    std::bitset<kPage_bytes> executed;
    std::uint32_t since = 0;  // first sights hold from this epoch on
    std::uint32_t epoch = 0;  // of the last change
    bool blank = false;       // only the executed bytes are known
  };
  // The part of a piece of code that lies in one page.
  struct Part {
    std::uint64_t address;
    const std::uint8_t* bytes;
    std::size_t size;
    Page* page;

    std::size_t offset() const { return address % kPage_bytes; }
    bool is_news() const;
    bool is_change() const;
  };

  Page* page_of(std::uint64_t address, const std::uint8_t* memory);
  bool write(const Part& part, std::uint32_t epoch);
  bool append(std::uint64_t address, const std::uint8_t* bytes, std::size_t size,
              std::uint32_t epoch);
  CodeHeader& header() { return *reinterpret_cast<CodeHeader*>(file_.data()); }

  GrowingFile file_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<std::uint64_t, std::uint32_t> since_;  // of pages of other code
  std::uint32_t epoch_ = 0;
};

}  // namespace tailtrace
