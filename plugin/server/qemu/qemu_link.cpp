#include "plugin/server/qemu/qemu_link.h"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "plugin/server/rsp/frame.h"
#include "plugin/server/rsp/resume.h"

namespace tailtrace {
namespace {

// A program that blocks SIGINT, or has long to go in the kernel, stops when it can.
constexpr int kStopPatience_ms = 2000;

}  // namespace

QemuLink::QemuLink(const ServeOptions& options, QemuPrograms& programs)
    : options_(options),
      programs_(programs),
      files_([this](const std::string& path) { return made_file(path); },
             [this](const std::string& path) { return made_link(path); }),
      answers_ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {}

void QemuLink::say(std::string_view line) const {
  if (options_.say) options_.say(line);
}

Result<QemuInferior*> QemuLink::start(std::vector<std::string> program) {
  auto inferior = programs_.launch(program);
  if (!inferior) return inferior;
  program_ = std::move(program);
  (*inferior)->pass_signals(passed_signals_);
  say(fmt::format("Process {} created; pid = {}", program_[0], (*inferior)->pid()));
  general_ = (*inferior)->stopped_thread();
  return inferior;
}

Result<void> QemuLink::send(std::string_view payload) {
  if (rsp::is_resume(payload)) {
    return resume(payload);
  } else if (payload == "k") {
    kill_all();
    if (!options_.multi) exits_ = true;
  } else if (payload.starts_with("R")) {
    restart();
  } else {
    auto answered = answer(payload);
    if (!answered) return fail(std::move(answered.error()));
    push(std::move(*answered));
  }
  return {};
}

Result<void> QemuLink::send_frame(std::string_view frames) {
  rsp::FrameParser parser;
  parser.feed(frames);
  while (auto frame = parser.next())
    if (auto sent = send(frame->payload); !sent) return sent;
  return {};
}

void QemuLink::push(std::string payload) {
  answers_.push_back(std::move(payload));
  std::uint64_t one = 1;
  (void)!::write(answers_ready_.get(), &one, sizeof one);
}

Result<std::optional<rsp::Frame>> QemuLink::next() {
  if (answers_.empty()) {
    if (exits_) return fail(ErrorCode::kGone, "the server has ended");
    return std::optional<rsp::Frame>();
  }
  std::uint64_t one = 0;
  (void)!::read(answers_ready_.get(), &one, sizeof one);
  current_ = std::move(answers_.front());
  answers_.pop_front();
  return std::optional(rsp::Frame{rsp::Frame::Kind::kPacket, current_});
}

Result<void> QemuLink::resume(std::string_view request) {
  auto actions = rsp::parse_resume(request, run_choice_);
  if (!actions) {
    push(std::string(rsp::kFailed));
    return {};
  }
  owes_stop_ = true;
  // What happened before is told before anything moves.
  auto stopped_before = std::find_if(pending_.begin(), pending_.end(), [&](const PendingStop& p) {
    const rsp::ResumeAction* action = rsp::action_for(*actions, p.thread);
    return action != nullptr && action->kind != rsp::ResumeAction::Kind::kStop;
  });
  if (stopped_before != pending_.end()) {
    PendingStop stop = std::move(*stopped_before);
    pending_.erase(stopped_before);
    report(std::move(stop));
    return {};
  }
  bool any = false;
  for (const auto& [pid, inferior] : programs_.all()) {
    any |= inferior->is_running();
    if (inferior->is_running() || !inferior->is_meant(*actions)) continue;
    inferior->resume(*actions);
    any = true;
  }
  // One that was killed while it stood has no connection left that would wake us up.
  if (any) return take_events();
  owes_stop_ = false;
  push("N");
  return {};
}

Result<void> QemuLink::interrupt() {
  for (const auto& [pid, inferior] : programs_.all()) inferior->interrupt();
  return {};
}

void QemuLink::add_poll(std::vector<pollfd>& polled) const {
  polled.push_back({answers_ready_.get(), POLLIN, 0});
  polled.push_back({changes_.fd(), POLLIN, 0});
  for (const auto& [pid, inferior] : programs_.all())
    if (inferior->is_running()) polled.push_back({inferior->stub_fd(), POLLIN, 0});
}

Result<void> QemuLink::receive() {
  changes_.forget();
  return take_events();
}

Result<void> QemuLink::take_events() {
  std::vector<std::int32_t> running;
  for (const auto& [pid, inferior] : programs_.all())
    if (inferior->is_running()) running.push_back(pid);
  for (std::int32_t pid : running) {
    // It may have ended as another one's stop was to be its own.
    QemuInferior* inferior = programs_.find(pid);
    if (inferior == nullptr) continue;
    auto event = inferior->take_event();
    if (!event) return fail(std::move(event.error()));
    if (!*event) continue;
    if (auto others = stop_others(*inferior); !others) return others;
    PendingStop stop{inferior->stopped_thread(), std::move((*event)->reply)};
    if ((*event)->has_ended) forget(pid);
    if (owes_stop_)
      report(std::move(stop));
    else if (!(*event)->was_interrupted)
      pending_.push_back(std::move(stop));
  }
  return {};
}

// One stop is a stop of all. A program that stops by itself meanwhile keeps its own to be told.
Result<void> QemuLink::stop_others(const QemuInferior& stopped) {
  std::vector<std::int32_t> ended;
  for (const auto& [pid, other] : programs_.all()) {
    if (other.get() == &stopped || !other->is_running()) continue;
    std::optional<QemuInferior::Event> event;
    for (bool patient = true; patient && !event;) {
      auto came = other->take_event();
      if (!came) return fail(std::move(came.error()));
      event = std::move(*came);
      if (event) break;
      other->interrupt();
      pollfd polled{other->stub_fd(), POLLIN, 0};
      patient = ::poll(&polled, 1, kStopPatience_ms) != 0;
    }
    if (!event || event->was_interrupted) continue;
    if (event->has_ended) ended.push_back(pid);
    pending_.push_back({other->stopped_thread(), std::move(event->reply)});
  }
  for (std::int32_t pid : ended) programs_.remove(pid);
  return {};
}

void QemuLink::report(PendingStop stop) {
  owes_stop_ = false;
  if (programs_.find(stop.thread.pid) != nullptr) general_ = stop.thread;
  // LLDB has no word for a thread that ran alone and has ended.
  if (stop.reply == "N" && !wants_no_resumed_)
    stop.reply = fmt::format("T00thread:{};", rsp::format_thread(stop.thread));
  if (stop.reply[0] == 'W')
    ended_with_ = static_cast<int>(parse_hex(stop.reply.substr(1, 2)).value_or(0));
  push(std::move(stop.reply));
}

// It is gone, whatever was still to be told of it.
bool QemuLink::forget(std::int32_t pid) {
  programs_.remove(pid);
  return std::erase_if(pending_, [&](const PendingStop& p) { return p.thread.pid == pid; }) != 0;
}

QemuInferior* QemuLink::selected() {
  QemuInferior* inferior = programs_.find(general_.pid);
  if (inferior == nullptr && !programs_.all().empty()) {
    inferior = programs_.all().begin()->second.get();
    general_ = inferior->stopped_thread();
  }
  return inferior;
}

void QemuLink::kill_all() {
  while (!programs_.all().empty()) forget(programs_.all().begin()->first);
  owes_stop_ = false;
}

int QemuLink::shut_down(bool) {
  kill_all();
  return 0;
}

}  // namespace tailtrace
