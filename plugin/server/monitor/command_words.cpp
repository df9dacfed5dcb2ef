#include "plugin/server/monitor/command_words.h"

#include <fmt/core.h>

#include <algorithm>

#include "decoder/base/result.h"

namespace tailtrace {

std::string_view CommandWords::word() {
  std::size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
  std::size_t end = std::min(rest.find(' ', begin), rest.size());
  std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

bool CommandWords::stretch(std::int64_t& first, std::uint64_t& count) {
  return number(first) && number(count) && ended() && first != 0;
}

std::string refusal(std::string what, std::string why, std::string fix) {
  return Error{ErrorCode::kUsage, std::move(what), std::move(why), std::move(fix), {}}.to_string() +
         "\n";
}

std::string bad_arguments(std::string_view usage) {
  return refusal("cannot read the command", fmt::format("it is not `{}`", usage),
                 "see `monitor tailtrace help`");
}

}  // namespace tailtrace
