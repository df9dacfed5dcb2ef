#include "decoder/pt/fast/node.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "decoder/code/branch_kind.h"
#include "decoder/pt/far.h"

namespace tailtrace::pt {
namespace {

// Where control may go only by a TIP.
bool needs_target(InstructionClass kind) {
  return kind == InstructionClass::kIndirectJump || kind == InstructionClass::kIndirectCall ||
         is_far(kind);
}

// The kinds that branch_kind() makes of instructions for which tracing is off while they run.
bool is_far(RecordKind kind) {
  switch (kind) {
    case RecordKind::kFarJump:
    case RecordKind::kFarCall:
    case RecordKind::kFarReturn:
    case RecordKind::kSystemCall:
    case RecordKind::kSystemReturn:
    case RecordKind::kDiscontinuity:  // VM entry, VM call
      return true;
    default:
      return false;
  }
}

}  // namespace

void RowFiller::use(RowPool& pool, RowPool::Member& member) {
  const bool other_code = pool_ != nullptr && epoch_ != pool.epoch();
  epoch_ = pool.epoch();
  pool_ = &pool;
  member_ = &member;
  if (!other_code) return;
  drop();
  for (auto& reader : readers_)
    if (reader) reader->set_epoch(epoch_);
}

void RowFiller::drop() {
  for (AddressTable& numbers : node_numbers_) numbers.clear();
  nodes_.clear();
  directs_.clear();
}

// --- Nodes -----------------------------------------------------------------------------------

Node& RowFiller::node_at(std::uint64_t ip, CodeMode mode) {
  AddressTable& numbers = node_numbers_[static_cast<std::size_t>(mode)];
  std::uint32_t number = numbers.find(ip);
  if (number != AddressTable::kNone) return nodes_[number];
  if (numbers.is_half_full()) numbers.grow();
  numbers.put(ip, static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back(walk(ip, mode));
  return nodes_.back();
}

// Where the node's end leads to, at `ip`.
Node& RowFiller::node_behind(Node& node, bool taken, std::uint64_t ip, CodeMode mode) {
  std::uint32_t& number = node.behind[taken];
  if (number == AddressTable::kNone)
    number = static_cast<std::uint32_t>(&node_at(ip, mode) - nodes_.data());
  return nodes_[number];
}

CodeReader& RowFiller::reader(CodeMode mode) {
  std::optional<CodeReader>& reader = readers_[static_cast<std::size_t>(mode)];
  if (!reader) {
    reader.emplace(code_, mode);
    reader->set_epoch(epoch_);
  }
  return *reader;
}

Node RowFiller::walk(std::uint64_t ip, CodeMode mode) {
  CodeReader& code = reader(mode);
  Node node;
  node.first_direct = static_cast<std::uint32_t>(directs_.size());
  for (std::uint32_t steps = 0; steps < kMaxNodeInsns; ++steps) {
    const Decoded insn = code.read({ip});
    node.lacks_code = !insn;
    if (node.lacks_code) return node;
    const std::uint64_t next = ip + insn.size_bytes;
    ++node.tail_insns;
    switch (insn.kind) {
      case InstructionClass::kMovCr3:
        node.has_paging = true;
        [[fallthrough]];
      case InstructionClass::kOther:
      case InstructionClass::kRepString:
      case InstructionClass::kPtwrite:
        ip = next;
        break;
      case InstructionClass::kJump:
      case InstructionClass::kCall:
        if (node.direct_count == kMaxNodeDirects) return node;
        ++node.direct_count;
        directs_.push_back(
            {ip, insn.target.value, next, node.tail_insns,
             insn.kind == InstructionClass::kJump ? RecordKind::kJump : RecordKind::kCall});
        node.tail_insns = 0;
        ip = insn.target.value;
        break;
      default:
        node.end = insn.at({ip});
        node.usable = true;
        return node;
    }
  }
  return node;
}

// --- Transitions -----------------------------------------------------------------------------

RowFiller::Run RowFiller::begin(StateKey state) {
  // No run may lose the nodes it goes through.
  if (nodes_.size() >= kMaxNodes || directs_.size() >= kMaxDirects) drop();
  Run run;
  run.ip = run.effect_start = pool_->rows().state(state).ip;
  records_.clear();
  return run;
}

// The packet tells what comes next; what came before did not need it.
void RowFiller::decide(Run& run) {
  if (!run.decided) run.lead_count = records_.size();
  run.decided = true;
}

void RowFiller::record(Run& run, std::uint64_t from, std::uint64_t to, RecordKind kind,
                       std::uint8_t flags) {
  flags |= kernel_flag({from});
  records_.push_back({{from}, {to}, 0, run.tail, kind, flags, 0});
  run.tail = 0;
}

// Up to the node's end, which is not executed. kStopped: at a call that has no place left.
RowFiller::Step RowFiller::run_node(Run& run, const Node& node, std::size_t max_calls) {
  if (!node.usable) return Step::kNone;
  for (const Node::Direct& direct : directs_of(node)) {
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
  decide(run);
  record(run, node.end.address.value, to, branch_kind(node.end.kind), kFlagTimeExact);
  run.ip = to;
}

void RowFiller::fall_through(Run& run, const Node& node) {
  ++run.insns;
  ++run.tail;
  ++run.branches;
  decide(run);
  run.ip = node.end.next().value;
}

bool RowFiller::too_large(const Run& run) const {
  return run.insns > Counts::kMaxInsns || run.branches > Counts::kMaxBranches;
}

// Puts the row, unless another flow has done so meanwhile. Most states have names already: they are
// looked up before the lock is taken.
template <class... Symbol>
std::uint64_t RowFiller::put(const Run& run, Transition transition, bool returns, StateKey state,
                             Symbol... symbol) {
  if (!has_room(records_.size())) return 0;
  transition.effect = add_effect(run, returns);
  Rows& rows = pool_->rows();
  const CodeMode mode = rows.state(state).mode;
  Pushes pushes;
  auto name_states = [&](auto name) {
    if (run.next && !run.next->off && transition.next == 0) transition.next = name(run.next->ip);
    for (std::size_t i = 0; i < run.call_count; ++i)
      if (pushes.keys[i] == 0) pushes.keys[i] = name(run.calls[i]);
  };
  name_states([&](std::uint64_t ip) { return rows.find_key(ip, mode); });
  std::lock_guard hold(pool_->lock());
  if (const std::uint64_t row = rows.find(state, symbol...)) return row;
  if (!rows.takes_more()) return 0;
  name_states([&](std::uint64_t ip) { return rows.key_of(member_->part, ip, mode); });
  if (run.next && run.next->off) transition.next = rows.add_state(member_->part, *run.next);
  rows.put_pushes(transition.effect, pushes);
  const std::uint64_t row = transition.pack();
  rows.put(state, symbol..., row);
  pool_->note_crowd();
  return row;
}

bool RowFiller::has_room(std::size_t record_count) {
  if (Rows::has_room(member_->part, record_count)) return true;
  std::lock_guard hold(pool_->lock());
  Rows& rows = pool_->rows();
  if (!rows.takes_more()) return false;
  rows.extend(member_->part);
  return true;
}

std::uint32_t RowFiller::add_effect(const Run& run, bool returns) {
  Effect effect;
  effect.start = run.effect_start;
  effect.tail_insns = static_cast<std::uint16_t>(run.tail);
  effect.lead_count = (run.decided ? run.lead_count : records_.size()) & Effect::kMaxRecords;
  effect.decides = run.decided;
  effect.returns = returns;
  return pool_->rows().add_effect(member_->part.effects, effect, records_,
                                  Counts::pack(run.insns, run.branches, records_.size()));
}

std::uint64_t RowFiller::fill(StateKey state, std::uint8_t bits) {
  if (bits == kTipSymbol) return fill_tip(state);
  CodeMode mode = pool_->rows().state(state).mode;
  Run run = begin(state);
  unsigned count = static_cast<unsigned>(std::bit_width(bits)) - 2;  // stop bit and header apart
  const unsigned all = count;
  Transition t;
  bool pops = false;
  Node* next = nullptr;
  while (count != 0 && !pops && !t.deferred) {
    Node& node = next != nullptr ? *std::exchange(next, nullptr) : node_at(run.ip, mode);
    Step step = run_node(run, node, kMaxPush);
    // A run that needs more room goes on in another row.
    if (step == Step::kStopped && run.ip != run.effect_start) break;
    if (step != Step::kEnd || too_large(run)) return 0;
    if (node.end.kind == InstructionClass::kConditional) {
      // One that goes where it would have fallen through to leaves no record.
      bool taken = (bits >> count & 1) != 0 && node.end.target != node.end.next();
      --count;
      taken ? branch(run, node, node.end.target.value) : fall_through(run, node);
      if (count != 0) next = &node_behind(node, taken, run.ip, mode);
    } else if (node.end.kind == InstructionClass::kReturn) {
      if ((bits >> count & 1) == 0) return 0;
      --count;
      pops = run.call_count == 0;
      branch(run, node, pops ? 0 : run.calls[--run.call_count]);
    } else {
      // The outcomes belong to later branches: the TIP was deferred.
      t.deferred = true;
    }
  }
  if (count == all && run.insns == 0 && !t.deferred) return 0;
  // The rest of the outcomes is a TNT byte of its own.
  unsigned low = (1u << count) - 1;
  t.left = static_cast<std::uint8_t>(count == 0 ? 0 : ((bits >> 1 & low) | (low + 1)) << 1);
  t.growth = pops ? -1 : static_cast<int>(run.call_count);
  if (!pops) run.next = {run.ip, mode};
  return put(run, t, pops, state, bits);
}

std::uint64_t RowFiller::fill(StateKey state, std::uint64_t ip, IpKind kind) {
  switch (kind) {
    case IpKind::kTarget:
      return fill_landing(state, ip);
    case IpKind::kOff:
    case IpKind::kOffSilent:
      return fill_off(state, ip, kind);
    case IpKind::kOn:
      return fill_on(state, ip);
  }
  return 0;
}

std::uint64_t RowFiller::fill_landing(StateKey mode, std::uint64_t target) {
  if (!has_room(0)) return 0;
  std::lock_guard hold(pool_->lock());
  Rows& rows = pool_->rows();
  if (const std::uint64_t row = rows.find(mode, target, IpKind::kTarget)) return row;
  if (!rows.takes_more()) return 0;
  Transition t;
  t.next = rows.key_of(member_->part, target, static_cast<CodeMode>(mode));
  const std::uint64_t row = t.pack();
  rows.put(mode, target, IpKind::kTarget, row);
  pool_->note_crowd();
  return row;
}

// Up to the branch that goes where the TIP says, that included.
std::uint64_t RowFiller::fill_tip(StateKey state) {
  CodeMode mode = pool_->rows().state(state).mode;
  Run run = begin(state);
  const Node& node = node_at(run.ip, mode);
  Step step = run_node(run, node, kMaxPush - 1);
  if (step == Step::kNone || too_large(run)) return 0;
  Transition t;
  if (step == Step::kStopped) {
    // More calls than one row can push: the TIP is for the next one.
    if (run.ip == run.effect_start) return 0;
    t.deferred = true;
    t.growth = static_cast<int>(run.call_count);
    run.next = {run.ip, mode};
  } else {
    bool returns = node.end.kind == InstructionClass::kReturn;
    if (!returns && !needs_target(node.end.kind)) return 0;
    bool drops_entry = returns && run.call_count == 0;
    if (returns && run.call_count != 0) --run.call_count;
    if (node.end.kind == InstructionClass::kIndirectCall)
      run.calls[run.call_count++] = node.end.next().value;
    branch(run, node, 0);
    t.growth = drops_entry ? -1 : static_cast<int>(run.call_count);
  }
  return put(run, t, !t.deferred, state, kTipSymbol);
}

// --- Off and on ------------------------------------------------------------------------------

// Up to the branch that the packet is bound to, that included; its record is made when it is known
// where the flow goes on. kStopped: at a call that has no place left; kNone: the complete decoder
// has to look at it.
RowFiller::Step RowFiller::run_off(Run& run, const Node& node, std::uint64_t to, IpKind kind,
                                   Rows::State& off) {
  if ((!node.usable && !node.lacks_code) || node.has_paging) return Step::kNone;
  bool silent = kind == IpKind::kOffSilent;
  if (silent && (!node.usable || skl014_ || !is_far(branch_kind(node.end.kind))))
    return Step::kNone;
  for (const Node::Direct& direct : directs_of(node)) {
    bool leaves = !silent && direct.to == to;
    bool returns = direct.kind == RecordKind::kCall && direct.to != direct.behind;
    bool stops = !leaves && returns && run.call_count == kMaxPush;
    run.insns += direct.insns - stops;
    run.tail += direct.insns - stops;
    if (stops) {
      run.ip = direct.from;
      return Step::kStopped;
    }
    ++run.branches;
    if (leaves) {
      off = {direct.from, CodeMode::k64, true, direct.kind, direct.behind, to};
      return Step::kEnd;
    }
    if (returns) run.calls[run.call_count++] = direct.behind;
    record(run, direct.from, direct.to, direct.kind);
  }
  if (!node.usable) return Step::kNone;
  run.insns += node.tail_insns;
  run.tail += node.tail_insns;
  run.branches += node.end.is_branch();
  off = {node.end.address.value,     CodeMode::k64,         true,
         branch_kind(node.end.kind), node.end.next().value, left_for(node.end, {to}).value};
  return Step::kEnd;
}

std::uint64_t RowFiller::fill_off(StateKey state, std::uint64_t to, IpKind kind) {
  CodeMode mode = pool_->rows().state(state).mode;
  Run run = begin(state);
  Rows::State off;
  Step step = run_off(run, node_at(run.ip, mode), to, kind, off);
  if (step == Step::kNone || too_large(run)) return 0;
  Transition t;
  t.growth = static_cast<int>(run.call_count);
  if (step == Step::kStopped) {
    // More calls than one row can push: the packet is for the next one.
    t.deferred = true;
    run.next = {run.ip, mode};
  } else {
    off.mode = mode;
    decide(run);
    run.next = off;
  }
  return put(run, t, false, state, to, kind);
}

// As RecordSink does it. Flow that comes back to where the branch led was away for no record.
std::uint64_t RowFiller::fill_on(StateKey state, std::uint64_t ip) {
  const Rows::State off = pool_->rows().state(state);
  Run run = begin(state);
  auto leaves = [&](std::uint64_t to) {
    return off.off_kind != RecordKind::kConditional || to != off.off_next;
  };
  bool came_back = is_far(off.off_kind) || (off.off_told_to == ip && leaves(ip));
  std::uint64_t to = came_back ? ip : off.off_told_to;
  bool led_somewhere = to != 0 && leaves(to);
  if (led_somewhere) record(run, off.ip, to, off.off_kind, kFlagTimeExact);
  if (!came_back) {
    auto filter = static_cast<std::uint16_t>(EdgeCause::kFilter);
    const Address from{led_somewhere ? to : off.ip};
    std::uint8_t flags = kFlagTimeExact | kernel_flag(from);
    if (led_somewhere) flags |= kFlagAsync;
    records_.push_back({from, {}, 0, 0, RecordKind::kDisable, flags, filter});
    records_.push_back({{}, {ip}, 0, 0, RecordKind::kEnable, kFlagTimeExact, filter});
  }
  // The first record is the TIP.PGD's.
  run.lead_count = std::min<std::size_t>(1, records_.size());
  run.decided = true;
  run.next = {ip, off.mode};
  return put(run, {}, false, state, ip, IpKind::kOn);
}

}  // namespace tailtrace::pt
