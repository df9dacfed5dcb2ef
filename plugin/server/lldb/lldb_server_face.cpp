#include "plugin/server/lldb/lldb_server_face.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "decoder/base/bytes.h"
#include "plugin/engines/tasks.h"

namespace tailtrace {
namespace {

// How long LLDB is to wait for an answer: a history may have to be made for it.
constexpr std::string_view kPatience = "default_packet_timeout:60;";
constexpr std::string_view kInterrupted = "T13";  // SIGSTOP, as lldb-server stops a program

// The next part of a list, which it is taken off.
std::string_view take_part(std::string_view& list) {
  std::size_t end = std::min(list.find(','), list.size());
  std::string_view part = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return part;
}

// `T05key:value;key:value;` without the pairs of a key.
std::string without(std::string_view payload, std::string_view key) {
  static constexpr std::size_t kSignal_chars = 3;
  std::string kept(payload.substr(0, kSignal_chars));
  payload.remove_prefix(std::min(kSignal_chars, payload.size()));
  while (!payload.empty()) {
    std::size_t end = std::min(payload.find(';'), payload.size() - 1);
    std::string_view pair = payload.substr(0, end + 1);
    if (!(pair.starts_with(key) && pair.substr(key.size()).starts_with(':'))) kept += pair;
    payload.remove_prefix(end + 1);
  }
  return kept;
}

}  // namespace

void LldbServerFace::change_features(rsp::FeatureList& features) const {
  if (!in_use_) return;
  features.remove("QThreadSuffixSupported");
  features.remove("QNonStop");
}

void LldbServerFace::note_others(const rsp::StopReply& reply) {
  if (!in_use_ || !recorder_.needs_steps() || !reply.thread || !reply.thread->is_thread()) return;
  std::string_view threads = reply.threads, pcs = reply.thread_pcs;
  std::set<ThreadId> there;
  while (!threads.empty() && !pcs.empty()) {
    auto tid = rsp::parse_thread(take_part(threads));
    auto pc = parse_hex(take_part(pcs));
    if (!tid || tid->tid <= 0 || !pc) continue;
    ThreadId id{reply.thread->pid, tid->tid};
    there.insert(id);
    if (id == reply.thread->thread()) continue;
    RecordedThread* thread = recorder_.find(id);
    if (thread == nullptr)
      recorder_.thread_created(id, Address{*pc});
    else if (!thread->pc_known || thread->stop.pc != Address{*pc})
      recorder_.stopped_at(*thread, Address{*pc});
  }
  if (there.empty() || there.size() >= recorder_.threads().size()) return;
  std::vector<ThreadId> gone;
  for (const auto& [id, thread] : recorder_.threads())
    if (id.pid == reply.thread->pid && !there.contains(id)) gone.push_back(id);
  for (ThreadId id : gone) recorder_.thread_gone(id);
}

// lldb-server takes for a breakpoint what ends the step over a system call, which may have been the
// return of a handler to any place; and ours, behind a system call. The program's own is behind an
// instruction of its own.
Result<bool> LldbServerFace::is_step(const rsp::StopReply& reply) {
  static constexpr std::uint8_t kInt3 = 0xcc;
  if (!in_use_ || reply.signal != kProtocolSigTrap || !reply.thread || !reply.thread->is_thread())
    return false;
  if (reply.is_plain_trap()) return true;
  if (reply.reasons != rsp::StopReply::kSwBreak || !reply.pc ||
      replay_.has_breakpoint(reply.thread->pid, *reply.pc))
    return false;
  const ThreadId thread = reply.thread->thread();
  std::array<std::uint8_t, 1> before{};
  if (below_.read_memory(thread, Address{reply.pc->value - 1}, before) != 1) return false;
  return before[0] != kInt3 ? Result<bool>(true) : judge_.stepped_over_call(thread);
}

// A thread that ends while the others were to stop counts as one that has stopped, and cannot run.
bool LldbServerFace::is_before_end(std::string_view answer) const {
  constexpr int kMostLooks = 500;
  constexpr timespec kBetweenLooks = {0, 1'000'000};
  const auto told = below_.told_thread();
  if (!in_use_ || !answer.starts_with('E') || !told || !recorder_.needs_steps()) return false;
  for (int i = 0; i < kMostLooks; ++i) {
    if (is_ending(told->pid)) return true;
    ::nanosleep(&kBetweenLooks, nullptr);
  }
  return false;
}

std::string LldbServerFace::stop_for_debugger(std::string_view payload, const rsp::StopReply& reply,
                                              bool interrupted) const {
  if (!in_use_ || !payload.starts_with('T')) return std::string(payload);
  // It would tell at once why the others stopped, and that is asked for one by one.
  std::string told = without(payload, "jstopinfo");
  if (!interrupted || !reply.is_plain_trap()) return told;
  return without(told.replace(0, kInterrupted.size(), kInterrupted), "reason") + "reason:signal;";
}

Result<std::optional<std::string>> LldbServerFace::answer(std::string_view packet) {
  static constexpr std::string_view kWhy = "qThreadStopInfo";
  auto unsupported = [&](std::string_view name) { return packet.starts_with(name); };
  if (!in_use_) return std::optional<std::string>();
  if (unsupported("QThreadSuffixSupported") || unsupported("jThreadsInfo") ||
      unsupported("QNonStop:"))
    return std::optional(std::string());
  if (packet.starts_with("QPassSignals:") && recorder_.needs_steps())
    return std::optional<std::string>("OK");  // a step that a signal came between must be known
  if (packet == "qHostInfo") {
    auto info = below_.ask(packet);
    if (!info) return fail(std::move(info.error()));
    if (!info->starts_with('E') && !info->empty()) *info += kPatience;
    return std::optional(std::move(*info));
  }
  if (!packet.starts_with(kWhy)) return std::optional<std::string>();
  auto why = why_stopped(packet.substr(kWhy.size()));
  if (!why) return fail(std::move(why.error()));
  return std::optional(std::move(*why));
}

Result<std::string> LldbServerFace::why_stopped(std::string_view thread) {
  auto answer = below_.ask("qThreadStopInfo" + std::string(thread));
  if (!answer) return fail(std::move(answer.error()));
  auto reply = rsp::parse_stop_reply(*answer);
  if (!reply) return answer;
  std::string why = without(*answer, "jstopinfo");
  if (!recorder_.needs_steps() || recorder_.empty()) return why;
  auto is_nobodys = judge_.is_nobodys(*reply);
  if (!is_nobodys) return fail(std::move(is_nobodys.error()));
  auto stepped = is_step(*reply);
  if (!stepped) return fail(std::move(stepped.error()));
  if (!*is_nobodys && !*stepped) return why;
  return without(why.replace(0, 3, "T00"), "reason");
}

}  // namespace tailtrace
