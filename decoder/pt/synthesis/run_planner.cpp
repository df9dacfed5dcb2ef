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
      return show_nothing(plan);
    repeats |= insn->kind == InstructionClass::kRepString;
    plan.stop = insn->next();
    if (insn->kind != InstructionClass::kConditional) continue;
    ++plan.not_taken;
    plan.after_last_bit = plan.stop;
  }
  if (plan.stop != plan.from) return show_nothing(plan);
  if (!plan.async) ++seen;
  // Recorders may count each iteration of a repeated string instruction.
  repeats |= plan.last.kind == InstructionClass::kRepString;
  if (seen != plan.insns && !(repeats && seen < plan.insns)) return show_nothing(plan);
  plan.arrives = plan.async || plan.last.size_bytes != 0;
}

void RunPlanner::show_nothing(RunPlan& plan) {
  plan.stop = plan.begin;
  plan.not_taken = 0;
  plan.after_last_bit = plan.begin;
}

}  // namespace tailtrace::pt
