#include "plugin/recorder/qemu_recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/symbols/deleted_files.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "plugin/engines/qemu/session_format.h"
#include "plugin/engines/tasks.h"
#include "plugin/recorder/black_box.h"
#include "plugin/recorder/recorder_signals.h"
#include "plugin/recorder/triggers.h"
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {
namespace {

// Of the stub's answer to `g`: 17 registers of 8 bytes, then 7 of 4 bytes, all little-endian; and
// the number of its register fs_base (gdb-xml/i386-64bit.xml in qemu).
constexpr std::size_t kWideRegisters = 17, kNarrowRegisters = 7;
constexpr std::size_t kRegisters_bytes = kWideRegisters * 8 + kNarrowRegisters * 4;

user_regs_struct registers_in(ByteSpan g) {
  user_regs_struct r{};
  unsigned long long* wide[] = {&r.rax, &r.rbx, &r.rcx, &r.rdx, &r.rsi, &r.rdi,
                                &r.rbp, &r.rsp, &r.r8,  &r.r9,  &r.r10, &r.r11,
                                &r.r12, &r.r13, &r.r14, &r.r15, &r.rip};
  unsigned long long* narrow[] = {&r.eflags, &r.cs, &r.ss, &r.ds, &r.es, &r.fs, &r.gs};
  std::size_t at = 0;
  for (auto* value : wide) *value = load<std::uint64_t>(g, at), at += 8;
  for (auto* value : narrow) *value = load<std::uint32_t>(g, at), at += 4;
  r.orig_rax = ~0ull;
  return r;
}

class QemuRecorder final : public Subject {
 public:
  explicit QemuRecorder(const FlightPlan& plan) : plan_(plan) {}

  Result<FlightEnd> follow(const QemuOptions& options);

  std::vector<ThreadId> threads() override;
  Result<ThreadSnapshot> snapshot(ThreadId thread) override;
  std::string name(ThreadId thread) override { return name_of("", thread); }
  std::optional<user_regs_struct> registers(ThreadId thread) override;
  std::string code_maps() override;
  std::string all_maps() override { return program_->maps("maps").value_or(""); }
  Bytes auxiliary_vector() override { return program_->auxiliary_vector(); }
  std::size_t read_memory(Address address, std::span<std::uint8_t> out) override {
    return program_->read_memory(address, out);
  }

 private:
  Occasion occasion(std::string cause, int signal, ThreadId thread) const {
    return {std::move(cause), signal, thread, command_, began_};
  }
  Result<QemuEngine*> engine();
  Result<void> take(const QemuInferior::Event& event);
  Result<void> take_stop(const rsp::StopReply& stop);
  void take_user(int signal);
  void take_snapshot();
  Result<BundleWriter> put(const Occasion& occasion, const std::string& path);
  Result<void> take_end(const rsp::StopReply& stop);
  void resume(int signal);

  const FlightPlan& plan_;
  // The program is not ours to be stopped: no signal ends a wait for its stub.
  EndSignals none_{{}};
  std::unique_ptr<QemuInferior> program_;
  std::string folder_;                  // of the recording of what it executes
  std::unique_ptr<QemuEngine> engine_;  // over engine_folder_
  std::string engine_folder_;
  BundleClock began_;
  std::string command_;
  bool stands_ = true;
  bool is_done_ = false;
  ThreadId crashed_;
  // Put together at a signal of which it is not known yet whether the program dies of it.
  std::optional<BundleWriter> candidate_;
  int candidate_signal_ = 0;
  std::optional<Error> trouble_;  // why there is no bundle of the last such signal
  FlightEnd end_;
};

// It is opened once for a bundle: the program may have thousands of threads.
Result<QemuEngine*> QemuRecorder::engine() {
  if (engine_ && engine_folder_ == folder_) return engine_.get();
  QemuEngine::Options since_start;
  since_start.since_start = true;
  auto opened = QemuEngine::open(folder_, since_start);
  if (!opened) return fail(std::move(opened.error()));
  engine_ = std::move(*opened);
  engine_folder_ = folder_;
  return engine_.get();
}

// Those that have ended are of no interest.
std::vector<ThreadId> QemuRecorder::threads() {
  std::vector<ThreadId> threads;
  auto engine = this->engine();
  if (!engine) return threads;
  auto found = (*engine)->threads();
  if (!found) return threads;
  for (const QemuEngine::Thread& thread : *found)
    if (thread.state != RingState::kThreadExited) threads.push_back(thread.thread);
  return threads;
}

Result<ThreadSnapshot> QemuRecorder::snapshot(ThreadId thread) {
  auto r = stands_ ? registers(thread) : std::nullopt;
  auto engine = this->engine();
  if (!engine) return fail(std::move(engine.error()));
  if (!r) return (*engine)->last_snapshot(thread, ~0ull);
  if (auto ok = (*engine)->start(thread); !ok) return fail(std::move(ok.error()));
  return (*engine)->snapshot(thread, {{r->rip}, thread == crashed_}, ~0ull);
}

std::optional<user_regs_struct> QemuRecorder::registers(ThreadId thread) {
  if (!stands_) return std::nullopt;
  auto digits = program_->ask_of(thread, "g");
  auto bytes = digits ? from_hex(*digits) : std::nullopt;
  if (!bytes || bytes->size() < kRegisters_bytes) return std::nullopt;
  return registers_in(*bytes);
}

// While it runs, what it had when code was mapped last, and qemu's own beside it.
std::string QemuRecorder::code_maps() {
  if (stands_) return all_maps();
  auto text = read_file(folder_ + "/" + kMapsName, kMaxMaps_bytes);
  if (!text) return {};
  std::string maps(as_text(*text).substr(0, as_text(*text).find('\0')));
  const std::vector<ThreadId> all = threads();
  return all.empty() ? maps : mark_deleted(all.front().pid, std::move(maps));
}

void QemuRecorder::resume(int signal) {
  using Kind = rsp::ResumeAction::Kind;
  rsp::ResumeActions actions;
  const ThreadId thread = program_->stopped_thread();
  if (signal != 0) {
    rsp::ResumeAction deliver;
    deliver.signal = protocol_signal(signal);
    deliver.selector = {thread.pid, thread.tid};
    actions.push_back(deliver);
  }
  rsp::ResumeAction rest;
  rest.kind = Kind::kContinue;
  actions.push_back(rest);
  stands_ = false;
  program_->resume(actions);
}

Result<BundleWriter> QemuRecorder::put(const Occasion& occasion, const std::string& path) {
  std::vector<Error> remarks;
  auto writer = put_together(*this, occasion, plan_, path, remarks);
  engine_.reset();  // it would keep rings that the program deletes
  for (const Error& remark : remarks) plan_.say(remark.to_string());
  return writer;
}

void QemuRecorder::take_snapshot() {
  auto writer = put(occasion("snapshot", 0, {}), free_snapshot_path(plan_.bundle));
  Result<void> finished = writer ? writer->finish() : Result<void>(fail(writer.error()));
  plan_.say(finished ? "snapshot: tailtrace history " + writer->path()
                     : finished.error().to_string());
}

Result<void> QemuRecorder::take_stop(const rsp::StopReply& stop) {
  stands_ = true;
  candidate_.reset();
  if ((stop.reasons & rsp::StopReply::kExec) != 0) {
    command_ = fmt::format("{}", fmt::join(program_->executed_program(), " "));
    resume(0);
    return {};
  }
  const int signal = system_signal(stop.signal);
  const bool is_wanted =
      std::ranges::find(plan_.triggers.signals, signal) != plan_.triggers.signals.end();
  if (!is_done_ && (is_wanted || is_crash_signal(signal))) {
    crashed_ = is_fault(signal) ? program_->stopped_thread() : ThreadId{};
    auto writer =
        put(occasion(signal_text(signal), signal, program_->stopped_thread()), plan_.bundle);
    is_done_ = is_wanted;
    trouble_.reset();
    if (!writer) {
      trouble_ = std::move(writer.error());
    } else if (is_wanted) {
      if (auto ok = writer->finish(); !ok) return ok;
      end_.bundle = writer->path();
    } else {
      candidate_.emplace(std::move(*writer));
      candidate_signal_ = signal;
    }
  }
  resume(signal);
  return {};
}

// Killed without having been told, it left its rings behind.
Result<void> QemuRecorder::take_end(const rsp::StopReply& stop) {
  const bool is_killed = stop.kind == rsp::StopReply::Kind::kKilled;
  const int signal = is_killed ? system_signal(stop.signal) : 0;
  end_.status = is_killed ? signal : stop.signal << 8;
  stands_ = false;
  if (is_done_) return trouble_ ? Result<void>(fail(std::move(*trouble_))) : Result<void>();
  if (is_killed && signal == SIGKILL) {
    auto writer = put(occasion(signal_text(signal), signal, {}), plan_.bundle);
    if (!writer) return fail(std::move(writer.error()));
    candidate_.emplace(std::move(*writer));
    candidate_signal_ = signal;
  }
  if (!is_killed || (candidate_ && candidate_signal_ != signal)) candidate_.reset();
  if (candidate_) {
    if (auto ok = candidate_->finish(); !ok) return ok;
    end_.bundle = candidate_->path();
  } else if (is_killed && trouble_) {
    return fail(std::move(*trouble_));
  }
  return {};
}

Result<void> QemuRecorder::take(const QemuInferior::Event& event) {
  auto stop = rsp::parse_stop_reply(event.reply);
  if (!stop) return fail(ErrorCode::kBadInput, "cannot understand qemu's stub", event.reply);
  if (!event.has_ended) return take_stop(*stop);
  return take_end(*stop);
}

void QemuRecorder::take_user(int signal) {
  if (signal == SIGUSR2)
    take_snapshot();
  else if (signal != SIGCHLD)
    ::kill(program_->pid(), signal);
}

Result<FlightEnd> QemuRecorder::follow(const QemuOptions& options) {
  if (plan_.triggers.needs_debug_registers())
    return fail(ErrorCode::kUsage, "cannot wait for functions or places under qemu",
                "qemu has no debug registers", "--engine=step");
  auto launched = QemuInferior::launch(options, none_);
  if (!launched) return fail(std::move(launched.error()));
  program_ = std::move(*launched);
  RecorderSignals signals(plan_.ends_by_user);
  began_ = clock_now();
  command_ = fmt::format("{}", fmt::join(options.program, " "));
  folder_ = program_->recording();
  resume(0);
  while (!end_.status) {
    pollfd polled[] = {{signals.fd(), POLLIN, 0}, {program_->stub_fd(), POLLIN, 0}};
    if (::poll(polled, 2, -1) < 0 && errno != EINTR) return fail(system_error("cannot wait"));
    while (auto signal = signals.take()) take_user(*signal);
    auto event = program_->take_event();
    if (!event) return fail(std::move(event.error()));
    folder_ = program_->recording();
    if (*event)
      if (auto ok = take(**event); !ok) return fail(std::move(ok.error()));
  }
  return end_;
}

}  // namespace

Result<FlightEnd> record_in_qemu(QemuOptions qemu, const FlightPlan& plan) {
  qemu.with_stub = true;
  return QemuRecorder(plan).follow(qemu);
}

}  // namespace tailtrace
