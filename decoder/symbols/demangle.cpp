#include "decoder/symbols/demangle.h"

#include <cxxabi.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "decoder/history/function_name.h"
#include "decoder/symbols/rust_name.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxMangled_bytes = 1 << 14;
constexpr std::string_view kFortran = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr double kMaxUnfolded_bytes = 1 << 28;

// Back references (`S_`, `S1_`, `T0_`) may refer to what holds back references itself, so that a
// few hundred bytes can unfold into gigabytes. Whatever their order, n of them multiply the length
// by no more than 3^(n/3).
bool may_unfold_far(const std::string& name) {
  std::size_t references = 0;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] != 'S' && name[i] != 'T') continue;
    std::size_t j = i + 1;
    while (j < name.size() && (std::isdigit(static_cast<unsigned char>(name[j])) != 0 ||
                               std::isupper(static_cast<unsigned char>(name[j])) != 0))
      ++j;
    if (j < name.size() && name[j] == '_') ++references;
  }
  double length = static_cast<double>(name.size());
  return length * std::pow(3.0, static_cast<double>(references) / 3) > kMaxUnfolded_bytes;
}

// "non-virtual thunk to ", "guard variable for " and their like: no function, and without a type.
bool is_special(const std::string& name) {
  return name.starts_with("_ZT") || name.starts_with("_ZG");
}

// Where a function's name begins in its demangled text, behind the type that instances of templates
// begin with: at the last blank outside of any brackets before the parameters or `operator`.
std::size_t name_begin(std::string_view text) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string_view rest = text.substr(i);
    if (depth == 0 && rest.starts_with("operator")) return begin;
    if (depth == 0 && rest.starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (depth == 0 && text[i] == '(' && !text.substr(0, i).ends_with("decltype ") &&
               !rest.starts_with("(auto) ")) {
      // `decltype (...)` is a type, `decltype(auto)` too; `void (*f())()` is left as it is.
      return rest.starts_with("(*") || rest.starts_with("(&") ? 0 : begin;
    } else if (depth == 0 && text[i] == ' ' &&
               (!rest.starts_with(" (") || rest.substr(1).starts_with(kUnnamed))) {
      begin = i + 1;
    } else {
      depth += bracket(text[i]);
    }
  }
  return 0;
}

// "module::procedure" for "__module_MOD_procedure", as gfortran has it: Fortran's names have no
// capitals. Nothing for any other name.
std::optional<std::string> fortran_name(std::string_view name) {
  constexpr std::string_view kBegin = "__", kOf = "_MOD_";
  const std::size_t of = name.find(kOf);
  if (!name.starts_with(kBegin) || of == name.npos || of <= kBegin.size()) return std::nullopt;
  const std::string_view module = name.substr(kBegin.size(), of - kBegin.size());
  const std::string_view procedure = name.substr(of + kOf.size());
  auto is_fortran = [](std::string_view word) {
    return !word.empty() && word.find_first_not_of(kFortran) == word.npos;
  };
  if (!is_fortran(module) || !is_fortran(procedure)) return std::nullopt;
  return std::string(module) + "::" + std::string(procedure);
}

}  // namespace

std::string demangle(const std::string& name) {
  constexpr std::string_view kStub = "@plt";
  if (name.ends_with(kStub))
    return demangle(name.substr(0, name.size() - kStub.size())) + std::string(kStub);
  if (auto rust = rust_v0_name(name)) return *std::move(rust);
  if (auto fortran = fortran_name(name)) return *std::move(fortran);
  if (!name.starts_with("_Z") || name.size() > kMaxMangled_bytes || may_unfold_far(name))
    return name;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return name;
  if (auto rust = rust_legacy_name(text.get())) return *std::move(rust);
  return text.get() + (is_special(name) ? 0 : name_begin(text.get()));
}

}  // namespace tailtrace
