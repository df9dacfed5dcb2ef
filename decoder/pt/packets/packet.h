// One Intel PT packet, decoded but not interpreted: what kind it is, how long, and its payload.
//
// The layouts are those of the SDM, volume 3, chapter "Intel Processor Trace", section "Packet
// definitions"; packet_reader.cpp quotes the bytes of each.
//
// Threading: values, no shared state.
#pragma once

#include <cstdint>
#include <string_view>

namespace tailtrace::pt {

enum class PacketKind : std::uint8_t {
  kPad,
  kPsb,
  kPsbEnd,
  kTnt,     // bits: how many; payload: the newest outcome in bit 0, 1 is taken. Long form: 8 bytes
  kTip,     // bits: an IpCompression; payload: the IP bytes as they are
  kTipPge,  // the same
  kTipPgd,  // the same
  kFup,     // the same
  kModeExec,  // payload: bit 0 CS.L, bit 1 CS.D, bit 2 RFLAGS.IF
  kModeTsx,   // payload: bit 0 InTX, bit 1 TXAbort
  kPip,       // payload: CR3 with its low 5 bits zero; bits: 1 in VMX non-root operation
  kVmcs,      // payload: address of the VMCS
  kTsc,       // payload: 56 bits of the TSC
  kTma,       // payload: CTC (16 bits) | fast counter (9 bits) << 16
  kMtc,       // payload: 8 bits of the crystal clock counter
  kCyc,       // payload: core cycles since the CYC before
  kCbr,       // payload: core to bus ratio
  kOvf,
  kStop,    // TraceStop
  kPtw,     // payload; bits: its size in bytes, 4 or 8; has_ip
  kExstop,  // has_ip
  kMwait,   // payload: hints (32 bits) | extensions (32 bits) << 32; a FUP follows
  kPwre,    // payload: state | sub state << 8; bits: 1 when the hardware chose it
  kPwrx,    // payload: last core C-state | deepest << 8; bits: 1 interrupt, 4 store, 8 hardware
  kMnt,     // payload
  kBbp,     // bits: type of the block; payload: size of its items in bytes, 4 or 8
  kBip,     // bits: identifier; payload
  kBep,     // has_ip
  kCfe,     // bits: type; payload: vector; has_ip
  kEvd,     // bits: type; payload
  kTrig,    // payload: TRBV | ICNT << 8; bits: 1 when ICNT is valid, 2 MULT; has_ip
};
constexpr std::size_t kPacketKinds = 31;

// IPBytes of TIP, TIP.PGE, TIP.PGD and FUP.
enum IpCompression : std::uint8_t {
  kIpSuppressed = 0,
  kIpUpdate16 = 1,  // the low bytes of the last IP are replaced
  kIpUpdate32 = 2,
  kIpSext48 = 3,  // sign-extended
  kIpUpdate48 = 4,
  kIpFull = 6,
};

// CFE types (SDM, "CFE packet").
enum CfeType : std::uint8_t {
  kCfeInterrupt = 1,
  kCfeIret = 2,
  kCfeSmi = 3,
  kCfeRsm = 4,
  kCfeSipi = 5,
  kCfeInit = 6,
  kCfeVmEntry = 7,
  kCfeVmExit = 8,
  kCfeVmExitInterrupt = 9,
  kCfeShutdown = 10,
  kCfeUserInterrupt = 12,
  kCfeUiret = 13,
};

// EVD types (SDM, "EVD packet").
enum EvdType : std::uint8_t {
  kEvdCr2 = 0,   // the address of a page fault
  kEvdVmxq = 1,  // the qualification of a VM exit
  kEvdVmxr = 2,  // its reason
};

struct Packet {
  PacketKind kind = PacketKind::kPad;
  std::uint8_t size_bytes = 0;
  std::uint8_t bits = 0;
  bool has_ip = false;  // a FUP follows that belongs to this packet
  std::uint64_t payload = 0;

  friend bool operator==(const Packet&, const Packet&) = default;
};

constexpr std::size_t kPsbSize_bytes = 16;

// The number of a C-state in PWRE and PWRX, which count from C1.
constexpr unsigned c_state(std::uint64_t field) { return static_cast<unsigned>((field + 1) & 0xf); }

// The SDM's name: "TIP.PGE", "MODE.Exec", ...
std::string_view packet_name(PacketKind kind);

// The last IP of a packet stream (SDM, "IP compression"): what an IP packet makes of it.
// REQUIRES: a packet of an IP kind that is not suppressed.
constexpr std::uint64_t apply_ip(std::uint64_t last, const Packet& packet) {
  switch (packet.bits) {
    case kIpUpdate16:
      return (last & ~0xffffull) | packet.payload;
    case kIpUpdate32:
      return (last & ~0xffffffffull) | packet.payload;
    case kIpSext48:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(packet.payload << 16) >> 16);
    case kIpUpdate48:
      return (last & ~0xffffffffffffull) | packet.payload;
    default:
      return packet.payload;
  }
}

}  // namespace tailtrace::pt
