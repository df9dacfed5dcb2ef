// BlockTable: descriptions of all straight pieces of code that qemu has translated. The part that
// readers need lies in the file `blocks`, the rest beside it.
//
// Threading: one thread at a time adds or clears (the caller holds a lock); any thread may read a
// block that it executes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "decoder/code/instruction.h"
#include "plugin/engines/qemu/session_format.h"
#include "plugin/engines/qemu_plugin/shared_file.h"

namespace tailtrace {

// Why a block is looked at twice each time it is executed.
enum BlockCare : std::uint8_t {
  kCareRepeat = 1 << 0,   // a REP string instruction: one execution per iteration
  kCareSingle = 1 << 1,   // one instruction: qemu may have cut another block short to repeat it
  kCareHandler = 1 << 2,  // begins a signal handler
  kCareThread = 1 << 3,   // a thread may begin here
  kCareChanged = 1 << 4,  // its code has changed since the program began
  kCareCall = 1 << 5,     // makes a system call at its end: a debugger may wait for that
};

// What the recorder knows of a block beyond its RingBlock.
struct BlockInfo {
  std::uint64_t begin = 0;
  std::uint64_t target = 0;  // of a direct branch at its end; 0: none
  std::uint32_t epoch = 0;
  std::uint32_t next_same_begin = 0;    // index + 1
  const std::uint8_t* sizes = nullptr;  // of its instructions, in bytes
  // The number of the system call at its end, where the instruction before that says it.
  static constexpr std::int32_t kNoCall = -1, kAnyCall = -2;
  std::int32_t call = kNoCall;
  std::uint16_t size_bytes = 0;
  std::uint16_t insns = 0;
  std::uint8_t care = 0;
  InstructionClass last = InstructionClass::kOther;

  std::uint64_t end() const { return begin + size_bytes; }
  // How many instructions come before the one at `pc`; -1 when none begins there.
  int index_of(std::uint64_t pc) const;
};

// A block as the translator sees it.
struct NewBlock {
  std::uint64_t begin;
  const std::uint8_t* bytes;
  const std::uint8_t* sizes;
  std::uint16_t size_bytes;
  std::uint16_t insns;
  std::uint32_t epoch;
};

class BlockTable {
 public:
  bool create(const std::string& path, std::size_t capacity);
  bool move_to(const std::string& path);

  // The block's description, made at the first request. Null when the table is full.
  RingBlock* find_or_add(const NewBlock& block);

  // From now on the blocks that begin at `pc`, old and new, get this care.
  void care_for(std::uint64_t pc, BlockCare care);

  bool cares_for(std::uint64_t pc, BlockCare care) const;

  // Forgets all blocks. REQUIRES: nobody executes or points to one of them.
  void clear();

  bool holds(const RingBlock* block) const { return block >= blocks_ && block < blocks_ + used_; }
  // REQUIRES: holds(block).
  const BlockInfo& info(const RingBlock* block) const { return infos_[block - blocks_]; }

  BlocksHeader& header() { return *reinterpret_cast<BlocksHeader*>(file_.data()); }

 private:
  // Addresses that need care, whether or not a block is known there. More of them than this would
  // be a program that registers ever new handlers.
  static constexpr std::size_t kMaxCares = 1 << 16;

  RingBlock* find(const NewBlock& block) const;
  std::uint8_t care_of(const NewBlock& block, InstructionClass last) const;

  GrowingFile file_;
  RingBlock* blocks_ = nullptr;
  BlockInfo* infos_ = nullptr;
  std::uint8_t* sizes_ = nullptr;
  std::size_t sizes_used_ = 0;
  std::size_t max_sizes_ = 0;
  std::size_t used_ = 0;
  std::size_t capacity_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> by_begin_;  // index + 1 of the newest
  std::unordered_map<std::uint64_t, std::uint8_t> cares_;
};

}  // namespace tailtrace
