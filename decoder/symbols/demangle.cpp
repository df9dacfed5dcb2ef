#include "decoder/symbols/demangle.h"

#include <cxxabi.h>

#include <cmath>
#include <cstdlib>
#include <memory>

namespace tailtrace {
namespace {

constexpr std::size_t kMaxMangled_bytes = 1 << 14;
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

}  // namespace

std::string demangle(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kMaxMangled_bytes || may_unfold_far(name))
    return name;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace tailtrace
