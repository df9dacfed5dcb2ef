// Gives a fuzz target to libFuzzer, in the place of fuzz_driver.cpp. The target's own seeds are put
// into the first folder that is named, which libFuzzer reads, and adds to.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz_driver.h"

namespace tailtrace {
namespace {

void put_seeds(const std::string& folder) {
  int number = 0;
  for (const Bytes& seed : fuzz_seeds())
    std::ofstream(folder + "/seed-" + std::to_string(number++), std::ios::binary | std::ios::trunc)
        << as_text(seed);
}

}  // namespace
}  // namespace tailtrace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerInitialize(int* argc,
                                                                           char*** argv) {
  for (int i = 1; i < *argc; ++i)
    if (std::filesystem::is_directory((*argv)[i])) {
      tailtrace::put_seeds((*argv)[i]);
      break;
    }
  return 0;
}

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(
    const std::uint8_t* data, std::size_t size) {
  tailtrace::fuzz_one({data, size});
  return 0;
}
