#include "decoder/pt/fast_loop.h"

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
  std::uint64_t mask = 0;       // which bits the packet has
  std::uint8_t extend = 0;      // shifted out and in again with the sign
  std::uint8_t size_bytes = 0;  // of the packet; 0: not for the fast path
};
constexpr IpCode kIpCodes[8] = {{},
                                {0xffff, 0, 3},
                                {0xffffffff, 0, 5},
                                {0xffffffffffff, 16, 7},
                                {0xffffffffffff, 0, 7},
                                {},
                                {~0ull, 0, 9},
                                {}};

}  // namespace

template <class... Symbol>
std::uint64_t FastFlow::find_or_fill(StateKey state, Symbol... symbol) {
  if (const std::uint64_t row = pool_->rows().find(state, symbol...)) return row;
  if (++fills_ > probe_fills_) judge_rows();
  return rest_branches_ != 0 ? 0 : filler_.fill(state, symbol...);
}

// The loop. All of it is inlined into run_block() and its members live in registers: nothing takes
// their addresses.
struct FastFlow::Loop {
  FastFlow& owner;
  const std::uint8_t* at;
  const std::uint8_t* const end;
  std::uint64_t last_ip, rest;
  const std::uint8_t *time_end, *cyc_end;
  PacketTime used;
  StateKey state;
  std::uint8_t left = 0, deferred;
  unsigned rest_count;
  std::uint32_t rest_first = 0, target_first = kPathFirst;
  StateKey* const stack;
  std::size_t top;
  std::uint32_t* out;
  std::uint32_t* const block;
  const std::uint32_t block_word;
  std::uint32_t marked_word = kNoWord;
  TimeMark* mark;
  const std::uint64_t start_ticks;
  std::uint32_t* on_at = nullptr;
  const Pushes* const pushed;
  const std::uint64_t* const outcomes;
  const RowTable<TargetKey>::View targets;
  Clock& clock;
  const std::uint64_t stop_time;
  const StateKey mode;
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
        stack(r.stack),
        top(r.top),
        out(r.out),
        block(r.block),
        block_word(r.block_word),
        mark(r.mark),
        start_ticks(r.start_ticks),
        pushed(flow.pool_->rows().pushes()),
        outcomes(flow.pool_->rows().outcomes()),
        targets(flow.pool_->rows().targets()),
        clock(*r.clock),
        stop_time(r.stop_time),
        mode(r.mode),
        skd007(r.skd007),
        pauses(r.pauses) {}

  void store(Registers& r) const {
    r.at = at;
    r.last_ip = last_ip;
    r.state = state;
    r.left = left;
    r.deferred = deferred;
    r.rest = rest;
    r.rest_count = rest_count;
    r.top = top;
    r.out = out;
    r.mark = mark;
    r.on_at = on_at;
    r.time_end = time_end;
    r.cyc_end = cyc_end;
    r.used = used;
  }

  // What a row does beside leading to the next state. Storing always is cheaper than asking.
  [[gnu::always_inline]] void apply(std::uint64_t row, std::uint32_t first) {
    std::uint32_t effect = RowBits::effect(row);
    const Pushes& pushes = pushed[RowBits::growth(row) > 0 ? effect : 0];
    std::memcpy(stack + top, pushes.keys, sizeof pushes.keys);
    top += static_cast<std::size_t>(RowBits::growth(row));
    *out++ = effect | first;
  }

  // The row of a symbol that does not lie in its slot.
  [[gnu::always_inline]] std::uint64_t find_elsewhere(std::uint8_t symbol) {
    ++owner.detours_;
    return owner.find_or_fill(state, symbol);
  }

  // Uses the outcomes of a TNT byte. False: some could not be used and are in `left`.
  [[gnu::always_inline]] bool use(std::uint8_t bits, std::uint32_t first) {
    for (;;) {
      std::uint64_t row = load_row(outcomes[Rows::slot_of(state, bits)]);
      if (RowBits::is_plain(row, bits)) [[likely]] {
        *out++ = RowBits::effect(row) | first;
        state = RowBits::next(row);
        return true;
      }
      if ((row & RowBits::kTagMask) != bits) [[unlikely]]
        row = find_elsewhere(bits);
      StateKey next = RowBits::pops(row) ? stack[top - 1] : RowBits::next(row);
      // No row, or a return without a call.
      if (row == 0 || next == 0) [[unlikely]] {
        left = bits;
        return false;
      }
      apply(row, first);
      state = next;
      bits = RowBits::left(row);
      if (bits == 0) [[likely]]
        return true;
      if ((row & RowBits::kDeferred) != 0) {
        deferred = bits;
        return true;
      }
      first = 0;
    }
  }

  // Uses the next outcomes of a long TNT.
  [[gnu::always_inline]] bool use_rest() {
    unsigned part = std::min(rest_count, kTntBits);
    rest_count -= part;
    std::uint64_t outcomes_here = rest >> rest_count & ((1u << part) - 1);
    auto bits = static_cast<std::uint8_t>((outcomes_here | 1u << part) << 1);
    std::uint32_t first = std::exchange(rest_first, 0);
    bool all = use(bits, first);
    if (first != 0 && left == bits)
      give_back(kLongTnt_bytes);
    else if (first != 0)
      used.exact = cyc_end == at - kLongTnt_bytes;
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
    if (!TargetKey::can_hold(ip)) [[unlikely]]
      return 0;
    const std::uint64_t row = targets.find({from, ip, kind});
    return row != 0 ? row : owner.find_or_fill(from, ip, kind);
  }

  // The address in the IP packet at `packet`.
  [[gnu::always_inline]] static std::uint64_t ip_of(const std::uint8_t* packet, const IpCode& code,
                                                    std::uint64_t last) {
    std::uint64_t raw;
    std::memcpy(&raw, packet + 1, sizeof raw);
    std::uint64_t ip = (last & ~code.mask) | (raw & code.mask);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(ip << code.extend) >> code.extend);
  }

  [[gnu::always_inline]] bool take_tip(std::uint8_t head) {
    const IpCode& code = kIpCodes[head >> 5];
    if (code.size_bytes == 0) return false;
    std::uint64_t ip = ip_of(at, code, last_ip);
    std::uint64_t landing = row_of(mode, ip, IpKind::kTarget);
    std::uint64_t row = load_row(outcomes[Rows::slot_of(state, kTipSymbol)]);
    if ((row & RowBits::kTagMask) != kTipSymbol) [[unlikely]]
      row = find_elsewhere(kTipSymbol);
    if (row == 0 || landing == 0) [[unlikely]]
      return false;
    apply(row, target_first);
    if ((row & RowBits::kDeferred) != 0) [[unlikely]] {
      state = RowBits::next(row);
      target_first = 0;
      return true;  // the same packet again
    }
    top += top == 0;  // nothing was there to be dropped
    state = RowBits::next(landing);
    target_first = kPathFirst;
    used.exact = cyc_end == at;
    last_ip = ip;
    at += code.size_bytes;
    return deferred == 0 || use(std::exchange(deferred, 0), 0);
  }

  // TIP.PGD, and the TIP.PGE behind it: both or none, so that tracing is on wherever it is left.
  [[gnu::always_inline]] bool take_pause(std::uint8_t head) {
    if (deferred != 0 || !pauses) return false;
    const IpCode& off_code = kIpCodes[head >> 5];
    bool silent = head >> 5 == 0;
    if (off_code.size_bytes == 0 && !silent) return false;
    std::uint64_t off_ip = silent ? 0 : ip_of(at, off_code, last_ip);
    const std::uint8_t* on = skip_padding(at + (silent ? 1 : off_code.size_bytes));
    if (on >= end || (*on & 0x1f) != 0x11) return false;
    const IpCode& on_code = kIpCodes[*on >> 5];
    if (on_code.size_bytes == 0) return false;
    std::uint64_t on_ip = ip_of(on, on_code, silent ? last_ip : off_ip);
    std::uint64_t off_row = row_of(state, off_ip, silent ? IpKind::kOffSilent : IpKind::kOff);
    if (off_row == 0) return false;
    if ((off_row & RowBits::kDeferred) != 0) [[unlikely]] {
      apply(off_row, std::exchange(target_first, 0));
      state = RowBits::next(off_row);
      return true;  // the same packet again
    }
    std::uint64_t on_row = row_of(RowBits::next(off_row), on_ip, IpKind::kOn);
    if (on_row == 0) return false;
    apply(off_row, std::exchange(target_first, kPathFirst));
    on_at = out;
    apply(on_row, kPathFirst);
    state = RowBits::next(on_row);
    used.exact = false;  // nothing stands between the two
    last_ip = on_ip;
    at = on + on_code.size_bytes;
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

  // True: the block is full; false: the next packet is not for us.
  [[gnu::always_inline]] bool run() {
    const std::uint32_t* const full = out + kBlockWords;
    for (bool go_on = true; go_on;) {
      if (rest_count != 0 && deferred == 0) [[unlikely]] {
        go_on = use_rest();
        continue;
      }
      if (at >= end) return false;
      // Not in the middle of a packet.
      if (out >= full && target_first != 0) return true;
      std::uint8_t head = *at;
      if ((head & 1) != 0) {
        unsigned kind = head & 0x1f;
        go_on = kind == 0x0d ? take_tip(head) : kind == 0x01 ? take_pause(head) : take_time(head);
      } else if (head > 2) [[likely]] {
        if (deferred != 0) return false;
        ++at;
        go_on = use(head, kPathFirst);
        if (left == head) [[unlikely]]
          give_back(1);
        else
          used.exact = cyc_end == at - 1;
      } else {
        go_on = take_extended(head);
      }
    }
    return false;
  }
};

bool FastFlow::run_block(Registers& r) {
  Loop loop(*this, r);
  bool more = loop.run();
  loop.store(r);
  return more;
}

}  // namespace tailtrace::pt
