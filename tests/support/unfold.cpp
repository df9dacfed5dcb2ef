#include "tests/support/unfold.h"

#include <fmt/core.h>

#include <csignal>

#include "decoder/code/code_reader.h"

namespace tailtrace {
namespace {

bool is_raised_by_instruction(const BranchRecord& record) {
  return record.kind == RecordKind::kSignal && (record.extra == SIGSEGV || record.extra == SIGILL ||
                                                record.extra == SIGFPE || record.extra == SIGBUS);
}

class Unfolder {
 public:
  Unfolder(const ThreadSnapshot& snapshot, bool with_attempts)
      : snapshot_(snapshot), code_(*snapshot.code), with_attempts_(with_attempts) {}

  Unfolded run() {
    epoch_ = snapshot_.first_epoch;
    const auto& records = snapshot_.records;
    for (std::size_t i = 0; i < records.size() && result_.problem.empty(); ++i) {
      code_.set_epoch(epoch_);
      index_ = i;
      take(records[i]);
    }
    return std::move(result_);
  }

 private:
  void take(const BranchRecord& record) {
    // What came before the first record's target is not known, unless it begins the trace.
    if (record.kind == RecordKind::kEnable || at_ == 0) {
      at_ = record.to.value;
      if (record.kind == RecordKind::kCodeChange) ++epoch_.value;
      return;
    }
    if (!follow(record)) return;
    if (record.kind == RecordKind::kCodeChange) ++epoch_.value;
    if (with_attempts_ && is_raised_by_instruction(record) && code_.known(record.from))
      result_.executed.push_back(record.from.value);
    at_ = record.to.value;
  }

  bool follow(const BranchRecord& record) {
    std::uint64_t last = 0;
    for (std::uint32_t i = 0; i < record.insns; ++i) {
      auto insn = code_.at({at_});
      if (!insn) return fail(record, "no code");
      bool is_last = i + 1 == record.insns && !record.is_async();
      if (insn->ends_run() && !is_last) return fail(record, "a branch inside the run");
      if (is_last && !leads(*insn, record)) return fail(record, "the branch does not lead there");
      result_.executed.push_back(at_);
      last = at_;
      at_ = insn->next().value;
    }
    if ((record.is_async() ? at_ : last) == record.from.value) return true;
    return fail(record, "the run ends elsewhere");
  }

  static bool leads(const Instruction& insn, const BranchRecord& record) {
    if (record.kind == RecordKind::kDisable || insn.target.is_null()) return true;
    return insn.target == record.to;
  }

  bool fail(const BranchRecord& r, const char* what) {
    result_.problem = fmt::format(
        "{} at {:#x}: record {} from {:#x} to {:#x} insns {} kind {} flags {:#x} extra {}", what,
        at_, snapshot_.first.value + index_, r.from.value, r.to.value, r.insns, kind_name(r.kind),
        r.flags, r.extra);
    return false;
  }

  const ThreadSnapshot& snapshot_;
  CodeReader code_;
  bool with_attempts_;
  Epoch epoch_;
  std::uint64_t at_ = 0;
  std::size_t index_ = 0;
  Unfolded result_;
};

}  // namespace

Unfolded unfold(const ThreadSnapshot& snapshot, bool with_attempts) {
  return Unfolder(snapshot, with_attempts).run();
}

}  // namespace tailtrace
