#include "plugin/server/gdbserver_preload.h"

#include <cpuid.h>

#include "plugin/engines/own_files.h"

namespace tailtrace {
namespace {

// A part of the registers, and where gdbserver (before 14) takes it to be: as Intel's processors
// had it that came first.
struct Component {
  unsigned number;  // in the leaf of CPUID about XSAVE
  unsigned place_bytes;
};
constexpr Component kMasksOfAvx512 = {5, 1088}, kProtectionKeys = {9, 2688};
constexpr unsigned kXsaveLeaf = 13;

bool is_elsewhere(const Component& component) {
  unsigned size_bytes = 0, place_bytes = 0, ecx = 0, edx = 0;
  const bool known =
      __get_cpuid_count(kXsaveLeaf, component.number, &size_bytes, &place_bytes, &ecx, &edx) != 0;
  return known && size_bytes != 0 && place_bytes != component.place_bytes;
}

}  // namespace

Result<std::string> preload_of_gdbserver() {
  if (!is_elsewhere(kMasksOfAvx512) && !is_elsewhere(kProtectionKeys)) return std::string();
  return find_own_file("libtailtrace_gdbserver.so");
}

}  // namespace tailtrace
