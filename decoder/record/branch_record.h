// BranchRecord: the one fixed-size, normalised record of control flow, whatever recorded it.
//
// The layout, every kind and every flag are documented byte by byte in RECORD.md beside this file;
// it is the same in memory, in a ring, in a record stream and as a NumPy dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "decoder/base/types.h"

namespace tailtrace {

enum class RecordKind : std::uint8_t {
  kNone = 0,
  // Branches: `from` was executed and transferred control to `to`.
  kConditional = 1,   // taken Jcc, JrCXZ, LOOPcc
  kJump = 2,          // direct near JMP
  kCall = 3,          // direct near CALL
  kReturn = 4,        // near RET
  kIndirectJump = 5,  // near JMP through a register or memory
  kIndirectCall = 6,
  kFarJump = 7,
  kFarCall = 8,
  kFarReturn = 9,      // RETF, IRET
  kSystemCall = 10,    // SYSCALL, SYSENTER, INT n; `to` is where user code goes on
  kSystemReturn = 11,  // SYSRET, SYSEXIT, and sigreturn seen from user space
  // Asynchronous: `from` is the first instruction not executed (kFlagAsync is set).
  kInterrupt = 16,
  kException = 17,  // a fault of the instruction at `from`
  kSignal = 18,     // `to` is the signal handler; extra is the signal number, 0 unknown
  kTransactionAbort = 19,
  kDiscontinuity = 20,  // moved without a branch, as by a debugger writing the pc
  // Edges of what was recorded.
  kEnable = 24,    // from 0; `to` is the first instruction recorded; extra is an EdgeCause
  kDisable = 25,   // to 0; extra is an EdgeCause
  kOverflow = 26,  // data lost inside the hardware; `to` is where the flow goes on, 0 unknown
  kGap = 27,       // data lost or not decodable; extra is a GapCause
  // Events that do not change the flow: `to` equals `from`, kFlagAsync is set.
  kMarker = 32,      // extra is the marker slot
  kCodeChange = 33,  // from here on the next code epoch holds; see the code image
  kTransactionBegin = 34,
  kTransactionCommit = 35,
};

enum RecordFlags : std::uint8_t {
  kFlagKernel = 1 << 0,         // `from` is kernel code
  kFlagInTransaction = 1 << 1,  // executed speculatively inside a transaction
  kFlagAbort = 1 << 2,          // the branch is the abort of a transaction
  kFlagMispredicted = 1 << 3,
  kFlagTimeExact = 1 << 4,  // `time` was taken at this branch, not before it
  kFlagSynthetic = 1 << 5,  // made by a reader, not by the recorder
  kFlagAsync = 1 << 6,      // `from` was not executed and is not counted in `insns`
};

constexpr std::uint8_t kernel_flag(Address from) { return from.is_kernel() ? kFlagKernel : 0; }

// Why a stretch of records begins or ends: `extra` of kEnable and kDisable.
enum class EdgeCause : std::uint16_t {
  kUnknown = 0,
  kThread = 1,    // the thread begins or ends
  kProcess = 2,   // the process begins or ends
  kDebugger = 3,  // recording was switched on or off, or the inferior stands stopped
  kFork = 4,      // the child of a fork; the records before are its parent's
  kExec = 5,      // the program was replaced
  kFilter = 6,    // an address or privilege filter
  kSignal = 7,    // the process was killed
};

// Why a stretch is missing: `extra` of kGap.
enum class GapCause : std::uint16_t {
  kUnknown = 0,
  kNoCode = 1,          // the bytes of an executed instruction are not known
  kBadInstruction = 2,  // the bytes are known and are no instruction
  kBadTrace = 3,        // the trace contradicts the code
  kOverwritten = 4,     // the ring went round
  kTruncated = 5,       // the kernel cut the buffer
  kLost = 6,            // the kernel dropped data
  kPartial = 7,         // the hardware could not trace all of it
  kCollision = 8,       // the hardware lost data to other data of its own
  kNarrowCode = 9,      // code of 32 or 16 bits, which records do not show
};

struct BranchRecord {
  Address from;             // the branch instruction's first byte; 0 where the trace begins
  Address to;               // executed next; 0 where the trace ends
  std::uint64_t time = 0;   // last known time at or before the branch, in clock units; 0 = unknown
  std::uint32_t insns = 0;  // instructions of the straight run that ends with `from`, it included
  RecordKind kind = RecordKind::kNone;
  std::uint8_t flags = 0;
  std::uint16_t extra = 0;

  friend bool operator==(const BranchRecord&, const BranchRecord&) = default;
  bool is_async() const { return (flags & kFlagAsync) != 0; }
};

static_assert(sizeof(BranchRecord) == 32);
static_assert(offsetof(BranchRecord, from) == 0);
static_assert(offsetof(BranchRecord, to) == 8);
static_assert(offsetof(BranchRecord, time) == 16);
static_assert(offsetof(BranchRecord, insns) == 24);
static_assert(offsetof(BranchRecord, kind) == 28);
static_assert(offsetof(BranchRecord, flags) == 29);
static_assert(offsetof(BranchRecord, extra) == 30);
static_assert(std::is_trivially_copyable_v<BranchRecord>);
static_assert(std::is_standard_layout_v<BranchRecord>);

// "conditional", "call", ...; "unknown" for a number that is no kind.
std::string_view kind_name(RecordKind kind);

}  // namespace tailtrace
