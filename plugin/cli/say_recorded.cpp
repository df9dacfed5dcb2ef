#include "plugin/cli/say_recorded.h"

#include <fmt/format.h>

#include "decoder/base/text.h"

namespace tailtrace {

void say_recorded(const std::string& path, std::FILE* err) {
  fmt::print(err, "recorded: tailtrace history {}\n", shell_word(path));
}

}  // namespace tailtrace
