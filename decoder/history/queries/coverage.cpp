#include "decoder/history/queries/coverage.h"

#include <algorithm>
#include <set>

#include "decoder/history/counts.h"
#include "decoder/history/queries/inlined_copies.h"

namespace tailtrace {
namespace {

// One history's part.
class HistoryPart {
 public:
  HistoryPart(Symbolizer& symbols, std::map<std::string, FileCoverage>& files)
      : symbols_(symbols), files_(files), copies_(symbols) {}

  // Of each library that was in one place, apart.
  void count(Address address, Epoch when, const ExecutionCount& count) {
    auto [counted, added] = counts_.try_emplace({address, &symbols_.function_in(address, when)});
    if (added) counted->second.when = when;
    counted->second.count.add(count);
  }

  // Adds all that was counted to the files. Returns how many of these instructions have no source
  // line.
  std::uint64_t finish() {
    std::uint64_t without_line = 0;
    for (const auto& [place, counted] : counts_)
      if (!add(*place.second, place.first, counted)) without_line += counted.count.times;
    for (const Begun& begun : begun_)
      was_executed(begun.at, begun.line, copies_.whose(begun.at.copies, begun.line));
    for (auto& [key, times] : most_)
      files_[std::string(std::get<2>(key))].lines[std::get<3>(key)].times += times;
    for (auto& [name, times] : entries_) {
      FunctionCoverage& function = files_[name.first].functions[name.second];
      function.times += std::max<std::uint64_t>(times, 1);
    }
    for (const std::vector<SourceLine>* unit : units_)
      for (const SourceLine& line : *unit)
        if (auto file = files_.find(std::string(line.file)); file != files_.end())
          file->second.lines.try_emplace(line.line);
    return without_line;
  }

 private:
  struct Counted {
    ExecutionCount count;
    Epoch when;  // one in which it was executed
  };

  // An instruction: in which copies of functions, and how often.
  struct Executed {
    Address whole;  // the function that it is of
    std::vector<InlinedCopies::Copy> copies;
    std::uint64_t times = 0;
  };
  // A line that begins at one of another line.
  struct Begun {
    Executed at;
    SourceLine line;
  };

  void was_executed(const Executed& at, const SourceLine& line, std::size_t copy) {
    std::uint64_t& most = most_[{at.whole, copy, line.file, line.line}];
    most = std::max(most, at.times);
  }

  // False when the instruction has no source line.
  bool add(const Function& function, Address address, const Counted& counted) {
    const auto& [count, when] = counted;
    std::optional<SourceLine> line = symbols_.line_at(address, when);
    if (!line || line->line == 0) return false;
    // What compilers put apart of a function has the same entry.
    Executed at{function.entry.is_null() ? function.begin : function.entry,
                copies_.at(function, address, when), count.times};
    was_executed(at, *line, copies_.whose_own(at.copies, *line));
    for (const SourceLine& begins : symbols_.lines_beginning_at(address, when))
      if (begins.line != line->line || begins.file != line->file) begun_.push_back({at, begins});
    FileCoverage& file = files_[std::string(line->file)];
    LineCoverage& covered = file.lines[line->line];
    if (count.kind == InstructionClass::kConditional) {
      auto in_file = symbols_.address_in_file(address, when);
      BranchCoverage& branch = covered.branches[in_file ? *in_file : address.value];
      branch.taken += count.transfers;
      branch.not_taken += count.times - count.transfers;
    }
    add_function(function, address, counted, *line);
    if (const std::vector<SourceLine>* unit = symbols_.lines_of_unit(address, when))
      units_.insert(unit);
    return true;
  }

  void add_function(const Function& function, Address address, const Counted& counted,
                    const SourceLine& line) {
    if (function.name.empty() || function.entry.is_null()) return;
    std::optional<SourceLine> opens = symbols_.line_at(function.entry, counted.when);
    if (!opens || opens->file != line.file) return;
    std::string file(line.file);
    std::uint64_t& times = entries_[{file, function.name}];
    if (function.entry == address) times += counted.count.times;
    files_[file].functions[function.name].line = opens->line;
  }

  Symbolizer& symbols_;
  std::map<std::string, FileCoverage>& files_;
  std::map<std::pair<Address, const Function*>, Counted> counts_;
  InlinedCopies copies_;
  std::map<std::tuple<Address, std::size_t, std::string_view, unsigned>, std::uint64_t> most_;
  std::vector<Begun> begun_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> entries_;
  std::set<const std::vector<SourceLine>*> units_;
};

// What a child has of its parent's past counts where it was executed.
bool is_fork(const BranchRecord& record) {
  return record.kind == RecordKind::kEnable &&
         record.extra == static_cast<std::uint16_t>(EdgeCause::kFork);
}

}  // namespace

std::size_t FileCoverage::lines_executed() const {
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [](const auto& line) { return line.second.times != 0; }));
}

void Coverage::add(const History& history, Symbolizer& symbols, Range range) {
  if (range.size() == 0) return;
  HistoryPart part(symbols, files_);
  each_execution(
      history, range, {0}, {~0ull},
      [&](Address address, Epoch when, const ExecutionCount& count) {
        instructions_ += count.times;
        part.count(address, when, count);
      },
      [](const HistoryRun& run) { return !is_fork(*run.record); });
  without_line_ += part.finish();
}

}  // namespace tailtrace
