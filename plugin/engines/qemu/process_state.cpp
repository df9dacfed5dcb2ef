#include "plugin/engines/qemu/process_state.h"

#include <cstdlib>

#include "plugin/engines/tasks.h"

namespace tailtrace {

std::uint64_t process_start_time(std::int32_t pid) {
  constexpr std::size_t kState = 0, kStartTime = 19;
  const std::vector<std::string> fields = stat_behind_name({pid, pid});
  if (fields.size() <= kStartTime || fields[kState] == "Z" || fields[kState] == "X") return 0;
  return std::strtoull(fields[kStartTime].c_str(), nullptr, 10);
}

}  // namespace tailtrace
