#include "plugin/server/rsp/signalled_threads.h"

#include <nlohmann/json.hpp>

#include "decoder/base/bytes.h"

namespace tailtrace::rsp {
namespace {

constexpr std::string_view kSignal = "signal";
// `:"signal"` in hexadecimal, which saves to read the reply to each step.
constexpr std::string_view kAnySignal_hex = "3a227369676e616c22";

template <typename T>
T member(const nlohmann::json& object, const char* name) {
  const auto it = object.find(name);
  if constexpr (std::is_integral_v<T>)
    return it != object.end() && it->is_number_unsigned() ? it->get<T>() : T{};
  else
    return it != object.end() && it->is_string() ? it->get<T>() : T{};
}

}  // namespace

std::vector<SignalledThread> signalled_threads(const StopReply& reply) {
  std::vector<SignalledThread> signalled;
  if (reply.stop_infos.find(kAnySignal_hex) == std::string_view::npos || !reply.thread ||
      !reply.thread->is_thread())
    return signalled;
  const auto text = from_hex(reply.stop_infos);
  if (!text) return signalled;
  const auto threads = nlohmann::json::parse(*text, nullptr, false);
  if (!threads.is_array()) return signalled;
  for (const auto& thread : threads) {
    if (!thread.is_object() || member<std::string>(thread, "reason") != kSignal) continue;
    const ThreadId id{reply.thread->pid, member<std::int32_t>(thread, "tid")};
    const auto signal = member<std::uint8_t>(thread, "signal");
    if (id.tid > 0 && signal != 0 && id != reply.thread->thread())
      signalled.push_back({id, signal});
  }
  return signalled;
}

}  // namespace tailtrace::rsp
