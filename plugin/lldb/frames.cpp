#include "plugin/lldb/frames.h"

#include <fmt/format.h>

#include <algorithm>

#include "plugin/lldb/program.h"

namespace tailtrace::lldb_plugin {
namespace {

constexpr std::string_view kClass = "tailtrace_frames.HistoryFrames";
constexpr std::string_view kId = "ID: ", kName = "Name: ";

// What follows `key` on its line.
std::string_view value_of(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find('\n'));
}

}  // namespace

void remove_frames(Session& session) {
  auto list = session.command("target frame-provider list");
  if (!list) return;
  std::string_view rest = *list;
  for (std::size_t at = rest.find(kId); at != std::string_view::npos; at = rest.find(kId)) {
    rest.remove_prefix(at);
    std::string_view entry = rest.substr(0, rest.find(kId, kId.size()));
    if (value_of(entry, kName) == kClass)
      (void)session.command(fmt::format("target frame-provider remove {}", value_of(entry, kId)));
    rest.remove_prefix(kId.size());
  }
}

void show_frames(Session& session) {
  auto pcs = session.packet("qTailtraceFrames");
  if (!pcs || pcs->find(';') == std::string::npos) return;  // none but its own
  std::ranges::replace(*pcs, ';', ':');
  // It fails where that was done already.
  (void)session.command(
      fmt::format("command script import \"{}/tailtrace_frames.py\"", plugin_folder()));
  (void)session.command(fmt::format(
      "target frame-provider register -C {} -k tid -v t{} -k stop -v s{} -k pcs -v {}", kClass,
      session.thread().GetThreadID(), session.target().GetProcess().GetStopID(), *pcs));
}

}  // namespace tailtrace::lldb_plugin
