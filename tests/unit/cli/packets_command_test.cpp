// `tailtrace packets`: each kind of packet as a line, and as JSON.
#include "plugin/cli/commands/packets_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tailtrace {
namespace {

constexpr const char* kPsb = "02820282028202820282028202820282";

std::vector<ListedPacket> list(const std::string& hex, const pt::Errata& errata = {}) {
  Bytes trace = *from_hex(hex);
  std::vector<ListedPacket> listed;
  list_packets(trace, errata, [&](const ListedPacket& packet) {
    listed.push_back(packet);
    return true;
  });
  return listed;
}

// Without the offset.
std::string line_of(const ListedPacket& listed) { return packet_text(listed).substr(18); }

struct Case {
  const char* hex;
  const char* line;
};

// Bytes and fields as in the SDM, volume 3, "Packet definitions".
const Case kCases[] = {
    {"00", "PAD"},
    {"0223", "PSBEND"},
    {"02f3", "OVF"},
    {"0283", "TraceStop"},
    {"62", "TNT        TNNNT"},
    {"02a3000000000005", "TNT        NTNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN"},
    {"6d0010000000ff", "TIP        0xffffff0000001000 (IPBytes 3)"},
    {"71005000000000", "TIP.PGE    0x5000 (IPBytes 3)"},
    {"01", "TIP.PGD    no address"},
    {"dd004000cccccccc00", "FUP        0xcccccccc004000 (IPBytes 6)"},
    {"9900", "MODE.Exec  16-bit"},
    {"9902", "MODE.Exec  32-bit"},
    {"9905", "MODE.Exec  64-bit, IF"},
    {"9921", "MODE.TSX   InTX 1, TXAbort 0"},
    {"9922", "MODE.TSX   InTX 0, TXAbort 1"},
    {"0243fbfa0a000000", "PIP        CR3 0xafafa0, NR 1"},
    {"02c8bc0a000000", "VMCS       0xabc000"},
    {"1945230100000000", "TSC        0x12345"},
    {"027312000034 00", "TMA        CTC 0x12, FC 0x34"},
    {"5994", "MTC        0x94"},
    {"bf04", "CYC        87"},
    {"02032400", "CBR        36"},
    {"02c388a1b2c3d4e542222a", "MNT        0x2a2242e5d4c3b2a1"},
    {"0262", "EXSTOP"},
    {"02e2", "EXSTOP     IP"},
    {"02c20b00000001000000", "MWAIT      hints 0xb, extensions 0x1"},
    {"02228012", "PWRE       C2.3, HW 1"},
    {"02a20508000000", "PWRX       last C1, deepest C6, reason 0x8"},
    {"0292efcdab90", "PTW        0x90abcdef (4 bytes), IP"},
    {"0232efcdab9078563412", "PTW        0x1234567890abcdef (8 bytes)"},
    {"0213010e", "CFE        type 1, vector 14"},
    {"02138300", "CFE        type 3, vector 0, IP"},
    {"025302aa0bf00000000000", "EVD        2: 0xf00baa"},
    {"d920a1", "TRIG       0xa1, MULT"},
    {"d940a11700", "TRIG       0xa1, ICNT 23"},
    {"d9e0a10000", "TRIG       0xa1, MULT, ICNT 0, IP"},
};

TEST(PacketsCommand, NamesEveryKindOfPacketAndItsFields) {
  for (const Case& c : kCases) {
    std::string hex = c.hex;
    std::erase(hex, ' ');
    std::vector<ListedPacket> listed = list(kPsb + hex);
    ASSERT_EQ(listed.size(), 2u) << c.line;
    EXPECT_EQ(line_of(listed[0]), "PSB");
    EXPECT_EQ(line_of(listed[1]), c.line) << hex;
    EXPECT_EQ(listed[1].offset_bytes, 16u);
    EXPECT_EQ(listed[1].size_bytes * 2, hex.size()) << c.line;
  }
}

TEST(PacketsCommand, JsonHasWhatAPacketHasBesideItsPayload) {
  const struct {
    const char* hex;
    const char* name;
    unsigned value;
  } kFields[] = {{"0243fbfa0a000000", "nr", 1}, {"0232efcdab9078563412", "payload_bytes", 8},
                 {"02228012", "hw", 1},         {"02a20508000000", "wake_reason", 8},
                 {"0213010e", "type", 1},       {"025302aa0bf00000000000", "type", 2},
                 {"d9e0a10000", "flags", 3}};
  for (const auto& field : kFields) {
    const nlohmann::ordered_json packet = packet_json(list(kPsb + std::string(field.hex)).at(1));
    EXPECT_EQ(packet.value(field.name, ~0u), field.value) << packet;
  }
}

TEST(PacketsCommand, ASpoiltPacketIsNamedAndTheListGoesOnAtTheNextPsb) {
  std::vector<ListedPacket> listed = list(std::string("00") + kPsb + "c9ffff" + kPsb + "0223");
  ASSERT_EQ(listed.size(), 5u);
  EXPECT_EQ(packet_text(listed[0]),
            "0000000000000000  -- bytes before the first PSB: 1 bytes left out --");
  EXPECT_EQ(listed[2].size_bytes, 3u);
  EXPECT_EQ(packet_text(listed[2]),
            "0000000000000011  -- bytes that are no packet: 3 bytes left out --");
  EXPECT_EQ(packet_json(listed[2])["error"], "bytes that are no packet");
  EXPECT_EQ(line_of(listed[3]), "PSB");
  EXPECT_EQ(line_of(listed[4]), "PSBEND");
}

TEST(PacketsCommand, ATraceWithoutPsbIsLeftOut) {
  std::vector<ListedPacket> listed = list("4d4d4d4d");
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(packet_text(listed[0]), "0000000000000000  -- there is no PSB: 4 bytes left out --");
  EXPECT_EQ(packet_json(listed[0])["size"], 4);
  EXPECT_TRUE(list("").empty());
}

TEST(PacketsCommand, ErrataSpoilPackets) {
  std::string cut = kPsb + std::string("a702f30223");  // a CYC, cut by an OVF behind its first byte
  EXPECT_EQ(line_of(list(cut)[1]), "CYC        52");
  std::vector<ListedPacket> listed = list(cut, {.skd007 = true});
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(line_of(listed[1]), "OVF");
  EXPECT_EQ(listed[1].offset_bytes, 16u);
  EXPECT_EQ(listed[1].size_bytes, 3u);
  EXPECT_EQ(line_of(listed[2]), "PSBEND");

  std::string corrupt = kPsb + std::string("0273010101010000") + "0223";  // and a byte too many
  EXPECT_EQ(list(corrupt)[1].error, "a packet with an impossible payload");
  listed = list(corrupt, {.skz84 = true});
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(packet_text(listed[1]),
            "0000000000000010  -- a TMA that erratum SKZ84 corrupted: 8 bytes left out --");
  EXPECT_EQ(line_of(listed[2]), "PSBEND");
}

TEST(PacketsCommand, AddressesAreCompletedFromThoseBefore) {
  std::vector<ListedPacket> listed =
      list(std::string(kPsb) + "dd00eeddddcccc000a" + "8dffffeeeeffff" + "31dddd" +
           "7deeeeddddffff" + "41ffffeeee" + kPsb + "2d3412");
  std::vector<std::string> addresses;
  for (const ListedPacket& packet : listed)
    if (packet_json(packet).contains("address"))
      addresses.push_back(packet_json(packet)["address"].get<std::string>());
  EXPECT_EQ(addresses,
            (std::vector<std::string>{"0xa00ccccddddee00", "0xa00ffffeeeeffff", "0xa00ffffeeeedddd",
                                      "0xffffffffddddeeee", "0xffffffffeeeeffff", "0x1234"}));
}

}  // namespace
}  // namespace tailtrace
