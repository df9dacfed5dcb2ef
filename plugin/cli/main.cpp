#include <sys/resource.h>

#include <cstddef>

#include "plugin/cli/commands.h"

namespace {

// libdw takes 200 KB of it at once to read a table of lines. Where memory is limited (RLIMIT_AS), a
// stack that cannot grow any more ends the program by a signal, and anything else is an error: so
// it grows first, unless it is itself what is limited.
constexpr std::size_t kLibdw_bytes = std::size_t{1} << 19, kPage_bytes = 4096;

[[gnu::noinline]] void grow_stack() {
  [[maybe_unused]] volatile char stack[kLibdw_bytes];
  for (std::size_t end = kLibdw_bytes; end >= kPage_bytes; end -= kPage_bytes) stack[end - 1] = 0;
}

bool may_grow_stack() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 2 * kLibdw_bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (may_grow_stack()) grow_stack();
  return tailtrace::run_command_line(tailtrace::all_commands(), {argv + 1, argv + argc}, stdout,
                                     stderr);
}
