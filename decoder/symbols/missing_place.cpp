#include "decoder/symbols/missing_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace tailtrace {
namespace {

// Of what is told by name.
constexpr std::size_t kMostTold = 3;

// "a, b, c and 4 more"
std::string told(const std::vector<std::string>& names) {
  const std::size_t count = std::min(names.size(), kMostTold);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + count, ", "));
  return count == names.size() ? text : fmt::format("{} and {} more", text, names.size() - count);
}

// "`a`, `b`, if one is meant"; empty when there is none.
std::string meant(const std::vector<std::string>& texts) {
  std::string all;
  for (std::size_t i = 0; i < std::min(texts.size(), kMostTold); ++i)
    all += fmt::format("{}`{}`", i == 0 ? "" : ", ", texts[i]);
  return all.empty() ? all : all + (texts.size() == 1 ? ", if that is meant" : ", if one is meant");
}

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

// How many letters have to be put in, taken out or changed to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// The end of a name, of so many plain parts, in small letters.
std::string end_of_name(std::string_view name, std::size_t part_count) {
  const auto parts = name_parts(without_parameters(name));
  std::string end;
  for (std::size_t i = parts.size() - std::min(parts.size(), part_count); i < parts.size(); ++i)
    end += (end.empty() ? "" : "::") + lower(plain_part(parts[i]));
  return end;
}

// The names of functions that are most like one that nothing has.
class SimilarNames {
 public:
  explicit SimilarNames(std::string_view wanted)
      : part_count_(name_parts(without_parameters(wanted)).size()),
        wanted_(end_of_name(wanted.substr(0, kMostCompared_bytes), part_count_)),
        least_(wanted_.size() < 3 ? 0 : (wanted_.size() + 1) / 3) {}

  void see(const Function& function) {
    const std::string end = end_of_name(function.name, part_count_);
    const auto [shorter, longer] = std::minmax({end.size(), wanted_.size()});
    if (end.empty() || longer - shorter > least_ || longer > kMostCompared_bytes) return;
    const std::size_t changes = distance(end, wanted_);
    if (changes > least_) return;
    if (changes < least_) names_.clear();
    least_ = changes;
    if (names_.size() < kMostTold) names_.emplace(without_parameters(function.name));
  }

  std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }

 private:
  static constexpr std::size_t kMostCompared_bytes = 256;
  std::size_t part_count_;
  std::string wanted_;
  std::size_t least_;  // changes, of those seen so far; before that as many as may be
  std::set<std::string> names_;
};

// The files of which something is not known.
template <class Lacks>
std::vector<std::string> modules_that(ProcessSymbols& symbols, const Lacks& lack) {
  std::vector<std::string> names;
  for (const ProcessSymbols::Module& module : symbols.modules())
    if (module.symbols == nullptr || lack(*module.symbols))
      names.emplace_back(base_name(module.path));
  return names;
}

bool is_loaded(std::string_view module, const ProcessSymbols& symbols) {
  return std::ranges::any_of(symbols.mappings(), [module](const Mapping& mapping) {
    return is_module(mapping.path, module);
  });
}

std::optional<Error> missing_function(const Location& location, ProcessSymbols& symbols,
                                      const std::function<bool()>& wanted) {
  const std::string text = location_text(location);
  if (location.offset && is_loaded(location.name, symbols)) return std::nullopt;
  if (!location.module.empty() && !is_loaded(location.module, symbols))
    return Error{ErrorCode::kNegative, fmt::format("there is no function `{}`", text),
                 fmt::format("no file is called `{}`", location.module), "", ""};
  SimilarNames similar(location.name);
  bool is_chosen = false;
  const bool all = symbols.each_function([&](const Function& function) {
    if (location.module.empty() || is_module(function.module, location.module)) {
      similar.see(function);
      is_chosen = is_chosen || (function.is_resolver && function.symbol_name == location.name);
    }
    return wanted() && !means(location, function);
  });
  if (!all) return std::nullopt;
  if (is_chosen)
    return Error{ErrorCode::kNegative, fmt::format("nobody knows where `{}` is", text),
                 "it is chosen as the program starts, and what chooses it names none",
                 "the name of the one that is chosen", ""};
  Error error{ErrorCode::kNegative, fmt::format("there is no function `{}`", text),
              "no file of which code was executed has it", meant(similar.names()), ""};
  const auto nameless = modules_that(symbols, [](auto& module) { return !module.has_names(); });
  if (!nameless.empty()) error.why += fmt::format("; there are no names in {}", told(nameless));
  return error;
}

// Of a file that has code: the next line that has some, or a statement that begins there.
std::optional<Error> missing_line_of(const Location& location, bool entry,
                                     const std::set<unsigned>& lines) {
  const auto next = lines.lower_bound(location.line);
  if (next != lines.end() && *next == location.line) return std::nullopt;
  const unsigned nearest = next == lines.end() ? *lines.rbegin() : *next;
  return Error{
      ErrorCode::kNegative,
      fmt::format("{} `{}`", entry ? "no statement begins at" : "there is no code of",
                  location_text(location)),
      fmt::format("the {} such line is {}", next == lines.end() ? "last" : "next", nearest),
      meant({fmt::format("{}:{}", location.file, nearest)}), ""};
}

std::optional<Error> missing_line(const Location& location, bool entry, ProcessSymbols& symbols) {
  std::set<unsigned> lines;
  std::set<std::string_view> elsewhere;  // files of that name in other folders
  const std::string_view name = base_name(location.file);
  const bool all = symbols.each_line(entry, [&](const SourceLine& line) {
    if (ends_path(line.file, location.file))
      lines.insert(line.line);
    else if (ends_path(line.file, name))
      elsewhere.insert(line.file);
  });
  if (!all) return std::nullopt;
  if (!lines.empty()) return missing_line_of(location, entry, lines);
  Error error{ErrorCode::kNegative,
              fmt::format("there is no code of `{}`", location_text(location)),
              "no debug information has such a file", "", ""};
  const auto lacking = modules_that(symbols, [](auto& module) { return !module.has_debug_info(); });
  if (!lacking.empty()) {
    error.why += fmt::format("; there is none of {}", told(lacking));
    error.fix = "compile with -g, install debug files, or let --debuginfod fetch them";
  }
  std::vector<std::string> others;
  for (std::string_view file : elsewhere)
    others.push_back(fmt::format("{}:{}", file, location.line));
  if (!others.empty()) error.fix = meant(others);
  return error;
}

std::optional<Error> missing_address(Address address, const ProcessSymbols& symbols) {
  if (symbols.has_anything(address)) return std::nullopt;
  return Error{ErrorCode::kNegative, fmt::format("there is no code at {:#x}", address.value),
               "no file is mapped there", "MODULE+OFFSET, if it is an address in a file", ""};
}

}  // namespace

std::optional<Error> missing_place(const Location& location, bool entry, ProcessSymbols& symbols,
                                   const std::function<bool()>& wanted) {
  if (location.address) return missing_address(*location.address, symbols);
  return location.line != 0 ? missing_line(location, entry, symbols)
                            : missing_function(location, symbols, wanted);
}

}  // namespace tailtrace
