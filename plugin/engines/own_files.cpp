#include "plugin/engines/own_files.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

namespace tailtrace {
namespace {

std::string own_folder() {
  Dl_info info;
  static const int kAnchor = 0;
  std::error_code error;
  std::filesystem::path self;
  if (::dladdr(&kAnchor, &info) != 0 && info.dli_fname != nullptr && info.dli_fname[0] == '/')
    self = info.dli_fname;
  else
    self = std::filesystem::read_symlink("/proc/self/exe", error);
  // What it was called by may be a link, which lies anywhere.
  return std::filesystem::weakly_canonical(self, error).parent_path().string();
}

}  // namespace

Result<std::string> find_own_file(std::string_view name) {
  std::string own = own_folder();
  // Beside it, in the build folder, or installed: a program in bin, a library in lib, or the Python
  // package in lib/python3.N/dist-packages/tailtrace.
  for (const char* place : {"", "/../plugin", "/../../plugin", "/../lib/tailtrace", "/tailtrace",
                            "/../../../tailtrace"}) {
    std::string path = fmt::format("{}{}/{}", own, place, name);
    if (::access(path.c_str(), R_OK) == 0) return std::filesystem::weakly_canonical(path).string();
  }
  return fail(ErrorCode::kNoEngine, "cannot find a file of tailtrace",
              fmt::format("{} is not near {}", name, own), "install tailtrace whole");
}

}  // namespace tailtrace
