#include "decoder/pt/synthesis/run_planner.h"

#include <algorithm>
#include <bit>

namespace tailtrace::pt {
namespace {

bool leaves_run(const Instruction& insn) {
  return insn.ends_run() || insn.kind == InstructionClass::kVmEntry ||
         insn.kind == InstructionClass::kVmCall;
}

}  // namespace

void RunPlan::show_nothing() {
  stop = after_last_bit = begin;
  not_taken = 0;
  arrives = false;
}

RunPlanner::RunPlanner(const CodeImage& image, CodeMode mode, std::size_t expected)
    : reader_(image, mode), slots_(std::clamp(std::bit_ceil(expected), kMinSlots, kMaxSlots)) {}

void RunPlanner::set_epoch(Epoch epoch) {
  if (epoch == reader_.epoch()) return;
  reader_.set_epoch(epoch);
  std::fill(slots_.begin(), slots_.end(), RunPlan{});
}

void RunPlanner::make(RunPlan& plan, Address begin, const BranchRecord& record) {
  plan = RunPlan{};
  plan.begin = begin;
  plan.from = record.from;
  plan.insns = record.insns;
  plan.async = record.is_async();
  plan.stop = begin;
  plan.after_last_bit = begin;
  if (auto insn = reader_.at(record.from)) plan.last = *insn;
  walk(plan);
}

void RunPlanner::walk(RunPlan& plan) {
  bool repeats = false;
  std::uint32_t seen = 0;
  for (; plan.stop < plan.from; ++seen) {
    auto insn = reader_.at(plan.stop);
    // What leads to unknown code is sure; what leads elsewhere than the record says is not.
    if (!insn && !reader_.known(plan.stop)) return;
    if (!insn || leaves_run(*insn) || seen == std::min(plan.insns, kMaxRun_insns))
      return plan.show_nothing();
    repeats |= insn->kind == InstructionClass::kRepString;
    plan.stop = insn->next();
    if (insn->kind != InstructionClass::kConditional) continue;
    ++plan.not_taken;
    plan.after_last_bit = plan.stop;
  }
  if (plan.stop != plan.from) return plan.show_nothing();
  if (!plan.async) ++seen;
  // Recorders may count each iteration of a repeated string instruction.
  repeats |= plan.last.kind == InstructionClass::kRepString;
  if (seen != plan.insns && !(repeats && seen < plan.insns)) return plan.show_nothing();
  plan.arrives = plan.async || plan.last.size_bytes != 0;
}
}  // namespace tailtrace::pt
