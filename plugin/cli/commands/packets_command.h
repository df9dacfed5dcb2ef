// The lister of Intel PT packets behind `tailtrace packets`: one line or JSON object a packet.
//
// Threading: pure functions.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "decoder/base/bytes.h"
#include "decoder/pt/decoder.h"
#include "decoder/pt/packets/packet.h"

namespace tailtrace {

// One packet of a trace, or bytes that are none.
struct ListedPacket {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::string_view error;  // why these bytes are left out; empty: they are a packet
  pt::Packet packet;
  std::uint64_t ip = 0;  // of an IP packet: the whole address
};

// Lists the packets from the first PSB on, and tells of what lies before it; behind bytes that are
// no packet it goes on at the next PSB. Stops when `take` returns false. Of the errata those that
// spoil packets count.
void list_packets(ByteSpan trace, const pt::Errata& errata,
                  const std::function<bool(const ListedPacket&)>& take);

// "0000000000000010  TIP        0x401136 (2 bytes)"; no line feed.
std::string packet_text(const ListedPacket& listed);
nlohmann::ordered_json packet_json(const ListedPacket& listed);

}  // namespace tailtrace
