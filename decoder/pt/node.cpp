#include "decoder/pt/node.h"

#include <bit>

#include "decoder/code/branch_kind.h"

namespace tailtrace::pt {
namespace {

// Where control may go only by a TIP.
bool needs_target(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::kIndirectJump:
    case InstructionClass::kIndirectCall:
    case InstructionClass::kFarJump:
    case InstructionClass::kFarCall:
    case InstructionClass::kFarReturn:
    case InstructionClass::kSystemCall:
    case InstructionClass::kSystemReturn:
    case InstructionClass::kVmEntry:
    case InstructionClass::kVmCall:
      return true;
    default:
      return false;
  }
}

}  // namespace

RowFiller::RowFiller(const CodeImage& code, Rows& rows) : code_(code), rows_(rows) {}

void RowFiller::set_epoch(Epoch epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  drop();
  for (auto& reader : readers_)
    if (reader) reader->set_epoch(epoch);
}

// --- Nodes -----------------------------------------------------------------------------------

const Node& RowFiller::node_at(std::uint64_t ip, CodeMode mode) {
  auto& nodes = nodes_[static_cast<std::size_t>(mode)];
  auto found = nodes.find(ip);
  if (found != nodes.end()) return found->second;
  if (nodes.size() >= kMaxNodes) nodes.clear();
  return nodes.emplace(ip, walk(ip, mode)).first->second;
}

Node RowFiller::walk(std::uint64_t ip, CodeMode mode) {
  std::optional<CodeReader>& reader = readers_[static_cast<std::size_t>(mode)];
  if (!reader) {
    reader.emplace(code_, mode);
    reader->set_epoch(epoch_);
  }
  Node node;
  for (std::uint32_t steps = 0; steps < kMaxNodeInsns; ++steps) {
    std::optional<Instruction> insn = reader->at({ip});
    if (!insn) return node;
    ++node.tail_insns;
    switch (insn->kind) {
      case InstructionClass::kOther:
      case InstructionClass::kRepString:
      case InstructionClass::kMovCr3:
      case InstructionClass::kPtwrite:
        ip = insn->next().value;
        break;
      case InstructionClass::kJump:
      case InstructionClass::kCall:
        if (node.directs.size() == kMaxNodeDirects) return node;
        node.directs.push_back(
            {ip, insn->target.value, insn->next().value, node.tail_insns,
             insn->kind == InstructionClass::kJump ? RecordKind::kJump : RecordKind::kCall});
        node.tail_insns = 0;
        ip = insn->target.value;
        break;
      default:
        node.end = *insn;
        node.usable = true;
        return node;
    }
  }
  return node;
}

// --- Transitions -----------------------------------------------------------------------------

RowFiller::Run RowFiller::begin(StateKey state) {
  Run run;
  run.ip = run.effect_start = rows_.state(state).ip;
  run.first_record = rows_.book().records.size();
  return run;
}

void RowFiller::record(Run& run, std::uint64_t from, std::uint64_t to, RecordKind kind) {
  rows_.book().records.push_back({{from}, {to}, 0, run.tail, kind, 0, 0});
  run.tail = 0;
}

// Up to the node's end, which is not executed. kStopped: at a call that has no place left.
RowFiller::Step RowFiller::run_node(Run& run, const Node& node, std::size_t max_calls) {
  if (!node.usable) return Step::kNone;
  for (const Node::Direct& direct : node.directs) {
    bool returns = direct.kind == RecordKind::kCall && direct.to != direct.behind;
    if (returns && run.call_count >= max_calls) {
      run.insns += direct.insns - 1;
      run.tail += direct.insns - 1;
      run.ip = direct.from;
      return Step::kStopped;
    }
    if (returns) run.calls[run.call_count++] = direct.behind;
    run.insns += direct.insns;
    run.tail += direct.insns;
    ++run.branches;
    record(run, direct.from, direct.to, direct.kind);
  }
  run.insns += node.tail_insns - 1;
  run.tail += node.tail_insns - 1;
  run.ip = node.end.address.value;
  return Step::kEnd;
}

void RowFiller::branch(Run& run, const Node& node, std::uint64_t to) {
  ++run.insns;
  ++run.tail;
  ++run.branches;
  record(run, node.end.address.value, to, branch_kind(node.end.kind));
  run.ip = to;
}

void RowFiller::fall_through(Run& run, const Node& node) {
  ++run.insns;
  ++run.tail;
  ++run.branches;
  run.ip = node.end.next().value;
}

bool RowFiller::too_large(const Run& run) const {
  return run.insns > Counts::kMaxInsns || run.branches > Counts::kMaxBranches || rows_.full();
}

std::uint64_t RowFiller::abandon(const Run& run) {
  rows_.book().records.resize(run.first_record);
  return 0;
}

std::uint32_t RowFiller::close(const Run& run, CodeMode mode, bool returns) {
  std::size_t records = rows_.book().records.size() - run.first_record;
  Side side;
  for (std::size_t i = 0; i < run.call_count; ++i) side.push[i] = rows_.key_of(run.calls[i], mode);
  side.counts = Counts::pack(run.insns, run.branches, records);
  return rows_.add_effect(
      {run.effect_start, static_cast<std::uint32_t>(run.first_record),
       static_cast<std::uint32_t>(records), run.insns, run.tail, run.branches, returns},
      side);
}

std::uint64_t RowFiller::fill(StateKey state, std::uint8_t bits) {
  CodeMode mode = rows_.state(state).mode;
  Run run = begin(state);
  unsigned count = static_cast<unsigned>(std::bit_width(bits)) - 2;  // stop bit and header apart
  const unsigned all = count;
  Transition t;
  bool pops = false;
  while (count != 0 && !pops && !t.deferred) {
    const Node& node = node_at(run.ip, mode);
    Step step = run_node(run, node, kMaxPush);
    // A run that needs more room goes on in another row.
    if (step == Step::kStopped && run.ip != run.effect_start) break;
    if (step != Step::kEnd || too_large(run)) return abandon(run);
    if (node.end.kind == InstructionClass::kConditional) {
      // One that goes where it would have fallen through to leaves no record.
      bool taken = (bits >> count & 1) != 0 && node.end.target != node.end.next();
      --count;
      taken ? branch(run, node, node.end.target.value) : fall_through(run, node);
    } else if (node.end.kind == InstructionClass::kReturn) {
      if ((bits >> count & 1) == 0) return abandon(run);
      --count;
      pops = run.call_count == 0;
      branch(run, node, pops ? 0 : run.calls[--run.call_count]);
    } else {
      // The outcomes belong to later branches: the TIP was deferred.
      t.deferred = true;
    }
  }
  if (count == all && run.insns == 0 && !t.deferred) return abandon(run);
  // The rest of the outcomes is a TNT byte of its own.
  unsigned low = (1u << count) - 1;
  t.left = static_cast<std::uint8_t>(count == 0 ? 0 : ((bits >> 1 & low) | (low + 1)) << 1);
  t.growth = pops ? -1 : static_cast<int>(run.call_count);
  t.next = pops ? 0 : rows_.key_of(run.ip, mode);
  t.effect = close(run, mode, pops);
  std::uint64_t row = t.pack();
  rows_.put(state, bits, row);
  return row;
}

std::uint64_t RowFiller::fill(StateKey state, std::uint64_t target) {
  CodeMode mode = rows_.state(state).mode;
  // A row has 48 bits for the target.
  if (static_cast<std::uint64_t>(static_cast<std::int64_t>(target << 16) >> 16) != target) return 0;
  Run run = begin(state);
  const Node& node = node_at(run.ip, mode);
  Step step = run_node(run, node, kMaxPush - 1);
  if (step == Step::kNone || too_large(run)) return abandon(run);
  if (step == Step::kStopped) {
    // More calls than one row can push: the TIP is for the next one.
    if (run.ip == run.effect_start) return abandon(run);
    return put_target(state, target, run, static_cast<int>(run.call_count), true);
  }
  bool returns = node.end.kind == InstructionClass::kReturn;
  if (!returns && !needs_target(node.end.kind)) return abandon(run);
  bool drops_entry = returns && run.call_count == 0;
  if (returns && run.call_count != 0) --run.call_count;
  if (node.end.kind == InstructionClass::kIndirectCall)
    run.calls[run.call_count++] = node.end.next().value;
  branch(run, node, target);
  return put_target(state, target, run, drops_entry ? -1 : static_cast<int>(run.call_count), false);
}

std::uint64_t RowFiller::put_target(StateKey state, std::uint64_t target, const Run& run,
                                    int growth, bool deferred) {
  CodeMode mode = rows_.state(state).mode;
  Transition t;
  t.growth = growth;
  t.deferred = deferred;
  t.next = rows_.key_of(run.ip, mode);
  t.effect = close(run, mode, false);
  std::uint64_t row = t.pack();
  rows_.put(state, target, row);
  return row;
}

}  // namespace tailtrace::pt
