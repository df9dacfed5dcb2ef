#include "decoder/history/function_name.h"

#include <algorithm>
#include <cctype>

namespace tailtrace {
namespace {

constexpr std::string_view kOperator = "operator";

bool is_operator(std::string_view part) {
  if (!part.starts_with(kOperator)) return false;
  const char next = part.size() == kOperator.size() ? '\0' : part[kOperator.size()];
  return std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_';
}

// Of a part as "<Queue<u8> as Iterator>" or "<Queue<u8>>", which Rust's names of methods begin
// with, the type that has the method; empty for other parts.
std::string_view type_with_method(std::string_view part) {
  if (!part.starts_with('<') || !part.ends_with('>')) return {};
  part = part.substr(1, part.size() - 2);
  int depth = 0;
  for (std::size_t i = 0; i < part.size(); ++i) {
    depth += bracket(part[i]);
    if (depth == 0 && part.substr(i).starts_with(" as ")) return part.substr(0, i);
  }
  return part;
}

// Whether these are the last ones, as they are or plain.
bool are_last(const std::vector<std::string_view>& wants,
              const std::vector<std::string_view>& has) {
  if (wants.size() > has.size()) return false;
  return std::equal(wants.rbegin(), wants.rend(), has.rbegin(), [](auto wanted, auto part) {
    return wanted == part || wanted == plain_part(part);
  });
}

}  // namespace

std::string_view without_parameters(std::string_view name) {
  constexpr std::string_view kOwn = "operator()", kUnnamed = "(anonymous namespace)";
  // "operator()(int)": its own parentheses are part of the name.
  std::size_t at = name.find(kOwn);
  at = at == std::string_view::npos ? 0 : at + kOwn.size();
  // "(anonymous namespace)::f(int)": so are those that do not open the parameters.
  while ((at = name.find('(', at)) != std::string_view::npos &&
         name.substr(at).starts_with(kUnnamed))
    at += kUnnamed.size();
  return name.substr(0, at);
}

std::vector<std::string_view> name_parts(std::string_view name) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  auto is_rust_argument = [&](std::size_t i) {
    return i != begin && name.substr(i).starts_with("::<");
  };
  bool is_last = is_operator(name);
  for (std::size_t i = 0; i < name.size() && !is_last; ++i) {
    depth += bracket(name[i]);
    if (name[i] != ':' || depth != 0 || !name.substr(i).starts_with("::") || is_rust_argument(i))
      continue;
    if (i != begin) parts.push_back(name.substr(begin, i - begin));
    begin = ++i + 1;
    is_last = is_operator(name.substr(begin));
  }
  parts.push_back(name.substr(begin));
  return parts;
}

std::string_view plain_part(std::string_view part) {
  part = part.substr(0, part.find("[abi:"));
  const std::size_t arguments = is_operator(part) ? part.find(" <") : part.find('<');
  if (part.ends_with('>') && arguments != std::string_view::npos && arguments != 0)
    part = part.substr(0, arguments);
  return part.ends_with("::") ? part.substr(0, part.size() - 2) : part;
}

bool has_name(const Function& function, std::string_view name) {
  return !name.empty() &&
         (function.name == name || function.symbol_name == name || function.debug_name == name ||
          without_parameters(function.name) == name);
}

bool is_called(const Function& function, std::string_view name) {
  if (has_name(function, name)) return true;
  const std::string_view whole = function.name;
  const std::string_view shown = without_parameters(whole), wanted = without_parameters(name);
  const std::string_view takes = name.substr(wanted.size());
  if (wanted.empty() || (!takes.empty() && takes != whole.substr(shown.size()))) return false;
  const std::vector<std::string_view> wants = name_parts(wanted);
  const std::vector<std::string_view> has = name_parts(shown);
  if (are_last(wants, has)) return true;
  const std::string_view type = type_with_method(has.front());
  if (type.empty()) return false;
  std::vector<std::string_view> by_type = name_parts(type);
  by_type.insert(by_type.end(), has.begin() + 1, has.end());
  return are_last(wants, by_type);
}

}  // namespace tailtrace
