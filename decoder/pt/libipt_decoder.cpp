// The reference decoder: libipt's instruction flow decoder behind the interface of decoder.h.
//
// It reports what libipt reports in the order of libipt; what libipt does not know (event trace,
// PEBS blocks, triggers) is an error to it.
#include <algorithm>
#include <array>
#include <memory>

#include "decoder/code/code_reader.h"
#include "decoder/pt/decoder.h"
#include "decoder/pt/libipt_events.h"

namespace tailtrace::pt {
namespace {

struct CodeAtEpoch {
  const CodeImage& image;
  Epoch epoch;
};

int read_code(std::uint8_t* buffer, std::size_t size, const pt_asid*, std::uint64_t ip,
              void* context) {
  const auto& code = *static_cast<const CodeAtEpoch*>(context);
  std::size_t count = code.image.read({ip}, {buffer, size}, code.epoch);
  return count != 0 ? static_cast<int>(count) : -pte_nomap;
}

// Tells code that goes round without a packet to steer it. Between two steering packets the flow
// follows from the code alone, so a jump's target that comes twice comes for ever (Brent's
// algorithm: the mark moves on at distances that double, so it comes to lie in any loop).
class LoopWatch {
 public:
  static constexpr std::uint32_t kMaxStraight_insns = 1u << 20;

  // Something other than the code decided where the flow goes on.
  void steered() { straight_ = 0; }

  // True when the instruction closes an endless loop.
  bool passes(const Instruction& insn) {
    if (straight_++ == 0) {
      mark_ = insn.address;
      moves_in_ = 1;
    }
    if (straight_ > kMaxStraight_insns) return true;
    if (insn.kind == InstructionClass::kOther || insn.kind == InstructionClass::kRepString)
      return false;
    if (insn.kind != InstructionClass::kJump && insn.kind != InstructionClass::kCall) {
      steered();
      return false;
    }
    if (insn.target == mark_) return true;
    if (--moves_in_ == 0) {
      mark_ = insn.target;
      moves_in_ = straight_ + 1;
    }
    return false;
  }

 private:
  std::uint32_t straight_ = 0;
  std::uint32_t moves_in_ = 0;
  Address mark_;
};

using DecoderPtr = std::unique_ptr<pt_insn_decoder, decltype(&pt_insn_free_decoder)>;

// One decode() call.
class LibiptRun {
 public:
  LibiptRun(ByteSpan trace, const CodeImage& image, const DecoderConfig& config, Sink& sink)
      : config_(config),
        sink_(sink),
        trace_(trace),
        code_{image, config.first_epoch},
        readers_{CodeReader(image, CodeMode::k16), CodeReader(image, CodeMode::k32),
                 CodeReader(image, CodeMode::k64)},
        libipt_config_(libipt_config(trace, config)),
        decoder_(pt_insn_alloc_decoder(&libipt_config_), &pt_insn_free_decoder) {
    set_epoch(config.first_epoch);
    if (decoder_) pt_image_set_callback(pt_insn_get_image(decoder_.get()), read_code, &code_);
  }

  bool has_psb() const { return find_psb(0).has_value(); }
  void decode();

 private:
  enum class End : std::uint8_t { kTrace, kError };
  int synchronize();
  std::optional<std::uint64_t> find_psb(std::uint64_t from) const;
  End decode_from_sync(int status);
  int drain_events(int status);
  bool take(const pt_insn& insn, std::uint64_t time);
  std::uint64_t time() const;
  void end_trace(int status);
  void send_run();
  void apply_code_changes();
  void set_epoch(Epoch epoch);
  End open_gap(DecodeError error);
  void close_gap(std::uint64_t end_bytes);
  std::uint64_t offset() const;

  static constexpr std::size_t kMaxRun_insns = 1024;

  const DecoderConfig& config_;
  Sink& sink_;
  ByteSpan trace_;
  CodeAtEpoch code_;
  std::array<CodeReader, 3> readers_;
  pt_config libipt_config_;
  DecoderPtr decoder_;
  LoopWatch loop_;
  bool synchronized_ = false;
  std::uint64_t sync_offset_ = 0;
  std::size_t next_change_ = 0;
  std::vector<Instruction> run_;
  RunState state_;
  Address ip_;             // as an error reports it
  bool executed_ = false;  // the instruction at ip_
  std::optional<Gap> gap_;
};

// As ptxed goes through a trace: events as soon as they are pending, then the next instruction.
void LibiptRun::decode() {
  if (!decoder_) {
    sink_.gap({DecodeError::kTooMuch, {}, 0, trace_.size()});
    return;
  }
  for (;;) {
    int status = synchronize();
    if (status == -pte_eos) break;
    if (gap_) close_gap(sync_offset_);
    set_epoch(config_.first_epoch);
    next_change_ = 0;
    loop_.steered();
    ip_ = {};
    if (status < 0)
      open_gap(error_from_libipt(status));
    else if (decode_from_sync(status) == End::kTrace)
      break;
  }
  if (gap_) close_gap(trace_.size());
}

// Goes to the next PSB, never to one twice.
int LibiptRun::synchronize() {
  int status = pt_insn_sync_forward(decoder_.get());
  if (status == -pte_eos) return status;
  std::uint64_t before = sync_offset_;
  pt_insn_get_sync_offset(decoder_.get(), &sync_offset_);
  if (!synchronized_ || sync_offset_ > before) {
    synchronized_ = true;
    return status;
  }
  auto psb = find_psb(before + 1);
  if (!psb) return -pte_eos;
  sync_offset_ = *psb;
  return pt_insn_sync_set(decoder_.get(), sync_offset_);
}

std::optional<std::uint64_t> LibiptRun::find_psb(std::uint64_t from) const {
  constexpr std::uint8_t kPsb[] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
                                   2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
  auto found = std::ranges::search(trace_.subspan(from), kPsb);
  if (found.empty()) return std::nullopt;
  return static_cast<std::uint64_t>(found.begin() - trace_.begin());
}

LibiptRun::End LibiptRun::decode_from_sync(int status) {
  ip_ = {};
  executed_ = false;
  for (;;) {
    status = drain_events(status);
    if (status < 0) break;
    if ((status & pts_eos) != 0) {
      end_trace(status);
      return End::kTrace;
    }
    apply_code_changes();
    // Afterwards libipt may have read packets of what comes later.
    std::uint64_t time = this->time();
    pt_insn insn{};
    status = pt_insn_next(decoder_.get(), &insn, sizeof insn);
    ip_ = {insn.ip};
    executed_ = insn.iclass != ptic_error;
    if (insn.iclass != ptic_error) {
      bool endless = take(insn, time);
      bool undisturbed = status >= 0 && (status & (pts_event_pending | pts_eos)) == 0;
      if (endless && undisturbed) {
        ip_ = run_.back().target;
        executed_ = false;
        return open_gap(DecodeError::kEndlessLoop);
      }
    }
    if (status < 0) break;
  }
  if (status == -pte_eos) {
    send_run();
    return End::kTrace;
  }
  return open_gap(error_from_libipt(status));
}

int LibiptRun::drain_events(int status) {
  while (status >= 0 && (status & pts_event_pending) != 0) {
    pt_event event;
    status = pt_insn_event(decoder_.get(), &event, sizeof event);
    if (status < 0) break;
    loop_.steered();
    send_run();
    if (auto converted = event_from_libipt(event)) sink_.event(*converted);
  }
  return status;
}

// True when the instruction closes an endless loop.
bool LibiptRun::take(const pt_insn& insn, std::uint64_t time) {
  RunState state{mode_from_libipt(insn.mode), insn.speculative != 0, false, time};
  bool differs = state.mode != state_.mode || state.in_transaction != state_.in_transaction ||
                 state.time != state_.time;
  if (differs || run_.size() == kMaxRun_insns) send_run();
  state_ = state;
  CodeReader& reader = readers_[static_cast<std::size_t>(state.mode)];
  auto known = reader.at({insn.ip});
  // libipt may know instructions that we do not.
  run_.push_back(known ? *known : Instruction{{insn.ip}, {}, insn.size, InstructionClass::kOther});
  return loop_.passes(run_.back());
}

void LibiptRun::end_trace(int status) {
  send_run();
  if ((status & pts_ip_suppressed) != 0) return;
  // The address is only told together with the instruction there.
  pt_insn insn{};
  pt_insn_next(decoder_.get(), &insn, sizeof insn);
  Event event;
  event.kind = EventKind::kEndOfTrace;
  event.ip = {insn.ip};
  sink_.event(event);
}

void LibiptRun::send_run() {
  if (!run_.empty()) sink_.instructions(run_, state_);
  run_.clear();
}

// libipt stands behind the last packet that it read.
void LibiptRun::apply_code_changes() {
  const auto& changes = config_.code_changes;
  while (next_change_ < changes.size() && changes[next_change_].offset_bytes < offset()) {
    const CodeChange& change = changes[next_change_];
    if (change.time != 0 && time() < change.time) return;
    set_epoch(change.epoch);
    ++next_change_;
  }
}

void LibiptRun::set_epoch(Epoch epoch) {
  code_.epoch = epoch;
  for (CodeReader& reader : readers_) reader.set_epoch(epoch);
}

LibiptRun::End LibiptRun::open_gap(DecodeError error) {
  send_run();
  gap_ = Gap{error, ip_, offset(), 0, executed_};
  return End::kError;
}

void LibiptRun::close_gap(std::uint64_t end_bytes) {
  if (end_bytes > gap_->offset_bytes) gap_->size_bytes = end_bytes - gap_->offset_bytes;
  sink_.gap(*gap_);
  gap_.reset();
}

std::uint64_t LibiptRun::offset() const {
  std::uint64_t offset = 0;
  pt_insn_get_offset(decoder_.get(), &offset);
  return offset;
}

// 0 before the first TSC.
std::uint64_t LibiptRun::time() const {
  std::uint64_t time = 0;
  std::uint32_t lost_mtc = 0;
  std::uint32_t lost_cyc = 0;
  return pt_insn_time(decoder_.get(), &time, &lost_mtc, &lost_cyc) < 0 ? 0 : time;
}

class LibiptDecoder final : public Decoder {
 public:
  LibiptDecoder(const CodeImage& code, const DecoderConfig& config)
      : code_(code), config_(config) {}

  std::string_view name() const override { return "libipt"; }

  void decode(ByteSpan trace, Sink& sink) override {
    LibiptRun run(trace, code_, config_, sink);
    if (run.has_psb()) return run.decode();
    bool padding = std::ranges::all_of(trace, [](std::uint8_t byte) { return byte == 0; });
    if (!padding) sink.gap({DecodeError::kNoSync, {}, 0, trace.size()});
  }

 private:
  const CodeImage& code_;
  DecoderConfig config_;
};

}  // namespace

std::unique_ptr<Decoder> make_libipt_decoder(const CodeImage& code, const DecoderConfig& config) {
  return std::make_unique<LibiptDecoder>(code, config);
}

}  // namespace tailtrace::pt
