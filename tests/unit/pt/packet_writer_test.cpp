// What the writer writes, against the layouts of the SDM (volume 3, "Intel Processor Trace",
// "Packet definitions") byte by byte; and what a reader makes of any mixture.
#include "decoder/pt/packets/packet_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "decoder/pt/packets/packet_reader.h"

namespace tailtrace::pt {
namespace {

struct WrittenPacket {
  const char* what;
  const char* hex;
  std::function<void(PacketWriter&)> write;
};

// In the order of the manual's packet definitions.
const WrittenPacket kWrittenPackets[] = {
    {"TNT short, one bit", "06",
     [](auto& w) {
       w.tnt(true);
       w.flush();
     }},
    {"TNT short, six bits, the oldest is the highest", "aa",
     [](auto& w) {
       for (bool taken : {false, true, false, true, false, true}) w.tnt(taken);
     }},
    {"TNT long, seven bits", "02a3c00000000000",
     [](auto& w) {
       w.tnt_limit = PacketWriter::kLongTnt;
       w.tnt(true);
       w.not_taken(6);
       w.flush();
     }},
    {"not taken more than a packet holds", "8006",
     [](auto& w) {
       w.not_taken(6);
       w.tnt(true);
       w.flush();
     }},
    {"TIP, the first address", "6dbc9a78563412", [](auto& w) { w.tip({0x123456789abc}); }},
    {"TIP, an address that is not canonical", "cdbc9a785634123400",
     [](auto& w) { w.tip({0x0034123456789abc}); }},
    {"TIP 16, behind one near", "6dbc9a785634122d3412",
     [](auto& w) {
       w.tip({0x123456789abc});
       w.tip({0x123456781234});
     }},
    {"TIP 32", "6dbc9a785634124d78563422",
     [](auto& w) {
       w.tip({0x123456789abc});
       w.tip({0x123422345678});
     }},
    {"TIP 48", "6dbc9a785634128dffffffffff7f",
     [](auto& w) {
       w.update_48 = true;
       w.tip({0x123456789abc});
       w.tip({0x7fffffffffff});
     }},
    {"TIP against zero", "2d3412",
     [](auto& w) {
       w.compress_against_zero = true;
       w.tip({0x1234});
     }},
    {"TIP, an address of the kernel",
     "6d000000810000"
     "6d0000008100ff",
     [](auto& w) {
       w.ip_packet(IpPacket::kTip, IpBytes::kSignExtended48, {0x0000'8100'0000});
       w.tip({0xffff'ff00'8100'0000});
     }},
    {"TIP deferred behind the outcomes", "0e6d000010000000",
     [](auto& w) {
       w.defer_tips = true;
       w.tnt(true);
       w.tip({0x100000});
       w.tnt(true);
       w.flush();
     }},
    {"TIP.PGE", "71000010000000", [](auto& w) { w.tip_pge({0x100000}); }},
    {"TIP.PGD", "61000010000000", [](auto& w) { w.tip_pgd({0x100000}); }},
    {"TIP.PGD suppressed", "01", [](auto& w) { w.tip_pgd_suppressed(); }},
    {"FUP", "7d000010000000", [](auto& w) { w.fup({0x100000}); }},
    {"PIP", "0243030000000000", [](auto& w) { w.pip(1 << 5, true); }},
    {"MODE.Exec 64-bit", "9901", [](auto& w) { w.mode_exec(CodeMode::k64); }},
    {"MODE.Exec 32-bit, IF", "9906", [](auto& w) { w.mode_exec(CodeMode::k32, true); }},
    {"MODE.Exec 16-bit", "9900", [](auto& w) { w.mode_exec(CodeMode::k16); }},
    {"MODE.TSX begin", "9921", [](auto& w) { w.mode_tsx(true, false); }},
    {"MODE.TSX abort", "9922", [](auto& w) { w.mode_tsx(false, true); }},
    {"TraceStop", "0283", [](auto& w) { w.trace_stop(); }},
    {"CBR", "02031a00", [](auto& w) { w.cbr(0x1a); }},
    {"TSC", "1907060504030201", [](auto& w) { w.tsc(0x01020304050607); }},
    {"MTC", "59ab", [](auto& w) { w.mtc(0xab); }},
    {"TMA", "0273341200ff01", [](auto& w) { w.tma(0x1234, 0x1ff); }},
    {"CYC one byte", "fb", [](auto& w) { w.cyc(0x1f); }},
    {"CYC two bytes", "0f04", [](auto& w) { w.cyc(1 | 2 << 5); }},
    {"CYC three bytes", "070302", [](auto& w) { w.cyc(1 << 5 | 1 << 12); }},
    {"VMCS", "02c80100000000", [](auto& w) { w.vmcs(0x1000); }},
    {"OVF loses what was not sent", "02f3",
     [](auto& w) {
       w.tnt(true);
       w.ovf();
     }},
    {"PSB", "02820282028202820282028202820282", [](auto& w) { w.psb(); }},
    {"PSBEND", "0223", [](auto& w) { w.psbend(); }},
    {"MNT", "02c3880807060504030201", [](auto& w) { w.mnt(0x0102030405060708); }},
    {"PAD", "00", [](auto& w) { w.pad(); }},
    {"PTW 4 bytes", "021204030201", [](auto& w) { w.ptw(0x01020304, false, false); }},
    {"PTW 8 bytes, IP", "02b20807060504030201",
     [](auto& w) { w.ptw(0x0102030405060708, true, true); }},
    {"EXSTOP", "0262", [](auto& w) { w.exstop(false); }},
    {"EXSTOP, IP", "02e2", [](auto& w) { w.exstop(true); }},
    {"MWAIT", "02c22100000001000000", [](auto& w) { w.mwait(0x21, 1); }},
    {"PWRE", "02228031", [](auto& w) { w.pwre(3, 1, true); }},
    {"PWRX", "02a23501000000", [](auto& w) { w.pwrx(3, 5, 1); }},
    {"BBP, items of 4 bytes", "026384", [](auto& w) { w.bbp(4, true); }},
    {"BIP of 4 bytes", "1c04030201", [](auto& w) { w.bip(3, 0x01020304, true); }},
    {"BIP of 8 bytes", "fc0807060504030201", [](auto& w) { w.bip(31, 0x0102030405060708, false); }},
    {"BEP", "0233", [](auto& w) { w.bep(false); }},
    {"BEP, IP", "02b3", [](auto& w) { w.bep(true); }},
    {"CFE", "0213810e", [](auto& w) { w.cfe(1, 0x0e, true); }},
    {"EVD", "0253000807060504030201", [](auto& w) { w.evd(0, 0x0102030405060708); }},
    {"TRIG", "d92007", [](auto& w) { w.trig(7, std::nullopt, true, false); }},
    {"TRIG with a count, IP", "d9c0070201", [](auto& w) { w.trig(7, 0x0102, false, true); }},
};

TEST(PacketWriterLayout, IsTheManuals) {
  for (const WrittenPacket& c : kWrittenPackets) {
    PacketWriter writer;
    c.write(writer);
    EXPECT_EQ(to_hex(writer.bytes()), c.hex) << c.what;
  }
}

TEST(PacketWriterLayout, EveryKindOfPacketIsWritten) {
  std::array<bool, kPacketKinds> written{};
  for (const WrittenPacket& c : kWrittenPackets) {
    PacketWriter writer;
    if (std::string_view(c.what).starts_with("BIP"))
      writer.bbp(1, std::string_view(c.what) == "BIP of 4 bytes");
    c.write(writer);
    PacketReader reader(writer.bytes());
    for (Packet packet; reader.next(packet) == ReadStatus::kOk;)
      written[static_cast<std::size_t>(packet.kind)] = true;
    EXPECT_EQ(reader.offset(), writer.size_bytes()) << c.what;
  }
  for (std::size_t kind = 0; kind < kPacketKinds; ++kind)
    EXPECT_TRUE(written[kind]) << packet_name(static_cast<PacketKind>(kind));
}

// Any outcomes and addresses, in any setting, are what a reader finds.
class Mixture {
 public:
  explicit Mixture(std::uint64_t seed) : random_(seed) {}

  void write() {
    writer_.tnt_limit = 1 + random_() % PacketWriter::kLongTnt;
    writer_.update_48 = random_() % 2 == 0;
    writer_.compress_against_zero = random_() % 2 == 0;
    for (int i = 0; i < 400; ++i) piece();
    writer_.flush();
  }

  void expect_read() const {
    std::vector<bool> outcomes;
    std::vector<std::uint64_t> addresses;
    std::uint64_t last = 0;
    PacketReader reader(writer_.bytes());
    Packet packet;
    while (reader.next(packet) == ReadStatus::kOk) {
      if (packet.kind == PacketKind::kPsb) last = 0;
      if (packet.kind == PacketKind::kTnt)
        for (unsigned bit = packet.bits; bit-- != 0;)
          outcomes.push_back((packet.payload >> bit & 1) != 0);
      if (packet.kind == PacketKind::kTip) addresses.push_back(last = apply_ip(last, packet));
    }
    EXPECT_EQ(reader.offset(), writer_.size_bytes());
    EXPECT_EQ(outcomes, outcomes_);
    EXPECT_EQ(addresses, addresses_);
  }

 private:
  void piece() {
    switch (random_() % 8) {
      case 0: {
        std::uint64_t count = random_() % 60;
        writer_.not_taken(static_cast<std::uint32_t>(count));
        outcomes_.insert(outcomes_.end(), count, false);
        return;
      }
      case 1:
        return writer_.psb();
      case 2:
        return writer_.cyc(random_() >> (4 + random_() % 60));
      case 3:
      case 4: {
        // Near the one before, further away, or anywhere.
        std::uint64_t mask = ~0ull >> random_() % 64;
        std::uint64_t near = addresses_.empty() ? 0 : addresses_.back();
        addresses_.push_back((near & ~mask) | (random_() & mask));
        return writer_.tip({addresses_.back()});
      }
      default:
        outcomes_.push_back(random_() % 2 == 0);
        return writer_.tnt(outcomes_.back());
    }
  }

  std::mt19937_64 random_;
  PacketWriter writer_;
  std::vector<bool> outcomes_;
  std::vector<std::uint64_t> addresses_;
};

TEST(PacketWriterMixture, IsReadAsItWasWritten) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Mixture mixture(seed);
    mixture.write();
    mixture.expect_read();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tailtrace::pt
