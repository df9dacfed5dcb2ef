#include "tests/support/legal_trace.h"

#include <utility>

#include "decoder/pt/packets/packet_writer.h"

namespace tailtrace::pt {
namespace {

using Kind = InstructionClass;

class LegalWalk {
 public:
  LegalWalk(Choices& choices, const LegalProgram& program, const Errata& errata)
      : choices_(choices),
        program_(program),
        errata_(errata),
        timed_(!one_in(3)),
        event_distance_(pick_distance()) {
    out_.tnt_limit = one_in(3) ? PacketWriter::kLongTnt : PacketWriter::kShortTnt;
    out_.defer_tips = one_in(4);
    out_.update_48 = one_in(3);
    out_.compress_against_zero = one_in(3);
    mode_ = program.pick_mode(choices);
    ip_ = pick();
    enabled_ = !one_in(6);
  }

  Bytes run() {
    psb();
    if (!enabled_) pause();
    while (enabled_ && !choices_.done() && out_.size_bytes() < kMaxTrace_bytes) {
      if (one_in(event_distance_)) asynchronous();
      if (!enabled_) break;
      if (!out_.tnt_pending() && one_in(8)) time();
      step();
    }
    if (enabled_ && one_in(2)) {
      out_.fup({ip_});
      out_.tip_pgd_suppressed();
    }
    out_.flush();
    if (one_in(3)) time();
    return out_.take();
  }

 private:
  static constexpr std::size_t kMaxTrace_bytes = 8192;
  static constexpr std::size_t kMaxCalls = 64;

  bool one_in(unsigned n) { return choices_.one_in(n); }
  unsigned below(unsigned n) { return choices_.below(n); }
  unsigned pick_distance() { return one_in(3) ? 4 : one_in(2) ? 10 : 40; }
  std::uint64_t pick() { return program_.pick(choices_, mode_); }
  std::uint64_t page() { return std::uint64_t{below(16)} << 12; }

  // --- Packets that say nothing of the flow ---

  void tsc() { out_.tsc(0x1000000 + (ticks_ += below(1000))); }

  // SKD007: f3 behind a CYC that ends in 02 is what an OVF leaves that cuts a CYC.
  void cyc(std::uint64_t cycles) {
    constexpr std::uint64_t kCyclesOfF3 = 0x1e;
    bool looks_cut = cycles == kCyclesOfF3 && out_.bytes().back() == 0x02;
    if (!errata_.skd007 || !looks_cut) out_.cyc(cycles);
  }

  void time() {
    while (timed_ && one_in(3)) {
      switch (below(7)) {
        case 0:
          tsc();
          break;
        case 1:
          out_.mtc(static_cast<std::uint8_t>(below(256)));
          break;
        case 2:
          cyc(below(5000));
          break;
        case 3:
          cyc(below(20));
          break;
        case 4:
          tsc();
          out_.tma(static_cast<std::uint16_t>(below(0xffff)),
                   static_cast<std::uint16_t>(below(0x1ff)));
          break;
        case 5:
          if (one_in(4)) out_.mnt(below(100));
          break;
        default:
          out_.pad();
      }
    }
  }

  // Between the packets of one event.
  void time_inside() {
    while (timed_ && one_in(4)) {
      switch (below(5)) {
        case 0:
          tsc();
          break;
        case 1:
          out_.mtc(static_cast<std::uint8_t>(below(256)));
          break;
        case 2:
          out_.pad();
          break;
        default:
          cyc(below(500));
      }
    }
  }

  void standalone() {
    out_.flush();
    switch (below(5)) {
      case 0:
        out_.cbr(static_cast<std::uint8_t>(1 + below(63)));
        break;
      case 1:
        out_.mnt(below(1000));
        break;
      case 2:
        out_.exstop(false);
        break;
      case 3:
        power_entry();
        break;
      default:
        power_exit();
    }
  }

  void power_entry() {
    out_.pwre(static_cast<std::uint8_t>(below(6)), static_cast<std::uint8_t>(below(4)), false);
  }
  void power_exit() {
    out_.pwrx(static_cast<std::uint8_t>(below(6)), static_cast<std::uint8_t>(below(6)),
              static_cast<std::uint8_t>(1u << below(4)));
  }
  void paging() { out_.pip(page(), one_in(2)); }

  void psb() {
    out_.psb();
    calls_.clear();
    if (timed_ && one_in(2)) {
      tsc();
      if (one_in(3)) out_.tma(1, 2);
    }
    out_.mode_exec(mode_);
    if (in_transaction_ || one_in(2)) out_.mode_tsx(in_transaction_, false);
    if (one_in(3)) out_.pip(0x5000, false);
    if (one_in(3)) out_.vmcs(0x9000);
    if (one_in(2)) out_.cbr(32);
    if (one_in(6)) out_.mnt(5);
    if (one_in(6)) out_.pad();
    if (timed_ && one_in(4)) out_.mtc(static_cast<std::uint8_t>(below(256)));
    if (timed_ && one_in(4)) cyc(below(500));
    lost_ = false;  // PSB forgets the last address, too
    if (enabled_) out_.fup({ip_});
    out_.psbend();
  }

  void change_mode(CodeMode mode) {
    if (mode != mode_ || one_in(4)) {
      out_.mode_exec(mode);
      time_inside();
    }
    if (mode != mode_) calls_.clear();
    mode_ = mode;
  }

  // What changes with a far transfer beside the mode.
  void change_spaces() {
    if (one_in(3)) {
      paging();
      time_inside();
    }
    if (one_in(5)) {
      out_.vmcs(page());
      time_inside();
    }
  }

  void tip(std::uint64_t to) {
    out_.tip_now({to});
    ip_ = to;
  }

  // --- Tracing goes off and on ---

  void go_off() {
    if (one_in(3))
      out_.tip_pgd({pick()});
    else
      out_.tip_pgd_suppressed();
    pause();
  }

  void leave_filter(std::uint64_t to) {
    out_.tip_pgd({to});
    ip_ = to;
    pause();
  }

  void pause() {
    enabled_ = in_transaction_ = false;
    out_.flush();
    if (one_in(6)) out_.trace_stop();
    for (unsigned count = below(4); count != 0; --count) while_off();
    if (one_in(8)) return;  // never again
    CodeMode mode = one_in(3) ? program_.pick_mode(choices_) : mode_;
    std::uint64_t to =
        mode == mode_ && one_in(2) && program_.at(ip_) ? ip_ : program_.pick(choices_, mode);
    change_mode(mode);
    calls_.clear();
    ip_packet(IpPacket::kPge, to);
    ip_ = to;
    enabled_ = true;
  }

  void while_off() {
    switch (below(8)) {
      case 0:
        return paging();
      case 1:
        return out_.vmcs(page());
      case 2:
      case 3:
        return standalone();
      case 4:
        return psb();
      case 5:
        if (one_in(2)) lose_packets();
        return;
      case 6:
        if (one_in(3)) out_.mode_tsx(false, false);
        return;
      default:
        return time();
    }
  }

  // --- What happens between two instructions ---

  void asynchronous() {
    out_.flush();
    switch (below(13)) {
      case 0:
      case 1:
      case 2:
        return interrupt();
      case 3:
        return interrupt_untraced();
      case 4:
        return standalone();
      case 5:
      case 6:
        return one_in(8) ? lose_psb() : psb();
      case 7:
        out_.exstop(true);
        return finish_event();
      case 8:
        return sleep();
      case 9:
        return lose();
      case 10:
        in_transaction_ = !in_transaction_;
        out_.mode_tsx(in_transaction_, false);
        return finish_event();
      case 11:
        return interrupt_untraced();
      default:
        return time();
    }
  }

  // Its FUP may be lost.
  void finish_event() {
    time_inside();
    if (one_in(12)) return lose();
    out_.fup({ip_});
  }

  bool abort() {
    if (!in_transaction_) return false;
    out_.mode_tsx(false, true);
    time_inside();
    in_transaction_ = false;
    return true;
  }

  void interrupt() {
    bool aborts = abort();
    out_.fup({ip_});
    time_inside();
    if (one_in(16)) return lose();
    if (!aborts) {
      change_spaces();
      change_mode(program_.pick_mode(choices_));
    }
    tip(pick());
  }

  void interrupt_untraced() {
    abort();
    out_.fup({ip_});
    time_inside();
    change_spaces();
    go_off();
  }

  void sleep() {
    out_.mwait(below(256), below(4));
    time_inside();
    if (one_in(2)) {
      power_entry();
      time_inside();
    }
    out_.exstop(true);
    time_inside();
    out_.fup({ip_});
    time();
    if (one_in(2)) power_exit();
  }

  void lose_packets() {
    out_.ovf();
    lost_ = true;
  }

  // Behind a loss no address is known that one could be compressed against.
  void ip_packet(IpPacket packet, std::uint64_t ip) {
    if (std::exchange(lost_, false))
      out_.ip_packet(packet, IpBytes::kSignExtended48, {ip});
    else
      out_.ip_packet(packet, {ip});
  }

  void lose() {
    lose_packets();
    time();
    in_transaction_ = false;
    calls_.clear();
    if (one_in(3)) return pause();
    ip_ = pick();
    ip_packet(IpPacket::kFup, ip_);
  }

  // An OVF in PSB+ ends it.
  void lose_psb() {
    out_.psb();
    if (one_in(2)) out_.mode_exec(mode_);
    if (one_in(2)) out_.cbr(32);
    lose();
  }

  // --- An instruction ---

  void step() {
    const LegalInstruction* insn = program_.at(ip_);
    if (insn == nullptr) {
      enabled_ = false;  // behind the last one
      return;
    }
    std::uint64_t here = ip_, next = ip_ + insn->size_bytes;
    ip_ = next;
    switch (insn->kind) {
      case Kind::kOther:
        if (!insn->loads_vmcs || !one_in(2)) return;
        out_.flush();
        return out_.vmcs(page());
      case Kind::kRepString:
        return;
      case Kind::kPtwrite:
        return ptwrite(here);
      case Kind::kMovCr3:
        return load_cr3();
      case Kind::kConditional:
        return conditional(one_in(2) ? insn->target : next, insn->target);
      case Kind::kCall:
        if (insn->target != next) call(next);
        [[fallthrough]];
      case Kind::kJump:
        if (one_in(25)) return leave_filter(insn->target);
        ip_ = insn->target;
        return;
      case Kind::kReturn:
        return near_return();
      case Kind::kIndirectCall:
        return indirect(next);
      case Kind::kIndirectJump:
        return indirect(0);
      default:
        return far(next);
    }
  }

  void ptwrite(std::uint64_t here) {
    if (one_in(2)) return;
    bool has_address = one_in(2);
    out_.flush();
    out_.ptw(below(65536) * 0x100000001ull, one_in(2), has_address);
    time_inside();
    if (has_address) one_in(12) ? lose() : out_.fup({here});
  }

  void load_cr3() {
    if (one_in(2)) return;
    out_.flush();
    out_.pip(page(), false);
    if (!one_in(4)) return;
    time_inside();
    out_.tip_pgd_suppressed();
    pause();
  }

  void conditional(std::uint64_t to, std::uint64_t target) {
    if (one_in(25)) return leave_filter(to);
    out_.tnt(to == target);
    if (one_in(6)) time();
    ip_ = to;
  }

  void call(std::uint64_t next) {
    calls_.push_back(next);
    if (calls_.size() > kMaxCalls) calls_.erase(calls_.begin());
  }

  // A return that matches its call is compressed.
  void near_return() {
    if (out_.defer_tips) out_.flush();
    if (calls_.empty()) return indirect(0);
    ip_ = calls_.back();
    calls_.pop_back();
    out_.tnt(true);
  }

  void indirect(std::uint64_t returns_to) {
    std::uint64_t to = pick();
    if (returns_to != 0) call(returns_to);
    if (one_in(25)) return leave_filter(to);
    out_.tip({to});
    if (!out_.defer_tips && one_in(6)) time();
    ip_ = to;
  }

  void far(std::uint64_t next) {
    out_.flush();
    if (one_in(3)) {
      if (one_in(4)) change_spaces();
      ip_ = next;
      return go_off();
    }
    change_spaces();
    change_mode(program_.pick_mode(choices_));
    tip(pick());
  }

  Choices& choices_;
  const LegalProgram& program_;
  const Errata& errata_;
  PacketWriter out_;
  const bool timed_;
  const unsigned event_distance_;
  std::uint64_t ip_ = 0;
  CodeMode mode_ = CodeMode::k64;
  bool enabled_ = true, in_transaction_ = false;
  bool lost_ = false;  // packets, since the last one with an address
  std::vector<std::uint64_t> calls_;
  std::uint64_t ticks_ = 0;
};

}  // namespace

Bytes make_legal_trace(Choices& choices, const LegalProgram& program, const Errata& errata) {
  return LegalWalk(choices, program, errata).run();
}

}  // namespace tailtrace::pt
