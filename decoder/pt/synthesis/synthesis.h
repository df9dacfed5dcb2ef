// Synthesis: the inverse of a PT decoder. Records and the code they ran go in, Intel PT bytes come
// out that every PT decoder turns back into exactly the instructions that were executed; so that
// whatever recorded a history, tools that only speak PT can read it.
//
//   straight run         one not-taken bit for each conditional branch in it
//   taken branch         a taken bit
//   jump, call           nothing
//   indirect branch      TIP
//   return               a taken bit where return compression allows it, else TIP
//   system call          TIP.PGD, TIP.PGE where it returned to; TIP when it went elsewhere
//   signal, interrupt    FUP, TIP; FUP, TIP.PGD, TIP.PGE when the program went on where it was
//   end, stop            FUP with the next instruction, TIP.PGD
//   overflow             OVF, FUP
//   what is not known    FUP with the first unknown instruction, TIP.PGD; TIP.PGE behind it
//
// Records are believed only as far as the code agrees with them: a run that does not arrive at its
// branch becomes a visible break, never a wrong path.
//
// Threading: a pure function; the code is only read.
#pragma once

#include <cstdint>
#include <span>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/code/code_image.h"
#include "decoder/code/instruction.h"
#include "decoder/pt/synthesis/clock_writer.h"
#include "decoder/record/branch_record.h"

namespace tailtrace::pt {

struct SynthesisOptions {
  // Returns that go back to their call become a taken bit instead of a TIP.
  bool return_compression = true;
  // A decoder can start at least this often; 0: at the beginning only.
  std::uint64_t psb_period_bytes = 4096;
  // The records' times, as timing packets; and what their clocks are like. A decoder must be told
  // the same.
  SynthesisTiming timing = SynthesisTiming::kNone;
  TimingConfig clocks = {
      .cpuid_15_eax = 2, .cpuid_15_ebx = 168, .mtc_period = 3, .nominal_ratio = 21};
  // A PSB comes only while tracing is off, which it is made to be. Stock LLDB repeats an
  // instruction at each PSB that comes while it is on.
  bool pause_at_psb = false;
  // No more than these, but the newest record that has any: whole records, so a few less may come.
  std::uint64_t newest_instructions = ~0ull;
  // Read all code as the newest epoch has it, for tools that see only the code of today. What ran
  // code that is gone or another one now becomes a break.
  bool newest_code = false;
  CodeMode mode = CodeMode::k64;
  // More is an error: it protects against records that unfold into endless bits.
  std::uint64_t limit_bytes = 1ull << 30;
};

// Records of one thread, oldest first; `first_epoch` is the code epoch of those before the first
// kCodeChange. No records give a PSB+ and nothing else.
// Errors: kUsage when limit_bytes is exceeded.
Result<Bytes> synthesize(std::span<const BranchRecord> records, const CodeImage& code,
                         Epoch first_epoch, const SynthesisOptions& options);

}  // namespace tailtrace::pt
