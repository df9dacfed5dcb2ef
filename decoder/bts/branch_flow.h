// BranchFlow: from branches, which are two addresses each, to BranchRecords with exact kinds and
// instruction counts, by following the code between them.
//
// Branches do not tell system calls, signals or what the kernel did; the code and the records of
// the kernel's return to user code (where the source has them) do, up to a point. What cannot be
// followed becomes a gap with its cause, never a guess: a signal's handler begins with a gap, which
// is filled in when the handler is seen to return to a place on the interrupted path.
//
// The flow goes on for as long as the thread does: branches are added as they are read, the records
// of what happened so far can be had at any stop, and those of the past do not change but for gaps
// that are filled in.
//
// Threading: one thread at a time. The code reader must outlive the flow, or the next set_code().
#pragma once

#include <optional>
#include <vector>

#include "decoder/bts/branch_list.h"
#include "decoder/code/code_reader.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::bts {

class BranchFlow {
 public:
  explicit BranchFlow(CodeReader& code);

  // Recording begins with this instruction, or one byte before it: a thread that stands behind a
  // breakpoint is put back by its debugger before it goes on, and what is added tells.
  // Without it the first branch is the first instruction.
  void begin_at(Address pc);
  // The thread stands there, and maybe never ran.
  void stands_at(Address pc);

  // The next branch in the order of time.
  void add(const Branch& branch);

  // Branches are missing here. Where the flow goes on is known from what is added next. Before any
  // branch it means that the beginning is lost.
  void lost(GapCause cause);

  // Another code from here on. Where the thread stood when it changed is known: then a kCodeChange
  // says so, for each epoch that began.
  void set_code(CodeReader& code, std::optional<Address> pc, std::uint32_t epochs);

  // Records so far, oldest first; the first has position first().
  const std::vector<BranchRecord>& records() const { return records_; }
  std::uint64_t first() const { return first_; }
  // Nothing before the first record, and it says where the flow began.
  bool complete() const { return first_ == 0 && began_; }
  // Forgets the oldest records beyond so many.
  void keep(std::size_t newest);

  // What follows the records when the thread stands, `pc` being the instruction to be executed
  // next; the last is a kDisable. Nothing of it stays. When branches after the last may be missing
  // (`up_to_date` is false) a gap leads to `pc`.
  std::vector<BranchRecord> closing(Address pc, bool up_to_date = true);

  // All records with those that close them.
  std::vector<BranchRecord> finish(Address pc);

 private:
  // A straight run that may pass system calls.
  struct Walk {
    bool arrived = false;
    std::uint32_t insns = 0;           // before the place, the place itself not counted
    std::vector<Instruction> systems;  // system calls passed
    GapCause trouble = GapCause::kUnknown;
  };
  // A gap that began with the kernel moving the thread elsewhere, and the path it left.
  struct Interrupted {
    std::uint64_t position;  // of the gap's record
    Address path;
  };
  struct Remembered {
    Address start, place;
    std::uint32_t insns = 0;
    bool used = false;
  };
  static constexpr std::size_t kRemembered = 1 << 12;
  static constexpr std::size_t kMaxInterrupted = 64;

  Walk walk(Address start, Address place);
  std::uint32_t take_systems(const Walk& path);
  void add_user_branch(const Branch& branch);
  void returned_to(Address user);
  bool left_handler(const Walk& path, Address user);
  void fill_in(const Interrupted& gap, Address came_back_to);
  bool is_signal_return(const Instruction& system_call);
  void put_branch(const Branch& branch, std::uint32_t insns);
  void put_gap(GapCause cause, Address to);

  void enter(Address pc);
  bool only_entered() const { return began_ && first_ == 0 && records_.size() == 1; }
  bool put_back_to(Address pc);
  void close(Address pc, bool up_to_date);

  CodeReader* code_;
  std::vector<BranchRecord> records_;
  std::uint64_t first_ = 0;  // position of the first record
  bool began_ = false;
  std::optional<Address> at_;            // executed next; nothing: unknown
  GapCause cause_ = GapCause::kUnknown;  // why it is unknown
  bool gap_due_ = false;                 // and it has not been told yet
  std::vector<Interrupted> interrupted_;
  std::vector<Remembered> remembered_;
};

}  // namespace tailtrace::bts
