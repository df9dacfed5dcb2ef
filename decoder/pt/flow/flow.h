// FlowWalker: follows the code of a program along the items of its trace, instruction by
// instruction. It is the complete decoder: it knows every item, and is what the fast path
// (fast_flow.h) hands everything uncommon to.
//
// It keeps the order of an instruction flow decoder: an instruction, the events bound to it, the
// events bound to the address behind it, the next instruction. See FLOW.md.
//
// Threading: one thread at a time; trace, code and sink must outlive the walker.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "decoder/code/code_reader.h"
#include "decoder/pt/decoder.h"
#include "decoder/pt/flow/flow_items.h"
#include "decoder/pt/return_stack.h"

namespace tailtrace::pt {

class FastFlow;
class PathSink;

class FlowWalker {
 public:
  FlowWalker(ByteSpan trace, const CodeImage& code, const DecoderConfig& config, Sink& sink);

  // Common packets are left to the fast path, which writes a path instead of instructions.
  // REQUIRES: the same code and configuration.
  FlowWalker(ByteSpan trace, const CodeImage& code, const DecoderConfig& config, PathSink& sink,
             FastFlow& fast);

  // Decodes from the first PSB at or behind `begin` until the packets at or behind `end` would have
  // to be read. `end` is a PSB or the end of the trace.
  void run(std::size_t begin, std::size_t end);

  // Where the flow began, and where it stood when it came to `end`; no value where it was not known
  // or not traced.
  std::optional<Address> started_at() const { return started_at_; }
  std::optional<Address> stopped_at() const { return stopped_at_; }

 private:
  // What goes on after a step.
  enum class Next : std::uint8_t { kGoOn, kDone, kResync };
  static constexpr std::uint32_t kMaxRun = 1024;
  // Instructions without a packet: no real code has that many, and loops are found earlier.
  static constexpr std::uint32_t kMaxStraight = 1u << 20;

  Next walk(std::size_t psb);
  Next go_on();
  bool skip_to_address(std::size_t limit);
  bool stand_at(const Event& event);
  void note_skipped(const Event& event);
  Next step();
  bool is_quiet();
  Next step_quietly();
  Decoded run_to_branch();
  Next follow(const Instruction& insn);
  Next no_instruction();
  Next deliver_events(const Instruction* behind);
  Next deliver_bound_events(const Instruction& insn);
  Next proceed(const Instruction& insn);
  Next proceed_without_condition(const Instruction& insn);
  Next straight_on(Address to);
  Next told(Address to);
  bool try_fast();
  void forget_reading_on();
  void push_return(Address to);
  bool pop_return(std::uint64_t& to);
  void clear_returns();

  void use_mode(CodeMode mode);
  bool knows(CodeMode mode) const { return mode == CodeMode::k64 || !config_.only_64_bit_code; }
  void use_changes(std::uint64_t offset, std::uint64_t time);
  void hold_event();
  bool is_due(const Instruction* behind);
  bool is_bound(const Instruction& insn);
  bool is_bound_disable(const Instruction& insn);
  bool is_bound_control_flow(const Instruction& insn);
  bool counts_to_trigger() const;
  bool trigger_is_due();
  bool can_reach(Address to);
  Next deliver();
  Next apply(Event& event);
  Next apply_enabled(Event& event);
  Next apply_mode(const Event& event);
  bool outside_filters(Address address) const;
  bool is_doubtful(const Event& event) const;
  void anchor() {
    anchored_ = true;
    since_anchor_ = 0;
  }

  enum class Outcome : std::uint8_t { kTaken, kNotTaken, kNone };
  Outcome take_outcome();
  bool read_outcomes();
  Next take_target();
  bool overflow_is_next();
  Next missing();
  Next finish();
  void consumed(const Item& item);
  void turn_to(const Item& item);
  void passed(const Item& item) {
    use_up(item.offset_bytes);
    if (next_change_ < config_.code_changes.size()) use_changes(item.offset_bytes, item.time);
  }
  void use_up(std::uint64_t offset_bytes) {
    consumed_offset_ = std::max<std::size_t>(consumed_offset_, offset_bytes + 1);
  }

  Instruction* room_in_run();
  void emit(const Instruction& insn);
  void flush();
  Next error(DecodeError error);

  const CodeImage& code_;
  const DecoderConfig& config_;
  Sink& sink_;
  PathSink* paths_ = nullptr;
  FastFlow* fast_ = nullptr;
  ByteSpan trace_;
  ItemReader items_;

  std::array<std::optional<CodeReader>, 3> readers_;  // by CodeMode; the fast path has its own
  CodeReader* reader_ = nullptr;
  Epoch epoch_;
  std::size_t next_change_ = 0;  // index into config_.code_changes

  Address ip_;
  bool enabled_ = false;
  Next next_ = Next::kGoOn;  // what an error decided where a bool is returned
  CodeMode mode_ = CodeMode::k64;
  bool mode_known_ = false;
  bool in_transaction_ = false;
  std::uint64_t outcomes_ = 0;
  unsigned outcome_count_ = 0;
  ReturnStack returns_;

  bool proceeding_ = false;    // behind the last instruction of run_
  bool executed_ = false;      // the instruction at ip_, and what comes of it is not known
  std::optional<Event> held_;  // used up when it is delivered
  std::uint64_t held_offset_bytes_ = 0;
  PacketTime held_time_;
  bool bound_paging_ = false, bound_vmcs_ = false, bound_ptwrite_ = false, bound_flow_ = false;
  bool anchored_ = false;
  std::uint64_t since_anchor_ = 0;

  std::uint32_t straight_ = 0;      // instructions since the last item
  bool fast_stuck_ = false;         // the fast path could not go on from here
  Address loop_mark_;               // finds loops without packets
  std::uint32_t loop_mark_in_ = 0;  // branches until the mark moves

  std::size_t end_ = 0;
  std::size_t consumed_offset_ = 0;            // of the last item that was used up
  std::size_t fast_begin_ = 0, fast_end_ = 0;  // of the fast path's last stretch
  std::size_t consumed_before_fast_ = 0;
  std::uint64_t time_ = 0;
  bool time_exact_ = false;
  std::size_t sync_offset_ = 0;
  std::optional<Address> began_at_, started_at_, stopped_at_;
  Gap gap_;
  std::vector<Instruction> run_;  // the first run_size_ of them
  std::uint32_t run_size_ = 0;
  RunState run_state_;
};

}  // namespace tailtrace::pt
