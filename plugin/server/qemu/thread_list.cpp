#include "plugin/server/qemu/thread_list.h"

#include <fmt/format.h>

#include "plugin/server/rsp/thread_selector.h"
#include "plugin/server/rsp/transfer.h"

namespace tailtrace {

std::string thread_list(std::span<const NamedThread> threads) {
  std::string list = "<threads>";
  for (const auto& [thread, name] : threads)
    list += fmt::format(R"(<thread id="{}" name="{}"/>)", rsp::format_thread(thread),
                        rsp::xml_escaped(name));
  return list + "</threads>";
}

}  // namespace tailtrace
