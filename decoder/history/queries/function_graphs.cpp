#include "decoder/history/queries/function_graphs.h"

#include "decoder/code/program_end.h"

namespace tailtrace {
namespace {

// How often a graph may be found to lack a branch.
constexpr int kMaxReadings = 64;

}  // namespace

bool same_function(const Function& a, const Function& b) {
  return a.entry.is_null() ? a.begin == b.begin : a.entry == b.entry;
}

FunctionGraphs::FunctionGraphs(const History& history, Symbolizer& symbols)
    : symbols_(symbols), code_(*history.frame().code) {
  history.each_record([this](const BranchRecord& record) {
    if (record.kind == RecordKind::kIndirectJump) jumps_[record.from].insert(record.to);
  });
}

bool FunctionGraphs::decides(const Function& function, Address branch, Address to, Address about,
                             Epoch epoch) {
  Known& known = graphs_[{function.entry.is_null() ? function.begin : function.entry, epoch}];
  if (add(known, function, about, epoch) | add(known, function, branch, epoch) |
      add(known, function, to, epoch))
    read(known, function, epoch);
  return known.graph && known.graph->decides(branch, to, about);
}

bool FunctionGraphs::is_part(const Function& function, Address address, Epoch epoch) {
  if (function.begin <= address && address < function.end) return true;
  return same_function(function, symbols_.function_in(address, epoch));
}

// An address that was executed is part of the function, whether or not its code shows a way to it.
bool FunctionGraphs::add(Known& known, const Function& function, Address address, Epoch epoch) {
  if (known.graph && (known.graph->knows(address) || known.readings == kMaxReadings)) return false;
  return is_part(function, address, epoch) && known.entries.insert(address).second;
}

// What is kept of a thread may have no code but what it executed; the file has the rest. Behind
// what ends a program nothing is known to follow.
std::optional<Instruction> FunctionGraphs::instruction_at(Address address, Epoch epoch) {
  const bool is_recorded = code_.known(address);
  const ByteSpan in_file = is_recorded ? ByteSpan() : symbols_.code_in_file(address, epoch);
  auto insn = is_recorded ? code_.at(address) : decode_instruction(in_file, address);
  if (!insn || insn->kind != InstructionClass::kOther || address.is_kernel()) return insn;
  return ends_program(is_recorded ? code_.bytes_of(*insn) : in_file) ? std::nullopt : insn;
}

void FunctionGraphs::read(Known& known, const Function& function, Epoch epoch) {
  ++known.readings;
  std::vector<Address> entries(known.entries.begin(), known.entries.end());
  if (!function.entry.is_null()) entries.push_back(function.entry);
  code_.set_epoch(epoch);
  known.graph = std::make_unique<FlowGraph>(
      [&](Address address) { return instruction_at(address, epoch); },
      [&](Address address) { return is_part(function, address, epoch); }, entries, jumps_);
}

}  // namespace tailtrace
