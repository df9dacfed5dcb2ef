// BranchFlow: from branches, which are two addresses each, to BranchRecords with exact kinds and
// instruction counts, by following the code between them.
//
// Branches do not tell system calls, signals or what the kernel did; the code and the records of
// the kernel's return to user code (where the source has them) do, up to a point. What cannot be
// followed becomes a gap with its cause, never a guess: a signal's handler begins with a gap, which
// is filled in when the handler is seen to return to a place on the interrupted path.
//
// Threading: one thread at a time. The code reader must outlive the flow.
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

  // Recording begins with this instruction. Without it the first branch is the first instruction.
  void begin_at(Address pc);

  // The next branch in the order of time.
  void add(const Branch& branch);

  // Branches are missing here. Where the flow goes on is known from what is added next.
  void lost(GapCause cause);

  // The thread stands: `pc` is the instruction to be executed next. All records, oldest first.
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
    std::size_t record;
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

  CodeReader& code_;
  std::vector<BranchRecord> records_;
  std::optional<Address> at_;            // executed next; nothing: unknown
  GapCause cause_ = GapCause::kUnknown;  // why it is unknown
  bool gap_due_ = false;                 // and it has not been told yet
  std::vector<Interrupted> interrupted_;
  std::vector<Remembered> remembered_;
};

// The kind of record that a branch instruction makes; nothing for instructions that never branch.
std::optional<RecordKind> kind_of_branch(InstructionClass kind);

}  // namespace tailtrace::bts
