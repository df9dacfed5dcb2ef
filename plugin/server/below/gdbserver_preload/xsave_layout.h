// Where this machine's processor has its registers in an XSAVE area, and where gdbserver (before
// 14) takes them to be: as on Intel's processors that came first.
//
// The layout is told by CPUID, leaf 0DH (Intel SDM volume 1, 13.2).
//
// Threading: free for all.
#pragma once

#include <cpuid.h>

#include <cstddef>
#include <cstdint>

namespace tailtrace {

struct XsaveLayout {
  // What gdbserver has room for: up to the protection keys, or to AVX. AMX needs thousands of bytes
  // more, and the kernel takes no area that lacks them.
  static constexpr std::size_t kEndOfAll_bytes = 2696, kEndOfAvx_bytes = 832;
  static constexpr std::uint64_t kAll = 0x2ff, kUpToAvx = 7;  // components

  bool is_elsewhere = false;  // of what comes behind AVX
  bool is_longer = false;
  bool is_other() const { return is_elsewhere || is_longer; }

  static XsaveLayout of_processor() {
    unsigned eax = 0, size_bytes = 0, ecx = 0, edx = 0;
    const bool known = __get_cpuid_count(kLeaf, 0, &eax, &size_bytes, &ecx, &edx) != 0;
    return {lies_elsewhere(5, 1088) || lies_elsewhere(9, 2688),
            known && size_bytes > kEndOfAll_bytes};
  }

 private:
  static constexpr unsigned kLeaf = 13;

  static bool lies_elsewhere(unsigned component, unsigned expected_bytes) {
    unsigned size_bytes = 0, place_bytes = 0, ecx = 0, edx = 0;
    const bool known =
        __get_cpuid_count(kLeaf, component, &size_bytes, &place_bytes, &ecx, &edx) != 0;
    return known && size_bytes != 0 && place_bytes != expected_bytes;
  }
};

}  // namespace tailtrace
