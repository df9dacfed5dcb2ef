#include "tests/support/temp_folder.h"

#include <stdlib.h>

#include <cassert>
#include <filesystem>

namespace tailtrace {

TempFolder::TempFolder() {
  std::string name = std::filesystem::temp_directory_path() / "tailtrace-test-XXXXXX";
  const char* made = ::mkdtemp(name.data());
  assert(made != nullptr);
  path_ = made;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tailtrace
