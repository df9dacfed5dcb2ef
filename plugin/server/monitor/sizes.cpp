#include "plugin/server/monitor/sizes.h"

#include <fmt/format.h>

namespace tailtrace {
namespace {

// 1234567 as 1,234,567.
std::string grouped(std::uint64_t number) {
  if (number < 1000) return fmt::format("{}", number);
  return fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

}  // namespace

std::string sizes_in_words(const ServeOptions& options, bool counts_branches, Reader reader) {
  std::string given = reader == Reader::kLldb
                          ? fmt::format("LLDB is given the newest {} instructions",
                                        grouped(options.handover_instructions_lldb))
                          : fmt::format("GDB is given the newest {} instructions (format bts: {})",
                                        grouped(options.handover_instructions_pt),
                                        grouped(options.handover_instructions_bts));
  if (!counts_branches) return "Of each thread " + given + ".";
  return fmt::format("Of each thread the newest {} branches are kept, and {}.",
                     grouped(options.ring_records), given);
}

}  // namespace tailtrace
