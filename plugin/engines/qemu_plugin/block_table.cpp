#include "plugin/engines/qemu_plugin/block_table.h"

#include <atomic>
#include <cstring>

#include "decoder/code/branch_kind.h"

namespace tailtrace {
namespace {

// More than real code has.
constexpr std::size_t kMeanBlock_insns = 16;

// A block's last instruction may store into the block's own page, or need to be alone: then qemu
// gives the block up there and executes that instruction again, in a block of its own.
bool may_be_repeated(InstructionClass last) {
  return last == InstructionClass::kOther || last == InstructionClass::kCall ||
         last == InstructionClass::kIndirectCall || last == InstructionClass::kFarCall;
}

// Of `mov $NUMBER, %eax` and `xor %eax, %eax` right before `syscall`.
std::int32_t call_of(const NewBlock& block) {
  constexpr std::uint8_t kSyscall[] = {0x0f, 0x05}, kZero[] = {0x31, 0xc0}, kMov = 0xb8;
  constexpr std::size_t kMov_bytes = 5;
  auto ends_with = [&block](const std::uint8_t(&code)[2], const std::uint8_t* end, int nth) {
    return block.sizes[block.insns - nth] == sizeof code &&
           std::memcmp(end - sizeof code, code, sizeof code) == 0;
  };
  const std::uint8_t* end = block.bytes + block.size_bytes;
  if (!ends_with(kSyscall, end, 1)) return BlockInfo::kNoCall;
  if (block.insns == 1) return BlockInfo::kAnyCall;
  end -= sizeof kSyscall;
  if (ends_with(kZero, end, 2)) return 0;
  if (block.sizes[block.insns - 2] != kMov_bytes || end[-5] != kMov) return BlockInfo::kAnyCall;
  std::int32_t number;
  std::memcpy(&number, end - sizeof number, sizeof number);
  return number >= 0 ? number : BlockInfo::kAnyCall;
}

RingBlock ring_block(const NewBlock& block, const Instruction& last, bool marked) {
  std::uint64_t end = block.begin + block.size_bytes;
  RecordKind kind = branch_kind(last.kind);
  std::uint64_t flags = kind == RecordKind::kDiscontinuity ? kFlagAsync : 0;
  RingBlock result;
  result.begin = marked ? block.begin | kSlowBlock : block.begin;
  result.next = last.ends_run() ? kNoFallThrough : end;
  result.last = flags != 0 ? end : last.address.value;
  result.tail = block.insns | static_cast<std::uint64_t>(kind) << 32 | flags << 40;
  return result;
}

}  // namespace

int BlockInfo::index_of(std::uint64_t pc) const {
  std::uint64_t at = begin;
  for (int i = 0; i < insns; ++i) {
    if (at == pc) return i;
    at += sizes[i];
  }
  return -1;
}

bool BlockTable::create(const std::string& path, std::size_t capacity) {
  std::size_t bytes = kLogHeaderSize_bytes + capacity * sizeof(RingBlock);
  if (!file_.create(path, bytes, kLogHeaderSize_bytes)) return false;
  capacity_ = capacity;
  blocks_ = reinterpret_cast<RingBlock*>(file_.data() + kLogHeaderSize_bytes);
  max_sizes_ = capacity * kMeanBlock_insns;
  infos_ = static_cast<BlockInfo*>(map_private(capacity * sizeof(BlockInfo)));
  sizes_ = static_cast<std::uint8_t*>(map_private(max_sizes_));
  if (infos_ == nullptr || sizes_ == nullptr) return false;
  std::memcpy(header().magic, kBlocksMagic, sizeof kBlocksMagic);
  header().version = kBlocksVersion;
  header().block_size_bytes = sizeof(RingBlock);
  header().address = reinterpret_cast<std::uint64_t>(blocks_);
  header().capacity = capacity;
  header().thread_room.store(kNoThreadLimit);
  return true;
}

bool BlockTable::move_to(const std::string& path) {
  return file_.move_to(path, kLogHeaderSize_bytes + used_ * sizeof(RingBlock));
}

// The same bytes are at an address as long as its epoch does not change: they need no comparing.
RingBlock* BlockTable::find(const NewBlock& block) const {
  auto found = by_begin_.find(block.begin);
  std::uint32_t index = found == by_begin_.end() ? 0 : found->second;
  for (; index != 0; index = infos_[index - 1].next_same_begin) {
    const BlockInfo& info = infos_[index - 1];
    if (info.epoch == block.epoch && info.size_bytes == block.size_bytes &&
        info.insns == block.insns)
      return &blocks_[index - 1];
  }
  return nullptr;
}

std::uint8_t BlockTable::care_of(const NewBlock& block, InstructionClass last) const {
  std::uint8_t care = 0;
  if (block.insns == 1 && last == InstructionClass::kRepString) care |= kCareRepeat;
  if (block.insns == 1 && may_be_repeated(last)) care |= kCareSingle;
  if (block.epoch != 0) care |= kCareChanged;
  auto found = cares_.find(block.begin);
  return found == cares_.end() ? care : care | found->second;
}

RingBlock* BlockTable::find_or_add(const NewBlock& block) {
  if (RingBlock* known = find(block)) return known;
  std::size_t bytes = kLogHeaderSize_bytes + (used_ + 1) * sizeof(RingBlock);
  if (used_ == capacity_ || sizes_used_ + block.insns > max_sizes_ || !file_.grow_to(bytes))
    return nullptr;
  std::size_t last_size = block.sizes[block.insns - 1];
  std::size_t last_offset = block.size_bytes - last_size;
  Address last_at{block.begin + last_offset};
  Instruction unknown;
  unknown.address = last_at;
  Instruction last =
      decode_instruction({block.bytes + last_offset, last_size}, last_at).value_or(unknown);
  BlockInfo& info = infos_[used_];
  info.begin = block.begin;
  info.target = last.target.value;
  info.epoch = block.epoch;
  info.next_same_begin = 0;
  info.sizes = sizes_ + sizes_used_;
  info.size_bytes = block.size_bytes;
  info.insns = block.insns;
  info.care = care_of(block, last.kind);
  info.last = last.kind;
  std::memcpy(sizes_ + sizes_used_, block.sizes, block.insns);
  sizes_used_ += block.insns;
  info.call = call_of(block);
  if (info.call != BlockInfo::kNoCall) info.care |= kCareCall;
  blocks_[used_] = ring_block(block, last, info.care != 0);
  std::uint32_t& newest = by_begin_[block.begin];
  info.next_same_begin = newest;
  newest = static_cast<std::uint32_t>(used_ + 1);
  header().used.store(++used_, std::memory_order_release);
  return &blocks_[used_ - 1];
}

void BlockTable::care_for(std::uint64_t pc, BlockCare care) {
  bool is_full = cares_.size() >= kMaxCares && cares_.count(pc) == 0;
  if (is_full && care != kCareThread) return;  // a thread would not be recorded at all
  cares_[pc] |= care;
  auto found = by_begin_.find(pc);
  std::uint32_t index = found == by_begin_.end() ? 0 : found->second;
  for (; index != 0; index = infos_[index - 1].next_same_begin) {
    // Other threads may be executing it; they notice the next time.
    std::atomic_ref(infos_[index - 1].care).fetch_or(care);
    std::atomic_ref(blocks_[index - 1].begin).fetch_or(kSlowBlock);
  }
}

bool BlockTable::cares_for(std::uint64_t pc, BlockCare care) const {
  auto found = cares_.find(pc);
  return found != cares_.end() && (found->second & care) != 0;
}

void BlockTable::clear() {
  used_ = 0;
  sizes_used_ = 0;
  by_begin_.clear();
  header().used.store(0, std::memory_order_release);
}

}  // namespace tailtrace
