#include "decoder/record/branch_record.h"

namespace tailtrace {

std::string_view kind_name(RecordKind kind) {
  switch (kind) {
    case RecordKind::kNone:
      return "none";
    case RecordKind::kConditional:
      return "conditional";
    case RecordKind::kJump:
      return "jump";
    case RecordKind::kCall:
      return "call";
    case RecordKind::kReturn:
      return "return";
    case RecordKind::kIndirectJump:
      return "indirect-jump";
    case RecordKind::kIndirectCall:
      return "indirect-call";
    case RecordKind::kFarJump:
      return "far-jump";
    case RecordKind::kFarCall:
      return "far-call";
    case RecordKind::kFarReturn:
      return "far-return";
    case RecordKind::kSystemCall:
      return "system-call";
    case RecordKind::kSystemReturn:
      return "system-return";
    case RecordKind::kInterrupt:
      return "interrupt";
    case RecordKind::kException:
      return "exception";
    case RecordKind::kSignal:
      return "signal";
    case RecordKind::kTransactionAbort:
      return "transaction-abort";
    case RecordKind::kDiscontinuity:
      return "discontinuity";
    case RecordKind::kEnable:
      return "enable";
    case RecordKind::kDisable:
      return "disable";
    case RecordKind::kOverflow:
      return "overflow";
    case RecordKind::kGap:
      return "gap";
    case RecordKind::kMarker:
      return "marker";
    case RecordKind::kCodeChange:
      return "code-change";
    case RecordKind::kTransactionBegin:
      return "transaction-begin";
    case RecordKind::kTransactionCommit:
      return "transaction-commit";
  }
  return "unknown";
}

}  // namespace tailtrace
