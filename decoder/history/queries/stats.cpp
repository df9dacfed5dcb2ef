#include "decoder/history/queries/stats.h"

#include <algorithm>
#include <unordered_map>

#include "decoder/history/counts.h"
#include "decoder/history/queries/find.h"

namespace tailtrace {
namespace {

// What is not told by the instructions alone.
void add_record(const HistoryRun& run, Range range, HistoryStats& stats) {
  if (run.first + run.step.items() < range.first) return;
  std::uint64_t gap = run.first + run.step.shown;
  if (run.step.has_gap && gap >= range.first && gap <= range.last)
    ++stats.gaps[std::string(reason_name(run.step.gap.reason))];
  if (is_event(*run.record)) ++stats.events[std::string(kind_name(run.record->kind))];
  if (run.record->time == 0) return;
  if (stats.first_time == 0) stats.first_time = run.record->time;
  stats.last_time = run.record->time;
}

// By name and module: a function may be in several stretches.
class Functions {
 public:
  void add(const Function& function, Address address, const ExecutionCount& count) {
    FunctionStats*& stats = known_[&function];
    if (stats == nullptr) {
      stats = &all_[{function.name, function.module}];
      stats->name = function.name;
      stats->module = function.module;
    }
    stats->instructions += count.times;
    if (function.entry == address) stats->entries += count.times;
  }

  std::vector<FunctionStats> ordered() {
    std::vector<FunctionStats> functions;
    for (auto& [key, stats] : all_) functions.push_back(std::move(stats));
    std::stable_sort(functions.begin(), functions.end(),
                     [](const FunctionStats& a, const FunctionStats& b) {
                       return a.instructions > b.instructions;
                     });
    return functions;
  }

 private:
  std::map<std::pair<std::string, std::string>, FunctionStats> all_;
  std::unordered_map<const Function*, FunctionStats*> known_;
};

}  // namespace

HistoryStats make_stats(const History& history, Symbolizer& symbols, Range range) {
  HistoryStats stats;
  if (range.size() == 0) return stats;
  Functions functions;
  std::map<Address, ExecutionCount> counts;
  each_execution(
      history, range, {0}, {~0ull},
      [&](Address address, Epoch when, const ExecutionCount& count) {
        counts[address].add(count);
        functions.add(symbols.function_in(address, when), address, count);
      },
      [&](const HistoryRun& run) {
        add_record(run, range, stats);
        return true;
      });
  for (const auto& [address, count] : counts) {
    stats.instructions += count.times;
    ++stats.distinct_instructions;
    if (count.kind == InstructionClass::kConditional) {
      stats.conditionals += count.times;
      stats.taken += count.transfers;
    }
    if (count.transfers != 0)
      stats.branches[std::string(class_name(count.kind))] += count.transfers;
  }
  stats.functions = functions.ordered();
  return stats;
}

}  // namespace tailtrace
