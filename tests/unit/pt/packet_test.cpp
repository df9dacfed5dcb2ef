// Packets against the layouts of the SDM, volume 3, "Intel Processor Trace", "Packet definitions",
// and against Intel's own packet decoder.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <intel-pt.h>

#include <cstdio>
#include <random>

#include "decoder/base/file.h"
#include "decoder/pt/decoder.h"
#include "decoder/pt/packets/packet_reader.h"
#include "tests/support/pt_inputs.h"

namespace tailtrace::pt {
namespace {

struct Case {
  const char* what;
  const char* hex;
  Packet packet;
};

Packet packet(PacketKind kind, unsigned size, std::uint64_t payload = 0, unsigned bits = 0,
              bool has_ip = false) {
  return {kind, static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(bits), has_ip, payload};
}

using K = PacketKind;

// One line per packet definition of the SDM, in its order.
const Case kCases[] = {
    {"TNT short, one bit", "06", packet(K::kTnt, 1, 1, 1)},
    {"TNT short, six bits", "aa", packet(K::kTnt, 1, 0b010101, 6)},
    {"TNT long, 47 bits", "02a3ffffffffff ff", packet(K::kTnt, 8, 0x7fffffffffff, 47)},
    {"TNT long, two bits", "02a3050000000000", packet(K::kTnt, 8, 1, 2)},
    {"TIP suppressed", "0d", packet(K::kTip, 1, 0, kIpSuppressed)},
    {"TIP 16", "2d3412", packet(K::kTip, 3, 0x1234, kIpUpdate16)},
    {"TIP 32", "4d78563412", packet(K::kTip, 5, 0x12345678, kIpUpdate32)},
    {"TIP sext", "6dbc9a78563412", packet(K::kTip, 7, 0x123456789abc, kIpSext48)},
    {"TIP 48", "8dbc9a78563412", packet(K::kTip, 7, 0x123456789abc, kIpUpdate48)},
    {"TIP full", "cdf0debc9a78563412", packet(K::kTip, 9, 0x123456789abcdef0, kIpFull)},
    {"TIP.PGE", "313412", packet(K::kTipPge, 3, 0x1234, kIpUpdate16)},
    {"TIP.PGD", "01", packet(K::kTipPgd, 1, 0, kIpSuppressed)},
    {"FUP", "5d78563412", packet(K::kFup, 5, 0x12345678, kIpUpdate32)},
    {"PIP", "0243 030000000000", packet(K::kPip, 8, 1 << 5, 1)},
    {"MODE.Exec 64-bit", "9901", packet(K::kModeExec, 2, 1)},
    {"MODE.Exec 32-bit, IF", "9906", packet(K::kModeExec, 2, 6)},
    {"MODE.TSX abort", "9922", packet(K::kModeTsx, 2, 2)},
    {"TraceStop", "0283", packet(K::kStop, 2)},
    {"CBR", "02031a00", packet(K::kCbr, 4, 0x1a)},
    {"TSC", "1907060504030201", packet(K::kTsc, 8, 0x01020304050607)},
    {"MTC", "59ab", packet(K::kMtc, 2, 0xab)},
    {"TMA", "027334120 0ff01", packet(K::kTma, 7, 0x1234 | 0x1ff << 16)},
    {"CYC one byte", "fb", packet(K::kCyc, 1, 0x1f)},
    {"CYC two bytes", "0f04", packet(K::kCyc, 2, 1 | 2 << 5)},
    {"CYC three bytes", "070302", packet(K::kCyc, 3, 1 << 5 | 1 << 12)},
    {"VMCS", "02c8 0100000000", packet(K::kVmcs, 7, 0x1000)},
    {"OVF", "02f3", packet(K::kOvf, 2)},
    {"PSB", "02820282028202820282028202820282", packet(K::kPsb, 16)},
    {"PSBEND", "0223", packet(K::kPsbEnd, 2)},
    {"MNT", "02c388 0807060504030201", packet(K::kMnt, 11, 0x0102030405060708)},
    {"PAD", "00", packet(K::kPad, 1)},
    {"PTW 4 bytes", "0212 04030201", packet(K::kPtw, 6, 0x01020304, 4)},
    {"PTW 8 bytes, IP", "02b2 0807060504030201", packet(K::kPtw, 10, 0x0102030405060708, 8, true)},
    {"EXSTOP", "0262", packet(K::kExstop, 2)},
    {"EXSTOP, IP", "02e2", packet(K::kExstop, 2, 0, 0, true)},
    {"MWAIT", "02c2 2100000001000000", packet(K::kMwait, 10, 0x21 | 1ull << 32)},
    {"PWRE", "0222 8031", packet(K::kPwre, 4, 3 | 1 << 8, 1)},
    {"PWRX", "02a2 3501000000", packet(K::kPwrx, 7, 3 | 5 << 8, 1)},
    {"BBP", "0263 84", packet(K::kBbp, 3, 4, 4)},
    {"BEP, IP", "02b3", packet(K::kBep, 2, 0, 0, true)},
    {"CFE", "0213 81 0e", packet(K::kCfe, 4, 0x0e, 1, true)},
    {"EVD", "0253 00 0807060504030201", packet(K::kEvd, 11, 0x0102030405060708, 0)},
    {"TRIG", "d9 20 07", packet(K::kTrig, 3, 7, 2)},
    {"TRIG with a count, IP", "d9 c0 07 0201", packet(K::kTrig, 5, 7 | 0x0102 << 8, 1, true)},
};

Bytes bytes_of(std::string_view hex) {
  std::string digits;
  for (char c : hex)
    if (c != ' ') digits += c;
  return from_hex(digits).value();
}

TEST(Packet, EachDefinitionOfTheManual) {
  for (const Case& c : kCases) {
    Bytes bytes = bytes_of(c.hex);
    Packet got;
    ASSERT_EQ(read_packet(bytes, 0, got), ReadStatus::kOk) << c.what;
    EXPECT_TRUE(got == c.packet) << c.what << ": " << packet_name(got.kind) << " size "
                                 << int{got.size_bytes} << " bits " << int{got.bits} << " payload "
                                 << std::hex << got.payload;
  }
}

TEST(Packet, CutAnywhereIsToldFromBad) {
  for (const Case& c : kCases) {
    Bytes bytes = bytes_of(c.hex);
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      Packet got;
      EXPECT_EQ(read_packet(ByteSpan(bytes).first(size), 0, got), ReadStatus::kCut)
          << c.what << " cut to " << size;
    }
  }
}

// What is read sooner is what is read otherwise, or nothing; a TNT and a TIP well before the end
// are.
TEST(Packet, BranchesThatAreReadSoonerAreTheSame) {
  std::mt19937 random(1);
  for (unsigned head = 0; head < 256; ++head)
    for (std::size_t size = 1; size <= 9; ++size) {
      Bytes bytes(size);
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
      bytes[0] = static_cast<std::uint8_t>(head);
      PacketReader sooner(bytes), otherwise(bytes);
      Packet got, expected;
      const ReadStatus status = otherwise.next(expected);
      const bool is_read = sooner.next_branch(got);
      const bool is_branch = status == ReadStatus::kOk &&
                             (expected.kind == PacketKind::kTip ||
                              (expected.kind == PacketKind::kTnt && expected.size_bytes == 1));
      EXPECT_EQ(is_read, is_branch && size == 9) << head;
      EXPECT_EQ(sooner.offset(), is_read ? otherwise.offset() : 0) << head;
      if (is_read) {
        EXPECT_EQ(got, expected) << head;
      }
    }
}

TEST(Packet, ReservedEncodingsAreErrors) {
  Packet got;
  auto status = [&](const char* hex) { return read_packet(bytes_of(hex), 0, got); };
  EXPECT_EQ(status("ad0000000000000000"), ReadStatus::kBadPacket) << "IPBytes 101b";
  EXPECT_EQ(status("ed0000000000000000"), ReadStatus::kBadPacket) << "IPBytes 111b";
  EXPECT_EQ(status("9940"), ReadStatus::kBadPacket) << "MODE leaf 2";
  EXPECT_EQ(status("0252 0000000000000000"), ReadStatus::kBadPacket) << "PTW size 10b";
  EXPECT_EQ(status("02a3000000000000"), ReadStatus::kBadPacket) << "long TNT without stop bit";
  EXPECT_EQ(status("0282028202820282028202820282ff82"), ReadStatus::kBadPacket) << "broken PSB";
  EXPECT_EQ(status("c9"), ReadStatus::kBadOpcode);
  EXPECT_EQ(status("0204"), ReadStatus::kBadOpcode);
  EXPECT_EQ(status("02c300"), ReadStatus::kBadOpcode);
  EXPECT_EQ(status("ffffffffffffffffffff01"), ReadStatus::kBadPacket) << "CYC of 70 bits";
}

TEST(Packet, BlockItemsExistInsideBlocksOnly) {
  Bytes bytes = bytes_of("0c 026304 0c 0807060504030201 0233 0c");
  PacketReader reader{ByteSpan(bytes)};
  std::vector<K> kinds;
  for (Packet p; reader.next(p) == ReadStatus::kOk;) kinds.push_back(p.kind);
  EXPECT_EQ(kinds, (std::vector<K>{K::kTnt, K::kBbp, K::kBip, K::kBep, K::kTnt}));
  EXPECT_EQ(reader.offset(), bytes.size());
}

TEST(Packet, PsbIsFoundAtEveryOffset) {
  Bytes psb = bytes_of("02820282028202820282028202820282");
  for (std::size_t before = 0; before < 40; ++before)
    for (std::uint8_t filler : {0x00, 0x02, 0x82, 0x55}) {
      Bytes bytes(before, filler);
      bytes.insert(bytes.end(), psb.begin(), psb.end());
      bytes.push_back(0x11);
      // The definition: the first place that holds the pattern.
      std::size_t expected = 0;
      while (!std::equal(psb.begin(), psb.end(), bytes.begin() + static_cast<long>(expected)))
        ++expected;
      EXPECT_EQ(find_psb(bytes, 0), expected) << before << " of " << int{filler};
    }
  EXPECT_EQ(find_psb(ByteSpan(psb).first(15), 0), std::nullopt);
  EXPECT_EQ(find_psb({}, 0), std::nullopt);
}

TEST(Packet, PsbAmongPiecesOfPsbIsFoundAsDefined) {
  std::mt19937 random(1);
  Bytes psb = bytes_of("02820282028202820282028202820282");
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes(random() % 80);
    for (auto& b : bytes) b = random() % 12 == 0 ? 0x55 : random() % 2 == 0 ? 0x02 : 0x82;
    if (random() % 2 == 0 && bytes.size() > 30)
      std::copy(psb.begin(), psb.end(), bytes.begin() + static_cast<long>(random() % 14));
    // The definition: where the pattern is, and behind it no piece of it that something follows.
    auto at = std::search(bytes.begin(), bytes.end(), psb.begin(), psb.end());
    auto same_behind = [&] {
      return std::mismatch(at + 16, bytes.end(), psb.begin(), psb.end()).second - psb.begin();
    };
    while (at != bytes.end() && same_behind() >= 2 && same_behind() < 16 &&
           (same_behind() & ~1) + 1 < bytes.end() - at - 16)
      at = std::search(at + 1, bytes.end(), psb.begin(), psb.end());
    std::optional<std::size_t> expected;
    if (at != bytes.end()) expected = static_cast<std::size_t>(at - bytes.begin());
    ASSERT_EQ(find_psb(bytes, 0), expected) << to_hex(bytes);
  }
}

// --- Intel's decoder -------------------------------------------------------------------------

struct Peer {
  int size = 0;  // negative: error
  pt_packet packet{};
};

Peer peer_read(Bytes bytes, bool skz84 = false) {
  pt_config config;
  pt_config_init(&config);
  config.errata.skz84 = skz84;
  config.begin = bytes.data();
  config.end = bytes.data() + bytes.size();
  pt_packet_decoder* decoder = pt_pkt_alloc_decoder(&config);
  pt_pkt_sync_set(decoder, 0);
  Peer peer;
  peer.size = pt_pkt_next(decoder, &peer.packet, sizeof peer.packet);
  pt_pkt_free_decoder(decoder);
  return peer;
}

// What Intel's packet is in our terms.
Packet in_our_terms(const pt_packet& p) {
  auto size = static_cast<unsigned>(p.size);
  const auto& v = p.payload;
  switch (p.type) {
    case ppt_pad:
      return packet(K::kPad, size);
    case ppt_psb:
      return packet(K::kPsb, size);
    case ppt_psbend:
      return packet(K::kPsbEnd, size);
    case ppt_fup:
      return packet(K::kFup, size, v.ip.ip, v.ip.ipc);
    case ppt_tip:
      return packet(K::kTip, size, v.ip.ip, v.ip.ipc);
    case ppt_tip_pge:
      return packet(K::kTipPge, size, v.ip.ip, v.ip.ipc);
    case ppt_tip_pgd:
      return packet(K::kTipPgd, size, v.ip.ip, v.ip.ipc);
    case ppt_tnt_8:
    case ppt_tnt_64:
      return packet(K::kTnt, size, v.tnt.payload, v.tnt.bit_size);
    case ppt_mode:
      return v.mode.leaf == pt_mol_exec
                 ? packet(K::kModeExec, size, v.mode.bits.exec.csl | v.mode.bits.exec.csd << 1)
                 : packet(K::kModeTsx, size, v.mode.bits.tsx.intx | v.mode.bits.tsx.abrt << 1);
    case ppt_pip:
      return packet(K::kPip, size, v.pip.cr3, v.pip.nr);
    case ppt_vmcs:
      return packet(K::kVmcs, size, v.vmcs.base);
    case ppt_cbr:
      return packet(K::kCbr, size, v.cbr.ratio);
    case ppt_tsc:
      return packet(K::kTsc, size, v.tsc.tsc);
    case ppt_tma:
      return packet(K::kTma, size, v.tma.ctc | std::uint64_t{v.tma.fc} << 16);
    case ppt_mtc:
      return packet(K::kMtc, size, v.mtc.ctc);
    case ppt_cyc:
      return packet(K::kCyc, size, v.cyc.value);
    case ppt_stop:
      return packet(K::kStop, size);
    case ppt_ovf:
      return packet(K::kOvf, size);
    case ppt_mnt:
      return packet(K::kMnt, size, v.mnt.payload);
    case ppt_exstop:
      return packet(K::kExstop, size, 0, 0, v.exstop.ip != 0);
    case ppt_mwait:
      return packet(K::kMwait, size, v.mwait.hints | std::uint64_t{v.mwait.ext} << 32);
    case ppt_pwre:
      return packet(K::kPwre, size, v.pwre.state | v.pwre.sub_state << 8, v.pwre.hw);
    case ppt_pwrx:
      return packet(K::kPwrx, size, v.pwrx.last | v.pwrx.deepest << 8,
                    v.pwrx.interrupt | v.pwrx.store << 2 | v.pwrx.autonomous << 3);
    case ppt_ptw:
      return packet(K::kPtw, size, v.ptw.payload, static_cast<unsigned>(pt_ptw_size(v.ptw.plc)),
                    v.ptw.ip != 0);
    default:
      return {};
  }
}

// Kinds that libipt 2.0.5 does not know.
bool is_newer(const Bytes& bytes) {
  if (bytes[0] == 0xd9) return true;
  if (bytes[0] != 0x02 || bytes.size() < 2) return false;
  for (std::uint8_t second : {0x63, 0x33, 0xb3, 0x13, 0x53})
    if (bytes[1] == second) return true;
  return false;
}

// Differences that are known and meant.
void level_out(const Bytes& bytes, Packet& ours, Packet& theirs) {
  if (ours.kind == K::kModeExec) ours.payload &= 3;  // IF came with event tracing
  // The SDM has PWRE's HW in bit 7; libipt 2.0.5 reads bit 3, which is reserved.
  if (ours.kind == K::kPwre) ours.bits = theirs.bits = bytes[2] >> 3 & 1;
  // The wake reasons: the SDM defines bits 0, 2 and 3.
  if (ours.kind == K::kPwrx) ours.bits &= 0b1101;
}

TEST(Packet, SameAsIntelsDecoderOnEveryHeader) {
  std::mt19937 random(7);
  for (unsigned header = 0; header < 0x10000; ++header)
    for (int round = 0; round < 3; ++round) {
      Bytes bytes(random() % 4 == 0 ? 2 + random() % 10 : 20);
      for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
      bytes[0] = static_cast<std::uint8_t>(header);
      bytes[1] = static_cast<std::uint8_t>(header >> 8);
      if (is_newer(bytes)) continue;
      Packet ours;
      ReadStatus status = read_packet(bytes, 0, ours);
      Peer peer = peer_read(bytes);
      if (status != ReadStatus::kOk) {
        ASSERT_LT(peer.size, 0) << to_hex(bytes);
        // A PSB that is broken and cut is both.
        if (bytes[0] == 0x02 && bytes[1] == 0x82) continue;
        pt_error_code expected = status == ReadStatus::kCut         ? pte_eos
                                 : status == ReadStatus::kBadPacket ? pte_bad_packet
                                                                    : pte_bad_opc;
        ASSERT_EQ(pt_errcode(peer.size), expected) << to_hex(bytes);
        continue;
      }
      ASSERT_GE(peer.size, 0) << to_hex(bytes) << ' ' << pt_errstr(pt_errcode(peer.size));
      Packet theirs = in_our_terms(peer.packet);
      level_out(bytes, ours, theirs);
      ASSERT_TRUE(ours == theirs) << to_hex(bytes) << ' ' << packet_name(ours.kind) << ' '
                                  << std::hex << ours.payload << " / " << theirs.payload << " bits "
                                  << int{ours.bits} << " / " << int{theirs.bits};
    }
}

TEST(Packet, CorruptTmaOfSkz84IsSkippedWithItsExtraByte) {
  for (const char* hex :
       {"02730bb5013501000000", "02730bb500350600aaaa", "02730bb500350100 0000"}) {
    Bytes bytes = bytes_of(hex);
    PacketReader reader(bytes, true);
    Packet ours;
    ASSERT_EQ(reader.next(ours), ReadStatus::kOk);
    EXPECT_EQ(int{ours.size_bytes}, peer_read(bytes, true).size) << hex;
  }
}

// --- perf's listing of real traces -----------------------------------------------------------

// ".  00000017:  7d 00 d3 60 b9 ff ff 00     FUP 0xffffb960d300": the name, and the number if any.
// perf joins runs of PAD and appends them to the packet before; they are left out.
std::vector<std::string> perf_listing(const std::string& folder) {
  std::string command = "xz -dc '" + folder + "/expected/perf.data.intel_pt-4.14.packets.txt.xz'";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::vector<std::string> list;
  char line[4096];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) {
    std::string text = line;
    if (text.rfind(".  ", 0) != 0 || text.size() < 63) continue;
    text = text.substr(62);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    if (!text.empty() && text != "PAD") list.push_back(text);
  }
  if (pipe != nullptr) ::pclose(pipe);
  return list;
}

std::string as_perf_prints(const Packet& p) {
  std::string name(packet_name(p.kind));
  switch (p.kind) {
    case K::kTip:
    case K::kTipPge:
    case K::kTipPgd:
    case K::kFup:
      return p.bits == kIpSuppressed ? name + " no ip" : fmt::format("{} {:#x}", name, p.payload);
    case K::kTsc:
    case K::kMtc:
    case K::kCbr:
      return fmt::format("{} {:#x}", name, p.payload);
    case K::kTma:
      return fmt::format("TMA CTC {:#x} FC {:#x}", p.payload & 0xffff, p.payload >> 16);
    case K::kPip:
      return fmt::format("PIP {:#x} (NR={})", p.payload >> 5, p.bits);
    case K::kTnt: {
      std::string bits;
      for (unsigned i = p.bits; i-- != 0;) bits += (p.payload >> i & 1) != 0 ? 'T' : 'N';
      return fmt::format("TNT {} ({})", bits, p.bits);
    }
    case K::kModeTsx:
      return fmt::format("MODE.TSX TXAbort:{} InTX:{}", p.payload >> 1, p.payload & 1);
    case K::kModeExec:
      return fmt::format("MODE.Exec IF:{} {}", p.payload >> 2,
                         (p.payload & 1) != 0   ? 64
                         : (p.payload & 2) != 0 ? 32
                                                : 16);
    default:
      return name;
  }
}

TEST(Packet, SameListAsPerfOfRealTraces) {
  std::optional<std::string> folder = real_pt_folder();
  if (!folder) GTEST_SKIP() << "no real traces here; TAILTRACE_REAL_PT names their folder";
  std::vector<std::string> ours;
  for (const char* name : {"aux-0-cpu0-tid3174-off0.pt", "aux-3-cpu3-tid3174-off0.pt"}) {
    Result<Bytes> bytes = read_file(*folder + "/perf_data_converter/" + name, 1 << 24);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    PacketReader reader(*bytes);
    Packet p;
    ReadStatus status;
    while ((status = reader.next(p)) == ReadStatus::kOk)
      if (p.kind != K::kPad) ours.push_back(as_perf_prints(p));
    EXPECT_EQ(status, ReadStatus::kEnd) << name << " at " << reader.offset();
  }
  std::vector<std::string> theirs = perf_listing(*folder);
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    ASSERT_EQ(ours[i], theirs[i]) << "packet " << i;
  EXPECT_EQ(ours.size(), theirs.size());
}

TEST(Packet, SameErrataAsIntelsDecoder) {
  for (unsigned model = 0; model < 256; ++model) {
    pt_cpu cpu{pcv_intel, 6, static_cast<std::uint8_t>(model), 1};
    pt_errata theirs{};
    if (pt_cpu_errata(&theirs, &cpu) < 0) continue;
    Errata e = errata_of({6, static_cast<std::uint8_t>(model), 1});
    EXPECT_EQ(e.bdm70, theirs.bdm70 != 0) << model;
    EXPECT_EQ(e.bdm64, theirs.bdm64 != 0) << model;
    EXPECT_EQ(e.skd007, theirs.skd007 != 0) << model;
    EXPECT_EQ(e.skd022, theirs.skd022 != 0) << model;
    EXPECT_EQ(e.skd010, theirs.skd010 != 0) << model;
    EXPECT_EQ(e.skl014, theirs.skl014 != 0) << model;
    EXPECT_EQ(e.apl12, theirs.apl12 != 0) << model;
    EXPECT_EQ(e.apl11, theirs.apl11 != 0) << model;
    EXPECT_EQ(e.skl168, theirs.skl168 != 0) << model;
    EXPECT_EQ(e.skz84, theirs.skz84 != 0) << model;
  }
}

// Processors that came after libipt 2.0.5, which does not know them.
TEST(Packet, ErrataOfNewerProcessors) {
  for (unsigned model : {0xad, 0xae, 0xcf}) {  // Granite Rapids, Emerald Rapids
    Errata e = errata_of({6, static_cast<std::uint8_t>(model), 0});
    EXPECT_EQ(e, (Errata{.bdm70 = true, .skd022 = true, .skl014 = true, .skz84 = true})) << model;
  }
  EXPECT_EQ(errata_of({19, 1, 0}), errata_of({6, 0xcf, 0}));                       // Diamond Rapids
  for (unsigned model : {0xaa, 0xac, 0xb5, 0xb7, 0xba, 0xbd, 0xc5, 0xc6, 0xcc}) {  // Raptor Lake on
    Errata e = errata_of({6, static_cast<std::uint8_t>(model), 0});
    EXPECT_EQ(e, (Errata{.bdm70 = true, .skd022 = true, .skl014 = true, .apl11 = true})) << model;
  }
  for (unsigned model : {0xaf, 0xb6, 0xdd})  // Sierra Forest, Grand Ridge, Clearwater Forest
    EXPECT_EQ(errata_of({6, static_cast<std::uint8_t>(model), 0}), (Errata{.apl11 = true}))
        << model;
  EXPECT_EQ(errata_of({6, 0x01, 0}), Errata{});
  EXPECT_EQ(errata_of({19, 0x55, 0}), Errata{});
}

}  // namespace
}  // namespace tailtrace::pt
