// Calls as a story: functions of 64 KiB each, named by one word; writes code and records as it
// goes, so that a test reads as the story of what was executed.
//
// Threading: one thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "decoder/history/calls/calls.h"

namespace tailtrace {

class CallStory : public Symbolizer {
 public:
  explicit CallStory(std::vector<std::string> names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      Address begin{(i + 1) << 16};
      Function function{begin, begin + 0x10000, begin, names[i], names[i], "", "", "m"};
      functions_.push_back(std::make_unique<Function>(function));
      bases_[names[i]] = begin;
    }
    here_ = bases_.at(names[0]);
    push({{}, here_, 0, 0, RecordKind::kEnable, 0, 0});
  }

  // Every move executes one instruction, which does nothing most often, and the branch itself.
  CallStory& call(const std::string& name) { return call_to(bases_.at(name)); }
  CallStory& call_into(const std::string& name, std::uint64_t offset) {
    return call_to(bases_.at(name) + offset);
  }
  CallStory& call_next() { return call_to(here_ + 3); }
  CallStory& jump(const std::string& name, std::uint64_t offset = 0) {
    return move(RecordKind::kIndirectJump, "ffe0", bases_.at(name) + offset);
  }
  // To the caller, or to another place altogether.
  CallStory& ret() {
    Address to = stack_.back();
    stack_.pop_back();
    return move(RecordKind::kReturn, "c3", to);
  }
  CallStory& ret_to(const std::string& name, std::uint64_t offset) {
    return move(RecordKind::kReturn, "c3", bases_.at(name) + offset);
  }
  // Onto another stack.
  CallStory& switch_to(const std::string& name, std::uint64_t offset) {
    return move(RecordKind::kReturn, "c3", bases_.at(name) + offset, kLoadStackPointer);
  }
  CallStory& switch_by_jump(const std::string& name, std::uint64_t offset) {
    return move(RecordKind::kIndirectJump, "ffe0", bases_.at(name) + offset, kLoadStackPointer);
  }
  CallStory& signal(const std::string& name) {
    put(kNop);
    return interrupt(name, 1);
  }
  // Before the next instruction.
  CallStory& signal_at_once(const std::string& name) { return interrupt(name, 0); }
  // Behind a system call.
  CallStory& signal_in_system_call(const std::string& name) {
    return move(RecordKind::kSystemCall, "0f05", here_ + 3).interrupt(name, 0);
  }
  // Of an instruction that could not be executed, which is recorded as taken back.
  CallStory& fault(const std::string& name) {
    const Address at = here_;
    put(kNop);
    push({here_, at, 0, 1, RecordKind::kDiscontinuity, kFlagAsync, 0});
    here_ = at;
    return interrupt(name, 0);
  }
  // A debugger has it call a function that returns to `to`, and go on from here.
  CallStory& call_by_debugger(const std::string& name, const std::string& to) {
    const Address stop = here_;
    here_ = bases_.at(name);
    push({stop, here_, 0, 0, RecordKind::kDiscontinuity, kFlagAsync, 0});
    move(RecordKind::kReturn, "c3", bases_.at(to));
    push({here_, stop, 0, 0, RecordKind::kDiscontinuity, kFlagAsync, 0});
    here_ = stop;
    return *this;
  }
  // To what the newest signal interrupted that nothing has come back to, or elsewhere.
  CallStory& sigreturn() {
    Address to = interrupted_.back();
    interrupted_.pop_back();
    return move(RecordKind::kSystemReturn, "0f05", to);
  }
  CallStory& sigreturn_to(const std::string& name, std::uint64_t offset = 0) {
    return move(RecordKind::kSystemReturn, "0f05", bases_.at(name) + offset);
  }
  // Nobody knows what happened until it is there again.
  CallStory& gap(const std::string& name, std::uint64_t offset) {
    here_ = bases_.at(name) + offset;
    push({{}, here_, 0, 0, RecordKind::kOverflow, 0, 0});
    return *this;
  }
  CallStory& without_entry(const std::string& name) {
    for (auto& function : functions_)
      if (function->name == name) function->entry = {};
    return *this;
  }
  // The tables for unwinding have an entry for each 256 bytes.
  CallStory& with_frames() {
    has_frames_ = true;
    return *this;
  }

  // "main:0:1-2 f:1:3-4": name, level and items of every segment.
  std::string told() {
    put(kNop);
    push({here_, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0});
    auto snapshot = std::make_shared<ThreadSnapshot>();
    auto image = std::make_shared<CodeImage>();
    for (auto& [address, byte] : code_) EXPECT_TRUE(image->add(address, Bytes{byte}));
    snapshot->code = image;
    snapshot->records = records_;
    history_ = std::make_unique<History>(snapshot);
    return told({1, history_->size()});
  }
  std::string told(Range range) {
    auto made = CallHistory::make(*history_, *this, range);
    EXPECT_TRUE(made);
    calls_ = std::move(*made);
    std::string text;
    for (std::uint64_t n = 1; n <= calls_.size(); ++n) {
      CallSegment s = calls_.at(n);
      EXPECT_EQ(calls_.holding(s.items.first), n);
      EXPECT_EQ(calls_.holding(s.items.last), n);
      std::string name = s.function == nullptr ? "[gap]" : s.function->name;
      text += (n == 1 ? "" : " ") + name + ":" + std::to_string(s.level) + ":" +
              std::to_string(s.items.first) + "-" + std::to_string(s.items.last);
    }
    EXPECT_FALSE(calls_.holding(range.last + 1));
    return text;
  }
  const History& history() const { return *history_; }
  const CallHistory& calls() const { return calls_; }

  const Function& function_at(Address address) override {
    std::size_t index = (address.value >> 16) - 1;
    return index < functions_.size() ? *functions_[index] : none_;
  }
  std::optional<Address> fde_begin(Address address, Epoch) override {
    return has_frames_ ? std::optional(Address{address.value & ~0xffull}) : std::nullopt;
  }
  std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }

 private:
  static constexpr const char* kNop = "90";
  static constexpr const char* kLoadStackPointer = "488b26";  // mov (%rsi),%rsp

  CallStory& call_to(Address to) {
    stack_.push_back(here_ + 3);
    return move(RecordKind::kIndirectCall, "ffd0", to);
  }
  CallStory& interrupt(const std::string& name, std::uint32_t insns) {
    Address to = bases_.at(name);
    interrupted_.push_back(here_);
    push({here_, to, 0, insns, RecordKind::kSignal, kFlagAsync, 0});
    here_ = to;
    return *this;
  }
  CallStory& move(RecordKind kind, const char* code, Address to, const char* first = kNop) {
    put(first);
    Address from = here_;
    put(code);
    push({from, to, 0, 2, kind, 0, 0});
    here_ = to;
    return *this;
  }
  void put(const char* hex) {
    const Bytes bytes = *from_hex(hex);
    for (std::uint8_t byte : bytes) {
      code_[here_] = byte;
      here_ = here_ + 1;
    }
  }
  void push(const BranchRecord& record) { records_.push_back(record); }

  std::vector<std::unique_ptr<Function>> functions_;
  std::map<std::string, Address> bases_;
  Function none_;
  bool has_frames_ = false;
  Address here_;
  std::vector<Address> stack_;
  std::vector<Address> interrupted_;
  std::map<Address, std::uint8_t> code_;
  std::vector<BranchRecord> records_;
  std::unique_ptr<History> history_;
  CallHistory calls_;
};

}  // namespace tailtrace
