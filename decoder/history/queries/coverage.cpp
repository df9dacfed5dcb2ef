#include "decoder/history/queries/coverage.h"

#include <algorithm>
#include <set>

#include "decoder/history/counts.h"

namespace tailtrace {
namespace {

// One history's part.
class HistoryPart {
 public:
  HistoryPart(Symbolizer& symbols, std::map<std::string, FileCoverage>& files)
      : symbols_(symbols), files_(files) {}

  // False when the instruction has no source line.
  bool add(Address address, const ExecutionCount& count) {
    std::optional<SourceLine> line = symbols_.line_at(address);
    if (!line || line->line == 0) return false;
    const Function& function = symbols_.function_at(address);
    std::uint64_t& most = most_[{function.begin, line->file, line->line}];
    most = std::max(most, count.times);
    FileCoverage& file = files_[std::string(line->file)];
    LineCoverage& covered = file.lines[line->line];
    if (count.kind == InstructionClass::kConditional) {
      auto in_file = symbols_.address_in_file(address);
      BranchCoverage& branch = covered.branches[in_file ? *in_file : address.value];
      branch.taken += count.transfers;
      branch.not_taken += count.times - count.transfers;
    }
    add_function(function, address, count, *line);
    if (const std::vector<SourceLine>* unit = symbols_.lines_of_unit(address)) units_.insert(unit);
    return true;
  }

  void finish() {
    for (auto& [key, times] : most_)
      files_[std::string(std::get<1>(key))].lines[std::get<2>(key)].times += times;
    for (auto& [name, times] : entries_) {
      FunctionCoverage& function = files_[name.first].functions[name.second];
      function.times += std::max<std::uint64_t>(times, 1);
    }
    for (const std::vector<SourceLine>* unit : units_)
      for (const SourceLine& line : *unit)
        if (auto file = files_.find(std::string(line.file)); file != files_.end())
          file->second.lines.try_emplace(line.line);
  }

 private:
  void add_function(const Function& function, Address address, const ExecutionCount& count,
                    const SourceLine& line) {
    if (function.name.empty() || function.entry.is_null()) return;
    std::optional<SourceLine> opens = symbols_.line_at(function.entry);
    if (!opens || opens->file != line.file) return;
    std::string file(line.file);
    std::uint64_t& times = entries_[{file, function.name}];
    if (function.entry == address) times += count.times;
    files_[file].functions[function.name].line = opens->line;
  }

  Symbolizer& symbols_;
  std::map<std::string, FileCoverage>& files_;
  std::map<std::tuple<Address, std::string_view, unsigned>, std::uint64_t> most_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> entries_;
  std::set<const std::vector<SourceLine>*> units_;
};

}  // namespace

std::size_t FileCoverage::lines_executed() const {
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [](const auto& line) { return line.second.times != 0; }));
}

void Coverage::add(const History& history, Symbolizer& symbols, Range range) {
  if (range.size() == 0) return;
  HistoryPart part(symbols, files_);
  for (const auto& [address, count] : count_executions(history, range, {0}, {~0ull})) {
    instructions_ += count.times;
    if (!part.add(address, count)) without_line_ += count.times;
  }
  part.finish();
}

}  // namespace tailtrace
