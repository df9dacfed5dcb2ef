#include "decoder/history/queries/flow_graph.h"

#include <algorithm>

namespace tailtrace {
namespace {

constexpr std::uint32_t kUnknown = ~0u;

}  // namespace

FlowGraph::FlowGraph(const InstructionAt& code, const IsPart& is_part,
                     const std::vector<Address>& entries,
                     const std::map<Address, std::set<Address>>& jumps) {
  std::vector<Address> open = entries;
  for (const auto& [jump, targets] : jumps)
    if (is_part(jump)) open.insert(open.end(), targets.begin(), targets.end());
  read(code, is_part, std::move(open), jumps);
  connect();
  order_from_exit();
  find_ways_out();
}

void FlowGraph::read(const InstructionAt& code, const IsPart& is_part, std::vector<Address> open,
                     const std::map<Address, std::set<Address>>& jumps) {
  while (!open.empty() && edges_.size() < kMaxInstructions) {
    Address at = open.back();
    open.pop_back();
    if (edges_.contains(at) || !is_part(at)) continue;
    Edges& edges = edges_[at];
    std::optional<Instruction> insn = code(at);
    if (!insn) {
      edges.leaves = true;
      continue;
    }
    switch (insn->kind) {
      case InstructionClass::kConditional:
        edges.to = {insn->next(), insn->target};
        break;
      case InstructionClass::kJump:
        edges.to = {insn->target};
        break;
      case InstructionClass::kIndirectJump:
        if (auto seen = jumps.find(at); seen != jumps.end())
          edges.to.assign(seen->second.begin(), seen->second.end());
        edges.leaves = true;  // it may lead elsewhere too
        break;
      case InstructionClass::kReturn:
      case InstructionClass::kFarJump:
      case InstructionClass::kFarReturn:
      case InstructionClass::kSystemReturn:
        edges.leaves = true;
        break;
      default:  // calls come back
        edges.to = {insn->next()};
    }
    open.insert(open.end(), edges.to.begin(), edges.to.end());
  }
}

void FlowGraph::connect() {
  std::uint32_t count = kExit + 1;
  for (const auto& [address, edges] : edges_) nodes_[address] = count++;
  next_.resize(count);
  before_.resize(count);
  for (const auto& [address, edges] : edges_) {
    std::uint32_t node = nodes_[address];
    bool leaves = edges.leaves;
    for (Address to : edges.to) {
      auto known = nodes_.find(to);
      leaves = leaves || known == nodes_.end();
      if (known != nodes_.end()) next_[node].push_back(known->second);
    }
    if (leaves) next_[node].push_back(kExit);
  }
  for (std::uint32_t node = 0; node < count; ++node)
    for (std::uint32_t to : next_[node]) before_[to].push_back(node);
}

// Depth first from the exit backwards, without recursion: functions may be long. Loops that have no
// way out are given one where they are met.
void FlowGraph::order_from_exit() {
  std::vector<bool> seen(next_.size());
  struct Visit {
    std::uint32_t node;
    std::size_t edge = 0;
  };
  std::vector<Visit> stack;
  auto visit_from = [&](std::uint32_t root) {
    seen[root] = true;
    stack.push_back({root});
    while (!stack.empty()) {
      Visit& visit = stack.back();
      if (visit.edge == before_[visit.node].size()) {
        order_.push_back(visit.node);
        stack.pop_back();
        continue;
      }
      std::uint32_t node = before_[visit.node][visit.edge++];
      if (seen[node]) continue;
      seen[node] = true;
      stack.push_back({node});
    }
  };
  // First what leads out, to find what does not.
  visit_from(kExit);
  for (std::uint32_t node = static_cast<std::uint32_t>(next_.size()); node-- != 1;) {
    if (seen[node]) continue;
    next_[node].push_back(kExit);
    before_[kExit].push_back(node);
    visit_from(node);
  }
  // With the ways out that were added, once more, so that the order is that of the whole graph.
  order_.clear();
  std::fill(seen.begin(), seen.end(), false);
  visit_from(kExit);
  std::reverse(order_.begin(), order_.end());
  rank_.assign(next_.size(), 0);
  for (std::uint32_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = i;
}

std::uint32_t FlowGraph::common(std::uint32_t a, std::uint32_t b) const {
  while (a != b) {
    while (rank_[a] > rank_[b]) a = passed_by_[a];
    while (rank_[b] > rank_[a]) b = passed_by_[b];
  }
  return a;
}

// Post-dominators by the iteration of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance
// Algorithm" (2001), on the graph turned round.
void FlowGraph::find_ways_out() {
  passed_by_.assign(next_.size(), kUnknown);
  passed_by_[kExit] = kExit;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 1; i < order_.size(); ++i) {
      std::uint32_t node = order_[i], nearest = kUnknown;
      for (std::uint32_t to : next_[node]) {
        if (passed_by_[to] == kUnknown) continue;
        nearest = nearest == kUnknown ? to : common(nearest, to);
      }
      if (nearest == kUnknown || passed_by_[node] == nearest) continue;
      passed_by_[node] = nearest;
      changed = true;
    }
  }
}

std::uint32_t FlowGraph::node_of(Address address) const {
  auto known = nodes_.find(address);
  return known == nodes_.end() ? kUnknown : known->second;
}

bool FlowGraph::must_pass(Address from, Address by) const {
  std::uint32_t node = node_of(from), wanted = node_of(by);
  if (node == kUnknown || wanted == kUnknown) return false;
  while (node != wanted && node != kExit) node = passed_by_[node];
  return node == wanted;
}

bool FlowGraph::decides(Address branch, Address to, Address about) const {
  std::uint32_t node = node_of(branch);
  if (node == kUnknown || !must_pass(to, about)) return false;
  // Executed again behind itself: a loop is kept going by the branch that leads back.
  std::uint32_t wanted = node_of(about), at = passed_by_[node];
  while (at != wanted && at != kExit) at = passed_by_[at];
  return at != wanted;
}

}  // namespace tailtrace
