#include "decoder/pt/fast/fast_loop.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tailtrace::pt {
namespace {

constexpr unsigned kTntBits = 6;
constexpr std::size_t kLongTnt_bytes = 8;
constexpr std::uint32_t kNoWord = ~0u, kMaxWord = kNoWord >> 1;

struct IpCode {
  std::uint64_t mask = 0;      // which bits the packet has; those above are as they were
  std::size_t size_bytes = 0;  // of the packet
};
// By the packet's highest bits. The third leaves nothing as it was: its sign is extended.
constexpr IpCode kIpCodes[8] = {
    {}, {0xffff, 3}, {0xffffffff, 5}, {0xffffffffffff, 7}, {0xffffffffffff, 7}, {}, {~0ull, 9}, {}};

}  // namespace

// Never inside of the loop, which needs all registers.
template <class... Symbol>
[[gnu::noinline]] std::uint64_t FastFlow::find_or_fill(StateKey state, Symbol... symbol) {
  if (const std::uint64_t row = pool_->rows().find(state, symbol...)) return row;
  if (rest_branches_ != 0) return 0;
  ++fills_;
  return filler_.fill(state, symbol...);
}

// The loop. All of it is inlined into run_block_...() and its members live in registers: nothing
// takes their addresses.
struct FastFlow::Loop {
  FastFlow& owner;
  const std::uint8_t* at;
  const std::uint8_t* const end;
  std::uint64_t last_ip, rest;
  const std::uint8_t *time_end, *cyc_end;
  PacketTime used;
  const std::uint8_t* used_at = nullptr;  // the last packet, unless used.exact tells of it already
  StateKey state;
  std::uint8_t left = 0, deferred;
  unsigned rest_count;
  std::uint32_t rest_first = 0, target_first = kPathFirst;
  StateKey* top;  // behind the newest entry
  StateKey* const stack;
  std::uint32_t* out;
  std::uint32_t* const block;
  const std::uint32_t block_word;
  std::uint32_t marked_word = kNoWord;
  TimeMark* mark;
  const std::uint64_t start_ticks;
  std::uint64_t counts = 0, counts_before_on = 0;
  bool enabled = false;
  const Beside* const beside;
  const std::uint64_t* const outcomes;
  const RowTable<TargetKey>::View targets;
  Clock& clock;
  const std::uint64_t stop_time;
  const std::uint8_t mode;
  const bool skd007, pauses;

  Loop(FastFlow& flow, const Registers& r)
      : owner(flow),
        at(r.at),
        end(r.end),
        last_ip(r.last_ip),
        rest(r.rest),
        time_end(r.time_end),
        cyc_end(r.cyc_end),
        used(r.used),
        state(r.state),
        deferred(r.deferred),
        rest_count(r.rest_count),
        top(r.stack + r.top),
        stack(r.stack),
        out(r.out),
        block(r.block),
        block_word(r.block_word),
        mark(r.mark),
        start_ticks(r.start_ticks),
        beside(flow.pool_->rows().beside()),
        outcomes(flow.pool_->rows().outcomes()),
        targets(flow.pool_->rows().targets()),
        clock(*r.clock),
        stop_time(r.stop_time),
        mode(static_cast<std::uint8_t>(r.mode)),
        skd007(r.skd007),
        pauses(r.pauses) {}

  // A block, for whichever processor this is compiled.
  [[gnu::always_inline]] static bool run(FastFlow& flow, Registers& r) {
    Loop loop(flow, r);
    const bool more = loop.run();
    loop.store(r);
    return more;
  }

  void store(Registers& r) {
    settle_exact();
    r.at = at;
    r.last_ip = last_ip;
    r.state = state;
    r.left = left;
    r.deferred = deferred;
    r.rest = rest;
    r.rest_count = rest_count;
    r.top = static_cast<std::size_t>(top - stack);
    r.out = out;
    r.mark = mark;
    r.counts = counts;
    r.enabled = enabled;
    r.counts_before_on = counts_before_on;
    r.time_end = time_end;
    r.cyc_end = cyc_end;
    r.used = used;
  }

  [[gnu::always_inline]] std::uint64_t row_at(std::uint8_t symbol) const {
    return load_row(outcomes[Rows::slot_of(state, symbol)]);
  }

  // All but where the row leads. What it pushes is always stored, be it nothing: that is cheaper
  // than asking.
  [[gnu::always_inline]] void apply(std::uint64_t row, std::uint32_t first) {
    const std::uint32_t effect = RowBits::effect(row);
    *out++ = effect | first;
    counts += beside[effect].counts;
    std::memcpy(top, beside[effect].pushes.keys, sizeof Pushes::keys);
    top += RowBits::pushes(row);
  }

  [[gnu::always_inline]] void apply_plain(std::uint64_t row, std::uint32_t first) {
    state = RowBits::next(row);
    apply(row, first);
  }

  // Whether a row pops can be guessed in nine of ten cases only: so that is not a branch.
  [[gnu::always_inline]] static StateKey next_of(std::uint64_t row, StateKey newest) {
    const bool pops = RowBits::pops(row);
    return __builtin_expect_with_probability(pops, 1, 0.5) ? newest : RowBits::next(row);
  }

  // The row of a symbol that does not lie in its slot.
  [[gnu::always_inline]] std::uint64_t find_elsewhere(std::uint8_t symbol) {
    ++owner.detours_;
    return owner.find_or_fill(state, symbol);
  }

  [[gnu::always_inline]] bool leave(std::uint8_t bits) {
    left = bits;
    return false;
  }

  // Uses the outcomes of a TNT byte, whose slot holds `row`. False: some could not be used and are
  // in `left`.
  [[gnu::always_inline]] bool use(std::uint64_t row, std::uint8_t bits, std::uint32_t first) {
    for (;;) {
      if ((row & RowBits::kTagMask) != bits) [[unlikely]] {
        row = find_elsewhere(bits);
        if (row == 0) return leave(bits);
      }
      const StateKey next = next_of(row, top[-1]);
      if (next == 0) [[unlikely]]  // a return without a call
        return leave(bits);
      state = next;
      apply(row, first);
      top -= RowBits::pops(row);
      bits = RowBits::left(row);
      if (bits == 0) return true;
      if ((row & RowBits::kDeferred) != 0) [[unlikely]] {
        deferred = bits;
        return true;
      }
      first = 0;
      row = row_at(bits);
      if (RowBits::is_plain(row, bits)) {
        apply_plain(row, 0);
        return true;
      }
    }
  }

  // Uses the next outcomes of a long TNT.
  [[gnu::always_inline]] bool use_rest() {
    unsigned part = std::min(rest_count, kTntBits);
    rest_count -= part;
    std::uint64_t outcomes_here = rest >> rest_count & ((1u << part) - 1);
    auto bits = static_cast<std::uint8_t>((outcomes_here | 1u << part) << 1);
    std::uint32_t first = std::exchange(rest_first, 0);
    bool all = use(row_at(bits), bits, first);
    if (first != 0 && left == bits)
      give_back(kLongTnt_bytes);
    else if (first != 0)
      used_at = at - kLongTnt_bytes;
    return all;
  }

  // Nothing of the packet could be used: it is the next one again.
  void give_back(std::size_t size_bytes) {
    at -= size_bytes;
    left = 0;
    rest_count = 0;
  }

  // The row of an IP packet; 0: none.
  [[gnu::always_inline]] std::uint64_t row_of(StateKey from, std::uint64_t ip, IpKind kind) {
    const std::uint64_t row = targets.find({from, ip, kind});
    return row != 0 ? row : owner.find_or_fill(from, ip, kind);
  }

  // The address in an IP packet, and the packet's size. False: it has none, or one that no
  // TargetKey can hold.
  struct Ip {
    std::uint64_t ip = 0;
    std::size_t size_bytes = 0;
  };
  [[gnu::always_inline]] static bool read_ip(const std::uint8_t* packet, std::uint8_t head,
                                             std::uint64_t last, Ip& read) {
    const IpCode& code = kIpCodes[head >> 5];
    std::uint64_t raw;
    std::memcpy(&raw, packet + 1, sizeof raw);
    const std::uint64_t ip = last ^ ((last ^ raw) & code.mask);
    read = {TargetKey::sign_extended(ip), code.size_bytes};
    // Nothing is above the 48 bits of these, nor was before.
    const bool is_common = (head >> 5) - 1u < 3;
    if (is_common) [[likely]]
      return true;
    return code.size_bytes != 0 && read.ip == ip;
  }

  [[gnu::always_inline]] bool take_tip(std::uint8_t head) {
    Ip to;
    if (!read_ip(at, head, last_ip, to)) [[unlikely]]
      return false;
    const std::uint64_t landing = row_of(mode, to.ip, IpKind::kTarget);
    if (landing == 0) [[unlikely]]
      return false;
    std::uint64_t row = row_at(kTipSymbol);
    if (RowBits::is_plain(row, kTipSymbol)) [[likely]] {
      apply(row, target_first);
    } else {
      if ((row & RowBits::kTagMask) != kTipSymbol) [[unlikely]]
        row = find_elsewhere(kTipSymbol);
      if (row == 0) [[unlikely]]
        return false;
      apply(row, target_first);
      // The entry of a return, when one is there.
      if (RowBits::pops(row)) top -= top != stack + 1;
      if ((row & RowBits::kDeferred) != 0) [[unlikely]] {
        state = RowBits::next(row);
        target_first = 0;
        return true;  // the same packet again
      }
    }
    state = RowBits::next(landing);
    target_first = kPathFirst;
    used_at = at;
    last_ip = to.ip;
    at += to.size_bytes;
    if (deferred == 0) [[likely]]
      return true;
    const std::uint8_t bits = std::exchange(deferred, 0);
    return use(row_at(bits), bits, 0);
  }

  // TIP.PGD, and the TIP.PGE behind it: both or none, so that tracing is on wherever it is left.
  [[gnu::always_inline]] bool take_pause(std::uint8_t head) {
    if (deferred != 0 || !pauses) return false;
    const bool silent = head >> 5 == 0;
    Ip off{0, 1};
    if (!silent && !read_ip(at, head, last_ip, off)) return false;
    const std::uint8_t* on_packet = skip_padding(at + off.size_bytes);
    if (on_packet >= end || (*on_packet & 0x1f) != 0x11) return false;
    Ip on;
    if (!read_ip(on_packet, *on_packet, silent ? last_ip : off.ip, on)) return false;
    const std::uint64_t off_row = row_of(state, off.ip, silent ? IpKind::kOffSilent : IpKind::kOff);
    if (off_row == 0) return false;
    if ((off_row & RowBits::kDeferred) != 0) [[unlikely]] {
      apply(off_row, std::exchange(target_first, 0));
      state = RowBits::next(off_row);
      return true;  // the same packet again
    }
    std::uint64_t on_row = row_of(RowBits::next(off_row), on.ip, IpKind::kOn);
    if (on_row == 0) return false;
    apply(off_row, std::exchange(target_first, kPathFirst));
    enabled = true;
    counts_before_on = counts;
    apply(on_row, kPathFirst);
    state = RowBits::next(on_row);
    used.exact = false;  // nothing stands between the two
    used_at = nullptr;
    last_ip = on.ip;
    at = on_packet + on.size_bytes;
    return true;
  }

  [[gnu::always_inline]] const std::uint8_t* skip_padding(const std::uint8_t* from) const {
    while (from < end) {
      std::uint64_t raw;
      std::memcpy(&raw, from, sizeof raw);
      if (raw != 0) return from + std::countr_zero(raw) / 8;
      from += sizeof raw;
    }
    return from;
  }

  // PAD, and the long TNT.
  [[gnu::always_inline]] bool take_extended(std::uint8_t head) {
    if (head == 0) {
      settle_exact();
      const std::uint8_t* behind = skip_padding(at);
      if (time_end == at) time_end = behind;
      if (cyc_end == at) cyc_end = behind;
      at = behind;
      return true;
    }
    if (at[1] != 0xa3 || deferred != 0) return false;
    std::uint64_t raw;
    std::memcpy(&raw, at, sizeof raw);
    raw >>= 16;
    if (raw == 0) return false;
    at += kLongTnt_bytes;
    rest = raw;
    rest_count = static_cast<unsigned>(std::bit_width(raw)) - 1;
    rest_first = kPathFirst;
    return true;
  }

  [[gnu::always_inline]] bool take_time(std::uint8_t head) {
    settle_exact();
    const std::uint8_t* begin = at;
    std::uint64_t before = clock.known_ticks();
    if ((head & 3) == 3) {
      std::uint64_t cycles = head >> 3;
      bool longer = (head & 4) != 0;
      // Two bytes; more are rare. SKD007 concerns this form.
      if (longer && ((at[1] & 1) != 0 || (skd007 && at[1] == 0x02))) return false;
      if (longer) cycles |= std::uint64_t{at[1]} >> 1 << 5;
      at += longer ? 2 : 1;
      cyc_end = at;
      clock.take_cyc(cycles);
    } else if (head == 0x59) {
      clock.take_mtc(at[1]);
      if (cyc_end == at) cyc_end = at + 2;
      at += 2;
    } else {
      return false;
    }
    if (time_end != begin) used.ticks = not_before(used.ticks, before);
    time_end = at;
    return note_time() && clock.ticks() < stop_time;
  }

  // Before `cyc_end` changes: whether a CYC stood right before the last packet.
  [[gnu::always_inline]] void settle_exact() {
    if (used_at != nullptr) used.exact = cyc_end == used_at;
    used_at = nullptr;
  }

  // What comes behind has the time that is now. False: that is too far from the stretch's start.
  [[gnu::always_inline]] bool note_time() {
    const std::uint32_t word = block_word + static_cast<std::uint32_t>(out - block);
    if (word != marked_word) ++mark;
    marked_word = word;
    const auto since_start = static_cast<std::int64_t>(clock.known_ticks() - start_ticks);
    const auto told = static_cast<std::int32_t>(since_start);
    // In one go: a field alone would be read first, and memory read first is faulted in twice.
    const TimeMark now{word & kMaxWord, cyc_end == at, told};
    std::memcpy(mark - 1, &now, sizeof now);
    return told == since_start;
  }

  // Until when nothing has to be asked between two packets. None has more than so many bytes, and
  // each makes a word.
  const std::uint32_t* quiet_until(const std::uint32_t* full) const {
    constexpr std::ptrdiff_t kMostPacket_bytes = 16;
    const std::uint32_t* const all = out + (end - at - 1) / kMostPacket_bytes;
    return deferred != 0 ? out : std::min(full, all);
  }

  // A TNT byte whose row is not plain.
  [[gnu::always_inline]] bool take_tnt(std::uint8_t head, std::uint64_t row) {
    const bool all = use(row, head, kPathFirst);
    if (left == head) [[unlikely]] {
      left = 0;
      return false;
    }
    used_at = at++;
    return all;
  }

  // True: the block is full; false: the next packet is not for us.
  [[gnu::always_inline]] bool run() {
    const std::uint32_t* const full = out + kBlockWords;
    for (;;) {
      if (rest_count != 0 && deferred == 0) {
        if (!use_rest()) return false;
        continue;
      }
      if (at >= end) return false;
      // Not in the middle of a packet.
      if (out >= full && target_first != 0) return true;
      const bool is_tnt = (*at & 1) == 0 && *at > 2;
      if (deferred != 0 && is_tnt) return false;
      const std::uint32_t* const stop = quiet_until(full);
      do {
        const std::uint8_t head = *at;
        if ((head & 1) == 0) {
          if (head <= 2) [[unlikely]] {
            if (!take_extended(head)) return false;
            break;
          }
          const std::uint64_t row = row_at(head);
          if (RowBits::is_plain(row, head)) [[likely]] {
            apply_plain(row, kPathFirst);
            used_at = at++;
            continue;
          }
          if (!take_tnt(head, row)) [[unlikely]]
            return false;
        } else if ((head & 0x1f) == 0x0d) {
          if (!take_tip(head)) return false;
        } else {
          if (!((head & 0x1f) == 0x01 ? take_pause(head) : take_time(head))) return false;
          break;
        }
        if (deferred != 0) [[unlikely]]
          break;
      } while (out < stop);
    }
  }
};

// Aligned, as where the loop lies in lines of the instruction cache makes 1 to 2 %.
[[gnu::aligned(64)]] bool FastFlow::run_block_anywhere(Registers& r) { return Loop::run(*this, r); }

// Shifts that leave the flags alone make 5 % of an interpreter's trace.
[[gnu::aligned(64), gnu::target("bmi2")]] bool FastFlow::run_block_bmi2(Registers& r) {
  return Loop::run(*this, r);
}

bool FastFlow::run_block(Registers& r) {
  static const bool has_bmi2 = __builtin_cpu_supports("bmi2") != 0;
  return has_bmi2 ? run_block_bmi2(r) : run_block_anywhere(r);
}

}  // namespace tailtrace::pt
