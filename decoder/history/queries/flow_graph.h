// FlowGraph: the control flow of one function, and which of its branches decide whether an
// instruction is executed.
//
// Direct branches are read from the code. Where indirect jumps lead is what the caller has seen of
// them. A branch decides about an instruction if one of its ways out surely leads there and another
// need not: the instruction is control-dependent on it, in the words of Ferrante, Ottenstein and
// Warren, "The Program Dependence Graph and Its Use in Optimization" (1987).
//
// Threading: immutable once made.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "decoder/code/instruction.h"

namespace tailtrace {

class FlowGraph {
 public:
  // Functions beyond this are known in part.
  static constexpr std::size_t kMaxInstructions = 1 << 16;

  // Whether an address is of the function.
  using IsPart = std::function<bool(Address)>;
  // Nothing where the code is not known, or nothing follows.
  using InstructionAt = std::function<std::optional<Instruction>(Address)>;

  // `jumps` are the targets seen of each indirect jump, and every address in those of the function
  // and in `entries` is one from where it is read.
  FlowGraph(const InstructionAt& code, const IsPart& is_part, const std::vector<Address>& entries,
            const std::map<Address, std::set<Address>>& jumps);

  // Whether the branch at `branch`, having led to `to`, decided that `about` would be executed.
  bool decides(Address branch, Address to, Address about) const;

  bool knows(Address address) const { return nodes_.contains(address); }

  // Whether every way from `from` to the end of the function passes `by`. False for addresses that
  // are not known.
  bool must_pass(Address from, Address by) const;

 private:
  static constexpr std::uint32_t kExit = 0;  // the node behind all ends

  void read(const InstructionAt& code, const IsPart& is_part, std::vector<Address> open,
            const std::map<Address, std::set<Address>>& jumps);
  void connect();
  void find_ways_out();
  void order_from_exit();
  std::uint32_t common(std::uint32_t a, std::uint32_t b) const;
  std::uint32_t node_of(Address address) const;

  struct Edges {
    std::vector<Address> to;
    bool leaves = false;  // the function may be left here
  };
  std::map<Address, Edges> edges_;
  std::unordered_map<Address, std::uint32_t> nodes_;
  std::vector<std::vector<std::uint32_t>> next_, before_;
  std::vector<std::uint32_t> order_;  // nodes, each behind those that lead out of it; exit first
  std::vector<std::uint32_t> rank_;   // place in order_
  std::vector<std::uint32_t> passed_by_;  // nearest node that all ways out of it pass
};

}  // namespace tailtrace
