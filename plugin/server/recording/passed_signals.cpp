#include "plugin/server/recording/passed_signals.h"

namespace tailtrace {
namespace {

constexpr std::string_view kPass = "QPassSignals:";

}  // namespace

void PassedSignals::note_request(std::string_view packet) {
  if (packet.starts_with(kPass)) wanted_ = packet.substr(kPass.size());
}

Result<void> PassedSignals::keep(bool on) {
  if (on == kept_) return {};
  auto answer = below_.ask(std::string(kPass) + (on ? "" : wanted_));
  if (!answer) return fail(std::move(answer.error()));
  kept_ = on;
  return {};
}

}  // namespace tailtrace
