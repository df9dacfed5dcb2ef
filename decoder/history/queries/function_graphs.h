// FunctionGraphs: the control flow of the functions that a chain of reasons goes through.
//
// A compiler may put a function's unlikely parts elsewhere; they are one function here, as long as
// the symbolizer knows them by the same entry.
//
// Threading: one thread at a time. The history and the symbolizer must outlive it.
#pragma once

#include <memory>

#include "decoder/code/code_reader.h"
#include "decoder/history/history.h"
#include "decoder/history/queries/flow_graph.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

// Whether two stretches of code are of the same function.
bool same_function(const Function& a, const Function& b);

class FunctionGraphs {
 public:
  FunctionGraphs(const History& history, Symbolizer& symbols);

  // Whether the branch of a function at `branch`, having led to `to`, decided that `about` would be
  // executed.
  bool decides(const Function& function, Address branch, Address to, Address about, Epoch epoch);

 private:
  struct Known {
    std::set<Address> entries;
    std::unique_ptr<FlowGraph> graph;
    int readings = 0;
  };

  bool is_part(const Function& function, Address address, Epoch epoch);
  bool add(Known& known, const Function& function, Address address, Epoch epoch);
  std::optional<Instruction> instruction_at(Address address, Epoch epoch);
  void read(Known& known, const Function& function, Epoch epoch);

  Symbolizer& symbols_;
  CodeReader code_;
  std::map<Address, std::set<Address>> jumps_;
  std::map<std::pair<Address, Epoch>, Known> graphs_;  // by entry, or begin where none is known
};

}  // namespace tailtrace
