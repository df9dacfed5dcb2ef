#include "plugin/server/proxy.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "decoder/base/bytes.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/server/rsp/resume.h"

namespace tailtrace {
namespace {

// A debugger waits for an answer before it asks again; one that does not gets no endless queue.
constexpr std::size_t kMaxWaitingPackets = 1024;
constexpr int kNotificationsPerTurn = 16;
constexpr int kPause_ms = 100;
constexpr std::string_view kPassSignals = "QPassSignals:";
constexpr std::string_view kInterrupt = "\x03";  // among the packets that wait

// The number behind `prefix`, in hexadecimal: `vKill;1a2b`, `D;1a2b`.
std::optional<std::int32_t> process_of(std::string_view packet, std::string_view prefix) {
  if (!packet.starts_with(prefix)) return std::nullopt;
  auto pid = parse_hex(packet.substr(prefix.size()));
  if (!pid) return std::nullopt;
  return static_cast<std::int32_t>(*pid);
}

// Address and length of `Maddr,length:...` or `Xaddr,length:...`.
std::optional<std::pair<Address, std::uint64_t>> written_range(std::string_view packet) {
  std::size_t comma = packet.find(','), colon = packet.find(':');
  if (comma == std::string_view::npos || colon == std::string_view::npos || colon < comma)
    return std::nullopt;
  auto address = parse_hex(packet.substr(1, comma - 1));
  auto size = parse_hex(packet.substr(comma + 1, colon - comma - 1));
  if (!address || !size) return std::nullopt;
  return std::pair(Address{*address}, *size);
}

}  // namespace

Proxy::Proxy(const ServeOptions& options, Listener& listener, Below& below, Recorder& recorder,
             EndSignals& signals)
    : options_(options),
      listener_(listener),
      below_(below),
      recorder_(recorder),
      trace_(options, below, recorder),
      lldb_trace_(options, below, recorder),
      lldb_replay_(below, recorder, !options.lldb_server.empty()),
      lldb_(below, options.engine != EngineChoice::kQemu, options.detach_kills,
            !options.lldb_server.empty()),
      judge_(below, recorder),
      lldb_server_(below, recorder, judge_, lldb_replay_, !options.lldb_server.empty()),
      stepper_(below, recorder, judge_),
      non_stop_(below, recorder, judge_),
      monitor_(options, lldb_, below, recorder),
      terminal_(options.terminal),
      signals_(signals) {
  stepper_.set_knows_all_threads(lldb_server_.in_use());
}

Result<int> Proxy::run() {
  if (listener_.is_stdio())
    if (auto accepted = accept(); !accepted) return fail(std::move(accepted.error()));
  while (!exit_status_)
    if (auto turned = turn(); !turned) return fail(std::move(turned.error()));
  return *exit_status_;
}

Result<void> Proxy::turn() {
  if (auto waited = wait(); !waited) return waited;
  if (polled_[0].revents != 0) {
    stop_serving(128 + signals_.take());
    return {};
  }
  bool connects = !debugger_ && polled_[1].revents != 0;
  bool gone = false;
  if (debugger_ && polled_[1].revents != 0 && !debugger_->receive()) gone = true;
  if (debugger_ && debugger_->wants_to_write() && !debugger_->flush()) gone = true;
  // The server below comes first: what it said was before what the debugger says now.
  Result<void> served = below_.link().receive();
  if (auto worked = work(); !worked) served = worked;
  if (!served) {
    // Whoever waited for it was told to give up.
    if (int signal = signals_.take(); signal != 0)
      stop_serving(128 + signal);
    else
      server_is_gone(served.error());
    return {};
  }
  recorder_.drop_ended_if_any_was_made();
  if (gone || debugger_lost_) debugger_is_gone();
  return connects ? accept() : Result<void>();
}

// Deals with all that has been received. Whoever asks the server below may receive more with the
// answer than the answer.
Result<void> Proxy::work() {
  bool more = true;
  while (more) {
    auto taken = take_server_frames();
    if (!taken) return fail(std::move(taken.error()));
    more = *taken;
    if (debugger_) {
      auto heard = take_debugger_frames();
      if (!heard) return fail(std::move(heard.error()));
      more |= *heard;
    }
    if (auto done = take_notifications(); !done) return done;
  }
  return {};
}

// polled_[0] is the signals, polled_[1] the debugger or who wants to be one.
Result<void> Proxy::wait() {
  polled_.clear();
  polled_.push_back({signals_.fd(), POLLIN, 0});
  const int listener = cannot_accept_ ? -1 : listener_.fd();
  polled_.push_back({debugger_ ? debugger_->in() : listener, POLLIN, 0});
  below_.link().add_poll(polled_);
  if (debugger_ && debugger_->wants_to_write()) polled_.push_back({debugger_->out(), POLLOUT, 0});
  bool has_work = owed_ == Owed::kNothing && (asked_last_ || below_.has_notification());
  const bool pauses = std::exchange(cannot_accept_, false);
  int timeout_ms = has_work ? 0 : pauses ? kPause_ms : -1;
  if (::poll(polled_.data(), polled_.size(), timeout_ms) >= 0) return {};
  if (errno != EINTR) return fail(system_error("cannot wait for the debugger"));
  for (pollfd& one : polled_) one.revents = 0;
  return {};
}

Result<void> Proxy::accept() {
  auto accepted = listener_.accept();
  if (!accepted && listener_.is_stdio()) return fail(std::move(accepted.error()));
  // Whoever hung up again before is nobody's failure. Or no more descriptors can be opened now.
  cannot_accept_ = !accepted;
  if (!accepted) return {};
  say(accepted->announcement);
  debugger_.emplace(std::move(accepted->connection));
  debugger_lost_ = interrupts_next_ = false;
  run_choice_ = {};
  asker_is_gone_ = owed_ != Owed::kNothing;
  // The program still runs for a debugger that is gone; this one finds it stopped.
  return owed_ == Owed::kStop ? below_.link().interrupt() : Result<void>();
}

void Proxy::debugger_is_gone() {
  terminal_.take_back();
  debugger_.reset();
  waiting_packets_.clear();
  monitor_.abandon();
  non_stop_.forget_debugger();
  lldb_replay_.forget_debugger();
  lldb_.forget_debugger();
  if (listener_.is_stdio() || options_.once || (!extended_ && !has_program())) {
    stop_serving(0);
    return;
  }
  say("Remote side has terminated connection.  GDBserver will reopen the connection.");
  say(listener_.announcement());
}

bool Proxy::has_program() {
  if (owed_ != Owed::kNothing) return true;
  auto threads = below_.ask("qfThreadInfo");
  return threads && threads->starts_with('m');
}

void Proxy::server_is_gone(const Error& error) {
  terminal_.take_back();
  // One that says what cannot be understood may wait for ever.
  bool has_ended = error.code == ErrorCode::kGone;
  int status = has_ended ? below_.link().exit_status() : below_.link().shut_down(true);
  if (!has_ended) say(error.to_line());
  if (debugger_ && owed_ != Owed::kNothing) {
    std::string text = fmt::format("tailtrace: the server below has ended (status {})\n", status);
    if (owed_ == Owed::kStop) {
      reply("O" + to_hex(as_bytes(text)));
      reply("X09");
    } else {
      reply("E." + text.substr(0, text.size() - 1));
    }
  } else if (lldb_.is_lldb()) {
    await_hang_up();
  }
  debugger_.reset();
  exit_status_ = status;
}

// To LLDB, a program has ended with -1 when its server ends, or hangs up, before LLDB has taken in
// how the program ended. LLDB hangs up by itself then.
void Proxy::await_hang_up() {
  static constexpr int kPatience_ms = 5000;
  while (debugger_) {
    pollfd polled[] = {{signals_.fd(), POLLIN, 0}, {debugger_->in(), POLLIN, 0}};
    if (::poll(polled, 2, kPatience_ms) <= 0 || polled[0].revents != 0) return;
    if (!debugger_->receive()) return;
  }
}

void Proxy::stop_serving(int exit_status) {
  debugger_.reset();
  below_.link().shut_down(owed_ == Owed::kStop);
  exit_status_ = exit_status;
}

void Proxy::say(std::string_view line) const {
  if (options_.say) options_.say(line);
}

void Proxy::reply(std::string_view payload) {
  if (debugger_ && !debugger_->send(payload)) debugger_lost_ = true;
}

// What was owed.
void Proxy::answer(std::string_view payload) {
  owed_ = Owed::kNothing;
  if (!std::exchange(asker_is_gone_, false)) reply(payload);
}

// Whether there was any.
Result<bool> Proxy::take_debugger_frames() {
  bool any = false;
  for (;;) {
    auto frame = debugger_->next();
    if (!frame) debugger_lost_ = true;
    if (!frame || !*frame) break;
    any = true;
    bool interrupts = (*frame)->kind == rsp::Frame::Kind::kInterrupt;
    // One that came right behind a request to run is meant for what that one will start.
    if (interrupts && (owed_ == Owed::kStop || waiting_packets_.empty())) {
      if (auto sent = interrupt(); !sent) return fail(std::move(sent.error()));
    } else if (interrupts || (*frame)->kind == rsp::Frame::Kind::kPacket) {
      if (waiting_packets_.size() < kMaxWaitingPackets)
        waiting_packets_.emplace_back(interrupts ? kInterrupt : (*frame)->payload);
      else
        debugger_lost_ = true;
    }
  }
  if (auto done = take_waiting_packets(); !done) return fail(std::move(done.error()));
  return any;
}

Result<void> Proxy::take_waiting_packets() {
  while (!waiting_packets_.empty()) {
    bool interrupts = waiting_packets_.front() == kInterrupt;
    if (owed_ != Owed::kNothing && !interrupts) break;
    std::string packet = std::move(waiting_packets_.front());
    waiting_packets_.pop_front();
    if (auto done = interrupts ? interrupt() : on_packet(std::move(packet)); !done) return done;
  }
  return {};
}

// The debugger wants the program stopped.
Result<void> Proxy::interrupt() {
  judge_.set_interrupted(owed_ == Owed::kStop && lldb_server_.in_use());
  // An lldb-server waits for programs by their name, too.
  if (owed_ == Owed::kStop || (owed_ == Owed::kStatus && lldb_server_.in_use()))
    return below_.link().interrupt();
  // GDB may be about to make its next step, which a gdbserver would not take then.
  interrupts_next_ = !lldb_.is_lldb() && !is_non_stop_;
  return {};
}

// Whether there was any.
Result<bool> Proxy::take_server_frames() {
  bool any = false;
  for (;;) {
    auto frame = below_.link().next();
    if (!frame) return fail(std::move(frame.error()));
    if (!*frame) break;
    any = true;
    if ((*frame)->kind == rsp::Frame::Kind::kNotification) {
      if (rsp::expand_runs((*frame)->payload, expanded_)) below_.keep_notification(expanded_);
    } else if ((*frame)->kind == rsp::Frame::Kind::kPacket) {
      if (auto done = on_answer((*frame)->payload); !done) return fail(std::move(done.error()));
    }
  }
  if (auto done = take_waiting_packets(); !done) return fail(std::move(done.error()));
  return any;
}

// A few at a time: threads that go by steps send them without end, and the debugger wants to be
// heard too.
Result<void> Proxy::take_notifications() {
  asked_last_ = false;
  for (int n = 0; n < kNotificationsPerTurn && owed_ == Owed::kNothing; ++n) {
    auto notification = below_.take_notification();
    if (!notification) break;
    asked_last_ = true;
    if (auto taken = non_stop_.on_notification(*notification); !taken) return taken;
  }
  if (debugger_) {
    std::string announcement = non_stop_.take_announcement();
    if (!announcement.empty() && !debugger_->notify(announcement)) debugger_lost_ = true;
  }
  return {};
}

Result<void> Proxy::on_packet(std::string packet) {
  auto request = lldb_.request_for_server(std::move(packet));
  if (!request) return fail(std::move(request.error()));
  if (lldb_.is_lldb()) request = lldb_replay_.request_for_server(std::move(*request));
  if (!request) return fail(std::move(request.error()));
  packet = std::move(*request);
  if (packet.starts_with(kPassSignals))
    judge_.set_passed_signals(std::string_view(packet).substr(kPassSignals.size()));
  auto answered = answer_here(packet);
  if (!answered) return fail(std::move(answered.error()));
  if (*answered) return {};
  if (auto noted = note_request(packet); !noted) return noted;
  if (rsp::is_resume(packet)) {
    const bool interrupts = std::exchange(interrupts_next_, false);
    if (interrupts && stop_at_once(packet)) return {};
    if (auto noted = note_resume(); !noted) return noted;
    if (auto noted = lldb_trace_.runs(); !noted) return noted;
    auto first = lldb_.is_lldb() ? lldb_replay_.first_of(packet) : Result<std::string>(packet);
    if (!first) return fail(std::move(first.error()));
    owed_ = Owed::kStop;
    auto resumed = stepper_.resume(*first, run_choice_);
    return resumed && interrupts ? interrupt() : resumed;
  }
  if (packet == "?" || packet.starts_with("vRun;") || packet.starts_with("vAttach"))
    return pass_on(packet, Owed::kStatus);
  if (packet.starts_with("Hg")) return pass_on(packet, Owed::kSelection);
  if (packet.starts_with("D") || packet.starts_with("vKill;")) return pass_on(packet, Owed::kEnd);
  if (packet == "k" && lldb_server_.in_use()) return pass_on(packet, Owed::kEnd);
  if (packet.starts_with("k") || packet.starts_with("R")) return pass_on(packet, Owed::kNothing);
  return pass_on(packet, Owed::kAnswer);
}

Result<void> Proxy::pass_on(std::string_view packet, Owed owed) {
  if (auto restored = below_.restore_selection(); !restored) return restored;
  owed_ = owed;
  owed_for_ = packet;
  return below_.link().send(packet);
}

// Takes note of what a request changes.
Result<void> Proxy::note_request(std::string_view packet) {
  if (packet == "!") extended_ = true;
  if (packet.starts_with("QThreadEvents:")) judge_.set_reports_threads(packet.ends_with('1'));
  if (packet.starts_with("Hc"))
    run_choice_ = rsp::parse_thread(packet.substr(2)).value_or(rsp::ThreadSelector{});
  if (Stepper::is_of_stops(packet)) {
    auto thread = below_.debugger_thread();
    if (!thread) return fail(std::move(thread.error()));
    stepper_.note_request(packet, *thread ? (*thread)->pid : 0);
  }
  if (recorder_.empty()) return {};
  if (packet.starts_with("G") || packet.starts_with("P") || packet.starts_with("M") ||
      packet.starts_with("X") || packet.starts_with("QRestoreRegisterState:")) {
    auto thread = below_.debugger_thread();
    if (!thread) return fail(std::move(thread.error()));
    if (!*thread) return {};
    if (packet.front() == 'G' || packet.front() == 'P' || packet.front() == 'Q') {
      recorder_.registers_written(**thread);
    } else if (auto range = written_range(packet)) {
      recorder_.memory_written((*thread)->pid, range->first, range->second);
    }
  }
  if (packet.starts_with("k") || packet.starts_with("R")) recorder_.forget_all();
  return {};
}

Result<void> Proxy::on_answer(std::string_view payload) {
  // Memory that LLDB reads may begin with the same letter.
  bool may_be_output =
      owed_ != Owed::kNothing && (owed_ != Owed::kAnswer || owed_for_.starts_with("qRcmd,"));
  if (may_be_output && payload.size() > 1 && payload.front() == 'O' && payload != "OK") {
    if (!asker_is_gone_) reply(payload);
    return {};
  }
  switch (owed_) {
    case Owed::kNothing:
      return {};
    case Owed::kStop:
      return on_stop_reply(payload);
    case Owed::kStatus:
      if (rsp::expand_runs(payload, expanded_))
        if (auto stop = rsp::parse_stop_reply(expanded_)) note_stop(*stop);
      answer(payload.starts_with("E.") && lldb_.is_lldb() ? LldbFace::error_for_debugger(payload)
                                                          : lldb_.tell(payload));
      return {};
    case Owed::kSelection:
      note_done(payload);
      break;
    case Owed::kEnd:
      note_done(payload);
      answer(lldb_.end_for_debugger(owed_for_, payload));
      return {};
    case Owed::kAnswer:
      answer(lldb_.answer_for_debugger(payload));
      return {};
  }
  answer(payload);
  return {};
}

// The debugger lets the program run.
Result<void> Proxy::note_resume() {
  if (options_.terminal < 0) return {};
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  if (*thread) terminal_.give_to((*thread)->pid);
  return {};
}

// A request was carried out, or not.
void Proxy::note_done(std::string_view answer) {
  auto selector = owed_ == Owed::kSelection
                      ? rsp::parse_thread(std::string_view(owed_for_).substr(2))
                      : std::nullopt;
  bool exact = selector && selector->is_thread();
  if (answer != "OK") {
    // A debugger does not look at this answer: it goes on as if the thread were selected.
    if (exact) {
      recorder_.thread_gone(selector->thread());
      below_.debugger_selected_vanished();
    }
    return;
  }
  if (owed_ == Owed::kSelection) {
    below_.debugger_selected(exact ? std::optional(selector->thread()) : std::nullopt);
    return;
  }
  for (std::string_view prefix : {"vKill;", "D;"})
    if (auto pid = process_of(owed_for_, prefix)) {
      recorder_.process_gone(*pid);
      lldb_replay_.process_gone(*pid);
    }
  if (owed_for_ == "D") recorder_.forget_all();
  below_.debugger_selected(std::nullopt);
}

}  // namespace tailtrace
