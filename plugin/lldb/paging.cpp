#include "plugin/lldb/paging.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace tailtrace::lldb_plugin {
namespace {

constexpr std::uint64_t kPage = 50;  // as the command line has it

struct Asked {
  Words options;
  std::uint64_t oldest = 0;  // of the range, counted back from the newest
};
std::map<std::pair<lldb::user_id_t, std::string>, Asked>& asked_last() {
  static std::map<std::pair<lldb::user_id_t, std::string>, Asked> known;
  return known;
}

// The 14 of `-14,-3`; nothing when it is no such range.
std::uint64_t from_newest(const std::string& word) {
  bool is_negative = word.size() > 1 && word[0] == '-' && std::isdigit(word[1]) != 0;
  return is_negative ? std::strtoull(word.c_str() + 1, nullptr, 10) : 0;
}

}  // namespace

Words with_range(Session& session, const std::string& verb, Words words) {
  if (verb != "history" && verb != "calls") return words;
  Asked& asked = asked_last()[{session.debugger().GetID(), verb}];
  const std::string last = words.empty() ? std::string() : words.back();
  Words options;
  std::ranges::copy_if(words, std::back_inserter(options),
                       [](const std::string& word) { return word.starts_with("--"); });
  if (last != "-") {
    asked = {options, last.empty() || last.starts_with("--") ? kPage : from_newest(last)};
    return words;
  }
  if (options.empty()) options = asked.options;
  std::string range = fmt::format("-{},-{}", asked.oldest + kPage, asked.oldest + 1);
  asked = {options, asked.oldest + kPage};
  options.push_back(std::move(range));
  return options;
}

}  // namespace tailtrace::lldb_plugin
