// A processor as simply as it can be said: it walks at random through a small program, and writes
// down both what it executed and what branch tracing hardware would have recorded of it.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "decoder/bts/branch_list.h"
#include "decoder/code/code_image.h"

namespace tailtrace::bts {

class Walker {
 public:
  static constexpr std::uint64_t kBase = 0x401000;
  static constexpr std::uint64_t kHandler = 0x402000;
  static constexpr std::uint64_t kKernel = 0xffffffff81000000;

  // A program of `instructions` random instructions; every address in it may be jumped to.
  Walker(unsigned seed, std::size_t instructions) : random_(seed) {
    for (std::size_t i = 0; i < instructions; ++i) starts_.push_back(emit());
    bytes_.insert(bytes_.end(), {0xff, 0xe0});  // the end is an indirect jump
    for (std::size_t at : targets_) patch(at);
    // The handler: two instructions, a return to the restorer, which is rt_sigreturn.
    Bytes handler = *from_hex("90f8c348c7c00f0000000f05");
    auto image = std::make_shared<CodeImage>();
    (void)image->add({kBase}, bytes_);
    (void)image->add({kHandler}, handler);
    code_ = image;
    pc_ = kBase;
  }

  std::shared_ptr<const CodeImage> code() const { return code_; }
  const std::vector<Branch>& branches() const { return branches_; }
  const std::vector<Address>& executed() const { return executed_; }
  std::uint64_t pc() const { return pc_; }
  std::uint64_t first_pc() const { return kBase; }

  void step() {
    ByteSpan rest = ByteSpan(bytes_).subspan(pc_ - kBase);
    auto insn = decode_instruction(rest, {pc_});
    executed_.push_back({pc_});
    std::uint64_t next = insn->next().value;
    switch (insn->kind) {
      case InstructionClass::kConditional:
        if (random_() % 2) return branch(insn->target.value);
        break;
      case InstructionClass::kJump:
      case InstructionClass::kCall:
        return branch(insn->target.value);
      case InstructionClass::kIndirectJump:
      case InstructionClass::kIndirectCall:
      case InstructionClass::kReturn:
        return branch(any_start());
      case InstructionClass::kSystemCall:
        branches_.push_back({{kKernel}, {next}, 0});
        break;
      default:
        break;
    }
    pc_ = next;
  }

  // A signal arrives here, its handler runs and returns.
  void signal() {
    std::uint64_t interrupted = pc_;
    branches_.push_back({{kKernel}, {kHandler}, 0});
    for (std::uint64_t offset : {0, 1, 2}) executed_.push_back({kHandler + offset});
    branches_.push_back({{kHandler + 2}, {kHandler + 3}, 0});
    for (std::uint64_t offset : {3, 10}) executed_.push_back({kHandler + offset});
    branches_.push_back({{kKernel}, {interrupted}, 0});
  }

  // An interrupt that user code knows nothing of.
  void interrupt() { branches_.push_back({{kKernel}, {pc_}, 0}); }

 private:
  std::size_t emit() {
    std::size_t at = bytes_.size();
    static const char* const kForms[] = {"90",         "4889c8", "f8",   "7400", "eb00",
                                         "e800000000", "c3",     "ffe0", "ffd0", "0f05"};
    unsigned choice = random_() % 14;
    Bytes form = *from_hex(kForms[choice < 10 ? choice : choice % 4]);
    bytes_.insert(bytes_.end(), form.begin(), form.end());
    if (form[0] == 0x74 || form[0] == 0xeb || form[0] == 0xe8) targets_.push_back(at);
    return at;
  }
  // Gives a direct branch a random target among the instructions that it reaches.
  void patch(std::size_t at) {
    bool is_call = bytes_[at] == 0xe8;
    std::size_t end = at + (is_call ? 5 : 2);
    for (;;) {
      auto distance = static_cast<std::int64_t>(starts_[random_() % starts_.size()]) -
                      static_cast<std::int64_t>(end);
      if (!is_call && (distance < -128 || distance > 127)) continue;
      // A branch to the next instruction cannot be told from one that is not taken.
      if (distance == 0 && bytes_[at] == 0x74) continue;
      for (std::size_t i = at + 1; i < end; ++i, distance >>= 8)
        bytes_[i] = static_cast<std::uint8_t>(distance);
      return;
    }
  }
  std::uint64_t any_start() { return kBase + starts_[random_() % starts_.size()]; }
  void branch(std::uint64_t to) {
    branches_.push_back({{pc_}, {to}, 0});
    pc_ = to;
  }

  std::mt19937 random_;
  Bytes bytes_;
  std::vector<std::size_t> starts_, targets_;
  std::shared_ptr<const CodeImage> code_;
  std::vector<Branch> branches_;
  std::vector<Address> executed_;
  std::uint64_t pc_;
};

}  // namespace tailtrace::bts
