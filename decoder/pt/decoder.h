// The one interface of Intel PT decoders: PT bytes and a code image in; instructions, events and
// gaps out, in the order of execution.
//
// Two decoders implement it: `flow` (ours: complete and fast) and `libipt` (the reference). Tests
// and a fuzzer hold them against each other for ever. The order of items is that of an instruction
// flow decoder that reports an event before the first instruction it affects.
//
// Threading: a decoder and the sink it writes into belong to one thread at a time; the code image
// is shared and only read.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/code/code_image.h"
#include "decoder/code/instruction.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::pt {

// The processor that wrote the trace, as CPUID names it; family 0 is unknown.
struct Cpu {
  std::uint16_t family = 0;
  std::uint8_t model = 0;
  std::uint8_t stepping = 0;

  friend bool operator==(const Cpu&, const Cpu&) = default;
};

// Defects of processors that a decoder has to work around, by the names of Intel's specification
// updates; errata.cpp says what each is.
struct Errata {
  bool bdm70 = false;   // PSB+ before TIP.PGE may hold FUP and MODE.Exec
  bool bdm64 = false;   // the branch before a transaction's abort may go to a wrong target
  bool skd007 = false;  // OVF may cut a CYC packet
  bool skd022 = false;  // VM entry that clears TraceEn may put a FUP before TIP.PGD
  bool skd010 = false;  // OVF may not be followed by its FUP or TIP.PGE
  bool skl014 = false;  // TIP.PGD of a direct branch out of a filter may have no IP
  bool apl12 = false;   // OVF while disabled may be followed by a FUP
  bool apl11 = false;   // OVF may be followed by a TIP.PGD
  bool skl168 = false;  // CYC (and MTC) right before PSB may be dropped
  bool skz84 = false;   // TMA in VMX guests with TSC scaling is corrupt

  friend bool operator==(const Errata&, const Errata&) = default;
};

// What is known of a processor; none for a processor that is not known.
Errata errata_of(Cpu cpu);

// Whether errata_of() knows the processor; a family of 0 names none that it could lack.
bool is_known(Cpu cpu);

// One of IA32_RTIT_ADDR0..3.
struct AddressFilter {
  enum class Kind : std::uint8_t { kOff = 0, kFilter = 1, kStop = 2 };
  Kind kind = Kind::kOff;
  Address first;
  Address last;  // the last byte inside
};

// What the clocks in a trace mean. Zeros are unknown: MTC, TMA and CYC are then not used.
struct TimingConfig {
  std::uint32_t cpuid_15_eax = 0;  // TSC = crystal clock * ebx / eax
  std::uint32_t cpuid_15_ebx = 0;
  std::uint8_t mtc_period = 0;     // IA32_RTIT_CTL.MTCFreq: an MTC every 2^n crystal ticks
  std::uint8_t nominal_ratio = 0;  // MSR_PLATFORM_INFO[15:8]: core cycles per bus cycle
};

// From the first packet at or behind `offset_bytes` whose time is at least `time` on, the code is
// that of `epoch`. Ordered by offset and time.
struct CodeChange {
  std::uint64_t offset_bytes = 0;
  std::uint64_t time = 0;
  Epoch epoch;
};

// Where decoding goes on when the code did not lead on.
enum class Resumption : std::uint8_t {
  kAtAddress,  // at the next event that says where, if it comes before a PSB: tracing is enabled,
               // an overflow, an interrupt, a PTWRITE, a far branch that tells the mode. Nothing
               // from before is needed there
  kAtPsb,      // where the trace says all anew; libipt's decoder has no other
};

struct DecoderConfig {
  Cpu cpu;
  Errata errata;
  TimingConfig timing;
  std::array<AddressFilter, 4> filters;
  Epoch first_epoch;
  std::vector<CodeChange> code_changes;
  Resumption resumption = Resumption::kAtAddress;
  // Other code is taken as not known, as in histories: records do not say of which mode theirs is.
  bool only_64_bit_code = false;
};

enum class EventKind : std::uint8_t {
  kEnabled,        // ip: the first instruction; flag resumed
  kDisabled,       // by the instruction before; ip: where it went, if not suppressed
  kAsyncDisabled,  // ip: the first instruction not executed; to: where it went, if not suppressed
  kAsyncBranch,    // an interrupt or the like; ip: the first instruction not executed; to
  kOverflow,       // data lost; ip: where the flow goes on; suppressed: not traced there; to: where
                   // it had come to before, 0 unknown
  kExecMode,       // mode
  kTransaction,    // flags speculative, aborted
  kPaging,         // by the instruction before; payload: CR3; flag non_root
  kAsyncPaging,    // the same at ip
  kVmcs,           // by the instruction before; payload: base of the VMCS
  kAsyncVmcs,      // the same at ip
  kStop,           // TraceStop
  kPtwrite,        // ip: the PTWRITE; payload; size_bytes 4 or 8
  kExstop,         // ip: the first instruction not executed
  kMwait,          // ip; payload: hints (eax) | extensions (ecx) << 32
  kPwre,           // payload: state | sub state << 8; flag hardware
  kPwrx,           // payload: last | deepest << 8; flags interrupt, store, autonomous
  kCbr,            // payload: core to bus ratio
  kMnt,            // payload
  kControlFlow,    // CFE; payload: type | vector << 8; ip if not suppressed
  kEventData,      // EVD, before the kControlFlow it belongs to; payload; size_bytes: its type
  kInterruptFlag,  // MODE.Exec with another RFLAGS.IF; payload: the flag
  kBlock,          // BBP; payload: type of the block; size_bytes: of each of its items, 4 or 8
  kBlockItem,      // BIP; payload; size_bytes: its identifier
  kTrigger,        // TRIG; payload: the lines; flag several; ip if not suppressed
  kEndOfTrace,     // the trace ends while it was enabled; ip: the instruction to be executed next
};

// Bits of Event::flags.
enum EventFlags : std::uint16_t {
  kEventStatusUpdate = 1 << 0,  // repeats what holds, as PSB+ does
  kEventIpSuppressed = 1 << 1,  // `ip` (kAsync...: `to`) is not known and zero
  kEventHasTime = 1 << 2,
  kEventResumed = 1 << 3,  // enabled where it had been disabled
  kEventSpeculative = 1 << 4,
  kEventAborted = 1 << 5,
  kEventNonRoot = 1 << 6,
  kEventHardware = 1 << 7,
  kEventInterrupt = 1 << 8,
  kEventStore = 1 << 9,
  kEventAutonomous = 1 << 10,
  kEventTimeExact = 1 << 11,  // `time` was written for this event
  kEventSeveral = 1 << 12,    // more than one trigger
};

struct Event {
  EventKind kind = EventKind::kEnabled;
  CodeMode mode = CodeMode::k64;
  std::uint16_t flags = 0;
  std::uint8_t size_bytes = 0;
  Address ip;
  Address to;
  std::uint64_t payload = 0;
  std::uint64_t time = 0;  // TSC; 0 without kEventHasTime

  bool has(EventFlags flag) const { return (flags & flag) != 0; }
};

// Why decoding could not go on.
enum class DecodeError : std::uint8_t {
  kNoSync,            // there is no PSB
  kBadOpcode,         // bytes that are no packet
  kBadPacket,         // a packet with an impossible payload
  kCutPacket,         // the trace ends inside a packet
  kBadContext,        // a packet where it cannot be
  kBadQuery,          // the code needs another packet than the one that comes next
  kNoCode,            // the bytes of an executed instruction are not known
  kNarrowCode,        // it is code of 32 or 16 bits, and only 64-bit code is asked for
  kBadInstruction,    // they are known and are no instruction
  kNoIp,              // a branch's target was suppressed
  kNoEnable,          // code is needed while tracing is disabled
  kBadReturn,         // a compressed return is not marked as taken
  kReturnStackEmpty,  // a compressed return without a call
  kBadStatusUpdate,   // PSB+ contradicts what was decoded
  kEventIgnored,      // an event could not be placed
  kEndlessLoop,       // straight code that never ends
  kTooMuch,           // a limit of the decoder was reached
};

// A lower-case English phrase: "the bytes of an executed instruction are not known".
std::string_view error_text(DecodeError error);

// The GapCause of the record that stands for the gap.
GapCause gap_cause(DecodeError error);

// A stretch that could not be decoded. Decoding goes on behind it.
struct Gap {
  DecodeError error = DecodeError::kNoSync;
  Address ip;                      // where the flow had come to; 0 unknown
  std::uint64_t offset_bytes = 0;  // of the packet that could not be used
  std::uint64_t size_bytes = 0;    // of the trace that was skipped
  bool executed = false;           // the instruction at `ip` was
};

// What instructions have in common that were executed in one go.
struct RunState {
  CodeMode mode = CodeMode::k64;
  bool in_transaction = false;
  bool time_exact = false;  // the packet of the run's last branch carried a time of its own
  std::uint64_t time = 0;   // TSC known at the packet that steered the run before; 0 unknown
};

// A part of the flow as its branches.
struct BranchRun {
  Address begin;  // executed first
  Address end;    // to be executed next
  std::span<const BranchRecord> records;
  std::uint32_t open_insns = 0;  // executed behind the last record
  RunState state;                // at the end; the records have times of their own
};

// How much a sink wants to be told.
enum class Detail : std::uint8_t {
  kInstructions,  // every instruction, every event
  kEvents,        // every event; instructions may be left out
  kBranches,      // branches() or instructions(), as the decoder likes; kDisabled with the kEnabled
                  // behind it may come as the records they make
};

// Takes what a decoder finds. The spans live during the call only.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Detail detail() const { return Detail::kInstructions; }
  // Executed one after the other; never empty.
  virtual void instructions(std::span<const Instruction> run, const RunState& state) = 0;
  // Only where detail() is kBranches.
  virtual void branches(const BranchRun&) {}
  virtual void event(const Event& event) = 0;
  virtual void gap(const Gap& gap) = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::string_view name() const = 0;

  // Decodes `trace` from its first PSB to its end. All that is wrong with it becomes gaps.
  // A trace without a PSB is one gap (kNoSync) when it has any byte but padding.
  virtual void decode(ByteSpan trace, Sink& sink) = 0;
};

// REQUIRES: the image outlives the decoder.
std::unique_ptr<Decoder> make_flow_decoder(const CodeImage& code, const DecoderConfig& config);
std::unique_ptr<Decoder> make_libipt_decoder(const CodeImage& code, const DecoderConfig& config);

}  // namespace tailtrace::pt
