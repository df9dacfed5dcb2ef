#include "plugin/server/below/below.h"

#include <fmt/core.h>

#include <algorithm>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

// A server that sends more without being asked is broken.
constexpr std::size_t kMaxNotifications = 1 << 16;
constexpr std::size_t kRegisterDigits = 16;
// As much as fits a packet of any server: those of qemu have 4096 digits.
constexpr std::size_t kMaxRead_bytes = 2048;

bool is_error(std::string_view answer) { return answer.size() >= 3 && answer.front() == 'E'; }

Error unexpected(std::string_view request, std::string_view answer) {
  return {ErrorCode::kBadInput,
          fmt::format("the server below did not answer {}", request),
          fmt::format("it said \"{}\"", answer.substr(0, 80)),
          {},
          {}};
}

}  // namespace

Result<std::string> Below::ask(std::string_view request) {
  if (auto sent = link_->send(request); !sent) return fail(std::move(sent.error()));
  return await_answer();
}

Result<std::vector<std::string>> Below::ask_all(const std::vector<std::string>& requests) {
  std::string frames;
  for (const std::string& request : requests) rsp::append_frame(frames, request);
  if (auto sent = link_->send_frame(frames); !sent) return fail(std::move(sent.error()));
  std::vector<std::string> answers;
  while (answers.size() < requests.size()) {
    auto answer = await_answer();
    if (!answer) return fail(std::move(answer.error()));
    answers.push_back(std::move(*answer));
  }
  return answers;
}

Result<std::string> Below::await_answer() {
  std::vector<pollfd> polled;
  for (;;) {
    auto frame = link_->next();
    if (!frame) return fail(std::move(frame.error()));
    if (!*frame) {
      polled.clear();
      link_->add_poll(polled);
      if (auto waited = signals_.wait(polled); !waited) return fail(std::move(waited.error()));
      if (auto received = link_->receive(); !received) return fail(std::move(received.error()));
      continue;
    }
    std::string answer;
    if (!rsp::expand_runs((*frame)->payload, answer))
      return fail(unexpected("a request", (*frame)->payload));
    if ((*frame)->kind != rsp::Frame::Kind::kNotification) return answer;
    keep_notification(answer);
  }
}

void Below::keep_notification(std::string_view notification) {
  if (notifications_.size() < kMaxNotifications) notifications_.emplace_back(notification);
}

Result<std::string> Below::ask_of(ThreadId thread, std::string_view request) {
  if (auto selected = select(thread); !selected) return fail(std::move(selected.error()));
  return ask(request);
}

std::optional<std::string> Below::take_notification() {
  if (notifications_.empty()) return std::nullopt;
  std::string first = std::move(notifications_.front());
  notifications_.pop_front();
  return first;
}

Result<std::optional<ThreadId>> Below::debugger_thread() {
  static constexpr std::string_view kCurrent = "QC";
  if (debugger_thread_) return debugger_thread_;
  auto answer = ask("qC");
  if (!answer) return fail(std::move(answer.error()));
  if (!answer->starts_with(kCurrent)) return std::optional<ThreadId>();
  auto selector = rsp::parse_thread(std::string_view(*answer).substr(kCurrent.size()));
  if (!selector || !selector->is_thread()) return std::optional<ThreadId>();
  debugger_thread_ = server_thread_ = selector->thread();
  return debugger_thread_;
}

Result<void> Below::restore_selection() {
  if (!debugger_thread_ || debugger_thread_ == server_thread_) return {};
  auto answer = ask("Hg" + rsp::format_thread(*debugger_thread_));
  if (!answer) return fail(std::move(answer.error()));
  server_thread_ = debugger_thread_;
  return {};
}

void Below::debugger_selected(std::optional<ThreadId> thread) {
  debugger_thread_ = server_thread_ = thread;
  vanished_ = false;
}

Result<void> Below::select(ThreadId thread) {
  if (server_thread_ == thread) return {};
  // What the debugger has selected must be known before it is changed.
  if (auto known = debugger_thread(); !known) return fail(std::move(known.error()));
  if (server_thread_ == thread) return {};
  std::string request = "Hg" + rsp::format_thread(thread);
  auto answer = ask(request);
  if (!answer) return fail(std::move(answer.error()));
  if (*answer != "OK") return fail(unexpected(request, *answer));
  server_thread_ = thread;
  return {};
}

Result<std::uint64_t> Below::read_register(ThreadId thread, Register which) {
  const std::size_t number = static_cast<std::size_t>(which);
  const std::string request = is_lldb_server_ ? fmt::format("p{:x}", number) : "g";
  auto answer = ask_of(thread, request);
  if (!answer) return fail(std::move(answer.error()));
  std::size_t begin = is_lldb_server_ ? 0 : number * kRegisterDigits;
  if (is_error(*answer) || answer->size() < begin + kRegisterDigits)
    return fail(unexpected(request, *answer));
  auto value = parse_hex(std::string_view(*answer).substr(begin, kRegisterDigits));
  if (!value) return fail(unexpected(request, *answer));
  return __builtin_bswap64(*value);
}

Result<Address> Below::read_pc(ThreadId thread) {
  auto pc = read_register(thread, Register::kRip);
  if (!pc) return fail(std::move(pc.error()));
  return Address{*pc};
}

std::size_t Below::read_memory(ThreadId thread, Address address, std::span<std::uint8_t> out) {
  // Any thread of the process sees the same memory.
  if (!server_thread_ || server_thread_->pid != thread.pid)
    if (!select(thread)) return 0;
  std::size_t done = 0;
  while (done < out.size()) {
    std::size_t wanted = std::min(out.size() - done, kMaxRead_bytes);
    auto answer = ask(fmt::format("m{:x},{:x}", address.value + done, wanted));
    if (!answer || is_error(*answer)) break;
    auto bytes = from_hex(*answer);
    if (!bytes || bytes->empty() || bytes->size() > wanted) break;
    std::copy(bytes->begin(), bytes->end(), out.begin() + static_cast<std::ptrdiff_t>(done));
    done += bytes->size();
  }
  return done;
}

}  // namespace tailtrace
