#include "decoder/bts/branch_flow.h"

#include <algorithm>
#include <utility>

#include "decoder/code/branch_kind.h"

namespace tailtrace::bts {
namespace {

// Straight code longer than this is not believed.
constexpr std::uint32_t kMaxRun_insns = 1 << 16;

}  // namespace

BranchFlow::BranchFlow(CodeReader& code) : code_(&code), remembered_(kRemembered) {}

void BranchFlow::begin_at(Address pc) {
  enter(pc);
  began_ = true;
}

void BranchFlow::stands_at(Address pc) { put_back_to(pc); }

// INT3 is one byte long: the kernel says the address behind it.
bool BranchFlow::put_back_to(Address pc) {
  if (!only_entered() || *at_ != pc + 1) return false;
  records_.front().to = pc;
  at_ = pc;
  return true;
}

void BranchFlow::enter(Address pc) {
  records_.push_back({{}, pc, 0, 0, RecordKind::kEnable, kFlagSynthetic, 0});
  at_ = pc;
}

void BranchFlow::set_code(CodeReader& code, std::optional<Address> pc, std::uint32_t epochs) {
  if (pc && at_) {
    Walk path = walk(*at_, *pc);
    std::uint32_t insns = path.arrived ? take_systems(path) : 0;
    if (!path.arrived) put_gap(path.trouble, *pc);
    for (; epochs > 0; --epochs, insns = 0)
      records_.push_back({*pc, *pc, 0, insns, RecordKind::kCodeChange, kFlagAsync, 0});
    at_ = *pc;
  } else {
    for (; epochs > 0; --epochs)
      records_.push_back({{}, {}, 0, 0, RecordKind::kCodeChange, kFlagAsync, 0});
  }
  code_ = &code;
  std::fill(remembered_.begin(), remembered_.end(), Remembered{});
}

void BranchFlow::keep(std::size_t newest) {
  if (records_.size() <= newest) return;
  std::size_t dropped = records_.size() - newest;
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(dropped));
  first_ += dropped;
}

void BranchFlow::add(const Branch& branch) {
  if (branch.from.is_kernel()) {
    // Both in the kernel: nothing that user code did.
    if (!branch.to.is_kernel()) returned_to(branch.to);
    return;
  }
  if (branch.from.is_null() || branch.to.is_kernel()) return;
  add_user_branch(branch);
}

// From `start` straight on until `place` would be executed next.
BranchFlow::Walk BranchFlow::walk(Address start, Address place) {
  Walk path;
  Remembered& known =
      remembered_[(std::hash<Address>()(start) * 3 + std::hash<Address>()(place)) % kRemembered];
  if (known.used && known.start == start && known.place == place) {
    path.arrived = true;
    path.insns = known.insns;
    return path;
  }
  for (Address at = start; at != place; ++path.insns) {
    std::optional<Instruction> insn = code_->at(at);
    if (!insn) {
      path.trouble = code_->known(at) ? GapCause::kBadInstruction : GapCause::kNoCode;
      return path;
    }
    if (insn->kind == InstructionClass::kSystemCall) {
      path.systems.push_back(*insn);
    } else if (insn->ends_run() || path.insns == kMaxRun_insns) {
      path.trouble = GapCause::kBadTrace;
      return path;
    }
    at = insn->next();
  }
  path.arrived = true;
  if (path.systems.empty()) known = {start, place, path.insns, true};
  return path;
}

// Makes records of the system calls on a path; returns how many instructions come behind the last.
std::uint32_t BranchFlow::take_systems(const Walk& path) {
  std::uint32_t left = path.insns;
  for (const Instruction& call : path.systems) {
    Walk before = walk(*at_, call.address);
    std::uint32_t insns = before.insns + 1;
    records_.push_back({call.address, call.next(), 0, insns, RecordKind::kSystemCall, 0, 0});
    at_ = call.next();
    left -= insns;
  }
  return left;
}

void BranchFlow::put_gap(GapCause cause, Address to) {
  records_.push_back(
      {{}, to, 0, 0, RecordKind::kGap, kFlagSynthetic, static_cast<std::uint16_t>(cause)});
}

void BranchFlow::lost(GapCause cause) {
  at_.reset();
  if (only_entered() || (first_ == 0 && records_.empty())) {
    records_.clear();
    began_ = false;
    return;
  }
  cause_ = cause;
  gap_due_ = true;
  interrupted_.clear();
}

void BranchFlow::add_user_branch(const Branch& branch) {
  if (at_) {
    Walk path = walk(*at_, branch.from);
    if (path.arrived) return put_branch(branch, take_systems(path) + 1);
    put_gap(path.trouble, branch.from);
  } else if (records_.empty() && !gap_due_) {
    enter(branch.from);
  } else {
    put_gap(cause_, branch.from);
  }
  put_branch(branch, 1);
}

// The branch itself, held against the code: a direct branch goes where its code says.
void BranchFlow::put_branch(const Branch& branch, std::uint32_t insns) {
  std::optional<Instruction> insn = code_->at(branch.from);
  at_ = branch.to;
  gap_due_ = false;
  bool is_branch = insn && insn->is_branch();
  if (is_branch && (insn->target.is_null() || insn->target == branch.to)) {
    records_.push_back(
        {branch.from, branch.to, 0, insns, branch_kind(insn->kind), branch.flags, 0});
    return;
  }
  GapCause cause = insn                        ? GapCause::kBadTrace
                   : code_->known(branch.from) ? GapCause::kBadInstruction
                                               : GapCause::kNoCode;
  // What leads to the branch was executed; the branch is not shown.
  BranchRecord gap{{},
                   branch.to,
                   0,
                   insns - 1,
                   RecordKind::kGap,
                   kFlagSynthetic,
                   static_cast<std::uint16_t>(cause)};
  records_.push_back(gap);
}

// The kernel came back to user code. On the path: behind a system call, or from an interrupt, of
// which user code knows nothing. Beside it: into a signal's handler, or out of one.
void BranchFlow::returned_to(Address user) {
  if (!at_) {
    if (records_.empty() && !gap_due_) return enter(user);
    put_gap(cause_, user);
    at_ = user;
    gap_due_ = false;
    return;
  }
  Walk path = walk(*at_, user);
  if (left_handler(path, user)) return;
  if (path.arrived) {
    if (!path.systems.empty()) take_systems(path);
    return;
  }
  if (put_back_to(user)) return;
  if (interrupted_.size() == kMaxInterrupted) interrupted_.erase(interrupted_.begin());
  interrupted_.push_back({first_ + records_.size(), *at_});
  put_gap(GapCause::kUnknown, user);
  at_ = user;
}

// MOV EAX, 15 right before SYSCALL: rt_sigreturn, as every C library's restorer has it.
bool BranchFlow::is_signal_return(const Instruction& system_call) {
  constexpr std::uint8_t kLong[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0};
  constexpr std::uint8_t kShort[] = {0xb8, 0x0f, 0, 0, 0};
  for (std::span<const std::uint8_t> bytes :
       {std::span<const std::uint8_t>(kLong), std::span<const std::uint8_t>(kShort)}) {
    std::optional<Instruction> load = code_->at(system_call.address - bytes.size());
    if (load && load->size_bytes == bytes.size() &&
        std::ranges::equal(code_->bytes_of(*load), bytes))
      return true;
  }
  return false;
}

bool BranchFlow::left_handler(const Walk& path, Address user) {
  if (path.systems.empty() || !is_signal_return(path.systems.front())) return false;
  const Instruction call = path.systems.front();
  std::uint32_t insns = walk(*at_, call.address).insns + 1;
  records_.push_back({call.address, user, 0, insns, RecordKind::kSystemCall, 0, 0});
  at_ = user;
  if (!interrupted_.empty()) {
    fill_in(interrupted_.back(), user);
    interrupted_.pop_back();
  }
  return true;
}

// Where the handler came back to is where its signal interrupted the path.
void BranchFlow::fill_in(const Interrupted& gap, Address came_back_to) {
  if (gap.position < first_) return;
  Walk path = walk(gap.path, came_back_to);
  if (!path.arrived || path.systems.size() > 1) return;
  BranchRecord& record = records_[gap.position - first_];
  if (path.systems.empty()) {
    record.from = came_back_to;
    record.insns = path.insns;
    record.kind = RecordKind::kSignal;
    record.flags = kFlagAsync;
  } else {
    if (path.systems.front().next() != came_back_to) return;
    record.from = path.systems.front().address;
    record.insns = path.insns;
    record.kind = RecordKind::kSystemCall;
    record.flags = 0;
  }
  record.extra = 0;
}

void BranchFlow::close(Address pc, bool up_to_date) {
  std::uint32_t insns = 0;
  if (!up_to_date && (at_ || !records_.empty())) {
    put_gap(GapCause::kLost, pc);
  } else if (at_) {
    Walk path = walk(*at_, pc);
    if (path.arrived)
      insns = take_systems(path);
    else
      put_gap(path.trouble, pc);
  } else if (gap_due_ || !records_.empty()) {
    put_gap(cause_, pc);
  } else {
    enter(pc);
  }
  records_.push_back({pc,
                      {},
                      0,
                      insns,
                      RecordKind::kDisable,
                      kFlagAsync | kFlagSynthetic,
                      static_cast<std::uint16_t>(EdgeCause::kDebugger)});
}

std::vector<BranchRecord> BranchFlow::closing(Address pc, bool up_to_date) {
  const std::size_t settled = records_.size();
  const auto at = at_;
  close(pc, up_to_date);
  std::vector<BranchRecord> tail(records_.begin() + static_cast<std::ptrdiff_t>(settled),
                                 records_.end());
  records_.resize(settled);
  at_ = at;
  return tail;
}

std::vector<BranchRecord> BranchFlow::finish(Address pc) {
  close(pc, true);
  return std::exchange(records_, {});
}

}  // namespace tailtrace::bts
