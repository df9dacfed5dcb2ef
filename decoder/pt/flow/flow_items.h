// ItemReader: what an Intel PT packet stream says, with packets that belong together put together.
//
// A FUP and the TIP behind it are an interrupt; a PTW with IP needs its FUP; PSB+ is a set of
// statements about one point; an OVF needs a look at what follows. The reader turns packets into
// items - branch outcomes, branch targets and events - in the order in which they take effect, and
// works around the processors' errata on the way. It knows nothing of code.
//
// Threading: one thread at a time; the bytes must outlive the reader.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "decoder/pt/decoder.h"
#include "decoder/pt/packets/packet_reader.h"
#include "decoder/pt/timing.h"

namespace tailtrace::pt {

enum class ItemKind : std::uint8_t {
  kTnt,  // `bits` outcomes in `payload`, the oldest in the highest of them
  kTip,  // a branch target in `payload`, unless suppressed
  kEvent,
  kBoundary,  // the PSB at which to stop; its address is in `payload`, unless suppressed
  kEnd,
  kError,  // the packet at `offset_bytes` cannot be used; there is no next item
};

struct Item {
  ItemKind kind = ItemKind::kEnd;
  DecodeError error = DecodeError::kNoSync;
  std::uint8_t bits = 0;
  bool suppressed = false;
  bool cut = false;         // kEnd, kError: a TNT or TIP begins there, but cannot be read
  bool time_exact = false;  // a time of its own came right before it
  std::uint64_t payload = 0;
  std::uint64_t time = 0;          // TSC; 0 unknown
  std::uint64_t offset_bytes = 0;  // of the packet; of the PSB for what PSB+ says
  Event event;                     // kEvent
};

// A Trigger event's payload: TRBV | ICNT << 8 | kTriggerCounted when it lies ICNT instructions
// behind the last event with an address.
constexpr std::uint64_t kTriggerCounted = 1ull << 32;

// What CS.L and CS.D of MODE.Exec mean; both together mean nothing.
inline std::optional<CodeMode> mode_of(std::uint64_t exec_bits) {
  switch (exec_bits & 3) {
    case 0:
      return CodeMode::k16;
    case 1:
      return CodeMode::k64;
    case 2:
      return CodeMode::k32;
    default:
      return std::nullopt;
  }
}

constexpr bool ends_stream(ItemKind kind) { return kind >= ItemKind::kBoundary; }

class ItemReader {
 public:
  ItemReader(ByteSpan trace, const DecoderConfig& config);

  // Where the flow begins: what the first PSB+ says. No value: tracing is disabled there.
  std::optional<Address> start_ip() const { return start_ip_; }

  // Whether an overflow cut that PSB+: what it does not say is not known.
  bool started_cut() const { return cut_; }

  // Begins at a PSB; start_ip() is known then, and its status events are the first items. An error
  // in PSB+ is the first item.
  void start(std::size_t psb_offset);

  // The PSB that is a kBoundary when it is read: where another reader begins.
  void set_boundary(std::size_t psb_offset) { boundary_ = psb_offset; }

  // The next item, which stays it until it is taken.
  const Item& peek() {
    if (!has_item()) fetch();
    return out_[out_begin_];
  }
  void take() { out_begin_ += !ends_stream(out_[out_begin_].kind); }

  // Whether the stream stands between two packets with nothing pending, so that packets can be read
  // by somebody else from place() on; resume() goes on where he stopped.
  bool is_between_packets() const {
    if (!at_fup_.empty() || !at_tip_.empty() || packets_.in_block()) return false;
    if (!has_item()) return true;
    const ItemKind kind = out_[out_begin_].kind;
    return out_end_ - out_begin_ == 1 && (kind == ItemKind::kTnt || kind == ItemKind::kTip);
  }
  std::size_t place() const {
    return has_item() ? static_cast<std::size_t>(out_[out_begin_].offset_bytes) : packets_.offset();
  }
  void resume(std::size_t offset, std::uint64_t last_ip, bool fresh_time) {
    packets_.seek(offset);
    fresh_time_ = fresh_time;
    last_ip_ = last_ip;
    have_ip_ = true;
    out_begin_ = out_end_ = 0;
  }
  // Whether the packet at place() has a time of its own.
  bool has_fresh_time() const { return has_item() ? out_[out_begin_].time_exact : fresh_time_; }
  std::uint64_t last_ip() const { return last_ip_; }
  Clock& clock() { return clock_; }

  // Behind the last packet that was read.
  std::size_t offset() const { return packets_.offset(); }
  const Clock& clock() const { return clock_; }

 private:
  // An event that waits for the IP packet it binds to.
  struct Pending {
    Event event;
    bool consumes = true;  // the FUP says no more than this event's address
    bool silent = false;   // not to be reported: a FUP that has to be skipped
  };
  template <std::size_t kCapacity>
  struct Queue {
    std::array<Pending, kCapacity> items;
    std::size_t size = 0;

    bool push(const Pending& p) {
      if (size == kCapacity) return false;
      items[size++] = p;
      return true;
    }
    bool empty() const { return size == 0; }
    void clear() { size = 0; }
    const Pending* begin() const { return items.data(); }
    const Pending* end() const { return items.data() + size; }
    Pending* begin() { return items.data(); }
    Pending* end() { return items.data() + size; }
    Pending* find(EventKind kind) {
      for (Pending& p : *this)
        if (p.event.kind == kind) return &p;
      return nullptr;
    }
    bool contains(EventKind kind) const {
      return std::ranges::any_of(*this, [=](const Pending& p) { return p.event.kind == kind; });
    }
  };
  static constexpr std::size_t kMaxPending = 16;

  bool has_item() const { return out_begin_ != out_end_; }
  void fetch();
  bool take_branch();
  bool read_and_take();
  bool take_packet(const Packet& packet);
  bool take_other(const Packet& packet);

  bool skip_to_last_psb();
  bool take_psb(std::size_t offset);
  bool take_header_packet(const Packet& packet);
  static bool header_fup_is_bdm70(PacketReader ahead);
  void end_header();

  void take_address(const Packet& packet);
  bool take_ip(const Packet& packet);
  bool take_tip(const Packet& packet);
  bool take_pge(const Packet& packet);
  bool take_pgd(const Packet& packet);
  bool take_fup(const Packet& packet);
  bool take_mode_at_fup();
  bool emit_interrupt_flag(Event event);
  bool emit_changed_interrupt_flag(const Event& event);
  bool emit_behind_branch(const Event& event);
  bool take_mode_exec(const Packet& packet);
  bool take_mode_tsx(const Packet& packet);
  bool take_pip(const Packet& packet);
  bool take_vmcs(const Packet& packet);
  bool take_mwait(const Packet& packet);
  bool take_exstop(const Packet& packet);
  bool emit_mwaits();
  bool take_ptw(const Packet& packet);
  bool take_cfe(const Packet& packet);
  bool take_evd(const Packet& packet);
  bool take_trig(const Packet& packet);
  bool take_cyc(const Packet& packet);
  bool skip_cut_cyc(const Packet& packet);

  // flow_overflow.cpp
  bool ovf_comes_first() const;
  bool take_ovf();
  enum class AfterOvf : std::uint8_t { kFup, kDisabled, kOutOfPlace };
  AfterOvf look_behind_ovf(std::size_t& fup_end) const;
  struct Resumption {
    std::size_t offset = 0;    // go on here
    Clock clock;               // with this time
    std::optional<Packet> ip;  // at the address of this packet; none: disabled
  };
  std::optional<Resumption> find_in_psb() const;
  std::optional<Resumption> find_skd010() const;
  std::optional<Resumption> find_apl11() const;
  std::optional<Resumption> find_apl12(std::size_t fup_end) const;
  bool resume(const Resumption& resumption);

  Event make(EventKind kind) const;
  bool emit(const Event& event);
  bool emit_standalone(EventKind kind, std::uint64_t payload = 0, std::uint16_t flags = 0,
                       std::uint8_t size_bytes = 0);
  bool bind_to_fup(const Event& event, bool consumes = true, bool silent = false);
  bool bind_to_tip(const Event& event);
  bool is_branch_packet() const;
  bool end(bool cut);
  bool stop_at_boundary();
  bool fail(DecodeError error);
  bool fail_at(DecodeError error, std::size_t offset);
  Item& add(ItemKind kind);
  void add_target();
  void add_outcomes(const Packet& packet);
  bool put_ip(Event& event, bool to = false) const;

  const DecoderConfig& config_;
  PacketReader packets_;
  Clock clock_;
  bool fresh_time_ = false;

  std::uint64_t last_ip_ = 0;
  bool have_ip_ = false;  // the last IP packet carried one
  bool enabled_ = false;
  bool in_header_ = false;
  static constexpr std::uint64_t kUnknownBits = ~0ull;
  std::uint64_t exec_bits_ = kUnknownBits;         // the last MODE.Exec
  std::uint64_t exec_bits_before_ = kUnknownBits;  // and the one before it
  unsigned data_ = 0;                              // the types of EVD that wait for their CFE
  std::optional<Address> start_ip_;
  bool cut_ = false;  // the last PSB+, by an overflow
  std::size_t packet_offset_ = 0;
  std::size_t boundary_ = ~std::size_t{0};

  Queue<kMaxPending> at_fup_;
  Queue<kMaxPending> at_tip_;
  Queue<kMaxPending> in_psb_;

  // Items that one packet made.
  std::array<Item, 2 * kMaxPending + 2> out_;
  std::size_t out_begin_ = 0, out_end_ = 0;
};

}  // namespace tailtrace::pt
