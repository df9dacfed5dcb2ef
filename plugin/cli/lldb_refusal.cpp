#include "plugin/cli/lldb_refusal.h"

#include <fmt/format.h>
#include <poll.h>

#include "decoder/base/bytes.h"
#include "plugin/server/rsp/connection.h"

namespace tailtrace {

std::string answer_of_refusal(std::string_view packet, const Error& error) {
  if (packet == "QStartNoAckMode" || packet == "QEnableErrorStrings") return "OK";
  if (packet.starts_with("qSupported")) return "QStartNoAckMode+";
  if (packet.starts_with("vRun;") || packet.starts_with("vAttach") || packet.starts_with("A"))
    return fmt::format("E{:02x};{}", static_cast<int>(error.code),
                       to_hex(as_bytes(error.to_line())));
  return "";
}

void refuse_lldb(UniqueFd stream, const Error& error) {
  rsp::Connection lldb(std::move(stream));
  for (;;) {
    short events = lldb.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
    pollfd polled{lldb.in(), events, 0};
    if (::poll(&polled, 1, -1) < 0 && errno != EINTR) return;
    if (lldb.wants_to_write() && !lldb.flush()) return;
    if (!lldb.receive()) return;
    for (;;) {
      auto frame = lldb.next();
      if (!frame) return;
      if (!*frame) break;
      if ((*frame)->kind != rsp::Frame::Kind::kPacket) continue;
      bool is_last_acked = (*frame)->payload == "QStartNoAckMode";
      if (!lldb.send(answer_of_refusal((*frame)->payload, error))) return;
      if (is_last_acked) lldb.stop_acks();
    }
  }
}

}  // namespace tailtrace
