#include "plugin/server/lldb/lldb_trace.h"

#include <fmt/format.h>
#include <x86intrin.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "plugin/server/below/program_type.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "jLLDBTrace";
constexpr std::uint64_t kMaxRingRecords = 1 << 22;
// LLDB's own server says 5 MiB when it is not told.
constexpr std::uint64_t kProcessLimit_bytes = 5 << 20;
constexpr std::size_t kMaxPauses = 1 << 16;  // of a thread
constexpr std::string_view kNoRoom =
    "can't be traced as the process trace size limit has been reached. "
    "Consider retracing with a higher limit.";

std::string thread_error(ThreadId thread, std::string_view what) {
  return fmt::format("Thread {} {}", thread.tid, what);
}

}  // namespace

Result<std::optional<std::string>> LldbTrace::answer(std::string_view packet) {
  if (!packet.starts_with(kPrefix)) return std::optional<std::string>();
  std::string plain = rsp::unescape(packet.substr(kPrefix.size()));
  auto answer = dispatch(plain);
  if (answer) return std::optional(rsp::escape(*answer));
  if (answer.error().code == ErrorCode::kGone) return fail(std::move(answer.error()));
  return std::optional(error_answer(answer.error()));
}

std::string LldbTrace::error_answer(const Error& error) const {
  std::string answer = fmt::format("E{:02x}", static_cast<int>(error.code));
  if (has_error_texts_) answer += ";" + to_hex(as_bytes(error.to_line()));
  return answer;
}

Result<std::string> LldbTrace::dispatch(std::string_view packet) {
  if (packet == "Supported") return supported();
  std::size_t colon = packet.find(':');
  std::string_view name = packet.substr(0, colon);
  std::string_view json = colon == std::string_view::npos ? "" : packet.substr(colon + 1);
  if (name == "Start") return start(json);
  if (name == "Stop") return stop(json);
  if (name == "GetState") return state(json);
  if (name == "GetBinaryData") return data(json);
  return std::string();
}

std::string LldbTrace::supported() const {
  return OrderedJson{
      {"name", "intel-pt"},
      {"description", fmt::format("Intel Processor Trace, made from tailtrace's `{}` engine",
                                  recorder_.engine().name())}}
      .dump();
}

// Those of the process that the debugger debugs.
Result<std::vector<ThreadId>> LldbTrace::threads() {
  auto current = below_.debugger_thread();
  if (!current) return fail(std::move(current.error()));
  std::vector<ThreadId> found;
  if (!*current) return found;
  auto answer = below_.ask("qfThreadInfo");
  while (answer && answer->starts_with('m')) {
    std::string_view rest = std::string_view(*answer).substr(1);
    while (!rest.empty()) {
      std::size_t end = std::min(rest.find(','), rest.size());
      auto selector = rsp::parse_thread(rest.substr(0, end));
      if (selector && selector->tid > 0 && (selector->pid <= 0 || selector->pid == (*current)->pid))
        found.push_back({(*current)->pid, selector->tid});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    answer = below_.ask("qsThreadInfo");
  }
  if (!answer) return fail(std::move(answer.error()));
  forget_gone(found);
  return found;
}

void LldbTrace::forget_gone(const std::vector<ThreadId>& threads) {
  auto is_gone = [&](const auto& entry) {
    return std::ranges::find(threads, entry.first) == threads.end();
  };
  std::erase_if(traced_, is_gone);
  if (process_ && (threads.empty() || threads.front().pid != process_->pid)) end_process_trace();
}

bool LldbTrace::is_traced(ThreadId thread) {
  RecordedThread* known = recorder_.find(thread);
  return known != nullptr && known->enabled;
}

Result<std::string> LldbTrace::start(std::string_view json) {
  auto start = parse_lldb_trace_start(json);
  if (!start) return fail(std::move(start.error()));
  return start->threads ? start_threads(*start) : start_process(*start);
}

Result<std::string> LldbTrace::start_threads(const LldbTraceStart& start) {
  Settings settings{start.trace_size_bytes, start.times, start.psb_period};
  auto known = threads();
  if (!known) return fail(std::move(known.error()));
  for (std::int32_t tid : *start.threads) {
    auto thread = std::ranges::find(*known, tid, &ThreadId::tid);
    if (thread == known->end()) return refuse(fmt::format("There is no thread {}", tid));
    if (is_traced(*thread) && process_ && !process_->left_out.contains(*thread))
      return refuse(
          fmt::format("Thread with tid {} is currently traced. Stop tracing it first.", tid));
    if (is_traced(*thread)) return refuse(thread_error(*thread, "already traced"));
    if (auto started = start_thread(*thread, settings); !started)
      return fail(std::move(started.error()));
  }
  return "OK";
}

Result<std::string> LldbTrace::start_process(const LldbTraceStart& start) {
  auto known = threads();
  if (!known) return fail(std::move(known.error()));
  if (auto ok = check_process(start, *known); !ok) return fail(std::move(ok.error()));
  ProcessTrace process;
  process.pid = known->front().pid;
  process.settings = {start.trace_size_bytes, start.times || start.per_cpu, start.psb_period};
  process.limit_bytes = start.process_limit_bytes.value_or(kProcessLimit_bytes);
  process.per_cpu = start.per_cpu;
  process_ = std::move(process);
  for (ThreadId thread : *known) {
    if (is_traced(thread)) continue;
    auto started = start_thread(thread, process_->settings);
    if (started) continue;
    process_.reset();
    return fail(std::move(started.error()));
  }
  process_->looked_at = recorder_.met();
  return "OK";
}

Result<void> LldbTrace::check_process(const LldbTraceStart& start,
                                      const std::vector<ThreadId>& threads) {
  if (process_) return refuse("Process currently traced. Stop process tracing first");
  if (threads.empty()) return refuse("There is no process to trace");
  if (start.per_cpu && std::ranges::any_of(threads, [&](ThreadId t) { return is_traced(t); }))
    return refuse("Threads currently traced. Stop tracing them first.");
  std::uint64_t limit_bytes = start.process_limit_bytes.value_or(kProcessLimit_bytes);
  if (limit_bytes / start.trace_size_bytes >= threads.size()) return {};
  return refuse(
      "The process can't be traced because the process trace size limit has been reached. "
      "Consider retracing with a higher limit.");
}

Result<void> LldbTrace::start_thread(ThreadId id, const Settings& settings) {
  if (auto ok = check_program(id.pid); !ok) return ok;
  recorder_.set_ring_records(std::max(
      options_.ring_records, std::min(std::bit_ceil(settings.trace_size_bytes), kMaxRingRecords)));
  bool known = recorder_.find(id) != nullptr;
  bool again = process_ && process_->left_out.erase(id) != 0;
  auto thread = recorder_.start(id);
  if (!thread) return fail(std::move(thread.error()));
  if (again || (!known && !options_.since_start && !(*thread)->begun_before_enabled)) {
    auto here = recorder_.mark(**thread);
    if (!here) return fail(std::move(here.error()));
    (*thread)->begin = *here;
  }
  (*thread)->enabled = BtraceFormat::kPt;
  (*thread)->buffer_size_bytes = settings.trace_size_bytes;
  (*thread)->begun_before_enabled |= options_.since_start;
  Traced traced{settings, __rdtsc(), {}, 0, {}, {}};
  if (process_) traced.cpu = process_->next_cpu++;
  traced_.insert_or_assign(id, std::move(traced));
  return {};
}

Result<std::string> LldbTrace::stop(std::string_view json) {
  auto tids = parse_lldb_trace_stop(json);
  if (!tids) return fail(std::move(tids.error()));
  auto known = threads();
  if (!known) return fail(std::move(known.error()));
  if (*tids && process_ && process_->per_cpu)
    return refuse(
        "Can't stop tracing an individual thread when per-cpu process tracing is enabled.");
  for (std::int32_t tid : tids->value_or(std::vector<std::int32_t>()))
    if (std::ranges::find(*known, tid, &ThreadId::tid) == known->end())
      return refuse(fmt::format("There is no thread {}", tid));
  for (ThreadId thread : *known) {
    bool meant = !*tids || std::ranges::find(**tids, thread.tid) != (*tids)->end();
    if (!meant) continue;
    if (!is_traced(thread)) {
      if (*tids) return refuse(thread_error(thread, "not currently traced"));
      continue;
    }
    if (auto stopped = stop_thread(thread); !stopped) return fail(std::move(stopped.error()));
  }
  if (*tids) return "OK";
  if (auto stopped = stop_left_out(); !stopped) return fail(std::move(stopped.error()));
  return "OK";
}

// While the process is traced the threads that it makes are to be met, whoever makes them.
Result<void> LldbTrace::stop_thread(ThreadId thread) {
  traced_.erase(thread);
  if (!process_) return recorder_.stop(thread);
  recorder_.find(thread)->enabled.reset();
  process_->left_out.insert(thread);
  return {};
}

// The end of a process's trace.
Result<void> LldbTrace::stop_left_out() {
  if (!process_) return {};
  std::vector<ThreadId> rest;
  recorder_.for_each([&](RecordedThread& thread) {
    if (thread.id.pid == process_->pid && !thread.enabled) rest.push_back(thread.id);
  });
  for (ThreadId thread : rest)
    if (auto stopped = recorder_.stop(thread); !stopped) return stopped;
  for (ThreadId thread : process_->left_out) traced_.erase(thread);
  end_process_trace();
  return {};
}

void LldbTrace::end_process_trace() {
  recorder_.engine().set_thread_room(process_->pid, std::nullopt);
  process_.reset();
}

// By how many threads the process's trace may become larger.
std::uint64_t LldbTrace::thread_room() const {
  std::uint64_t held_bytes = 0;
  for (const auto& [id, traced] : traced_) held_bytes += traced.settings.trace_size_bytes;
  std::uint64_t free_bytes = process_->limit_bytes - std::min(process_->limit_bytes, held_bytes);
  return free_bytes / process_->settings.trace_size_bytes;
}

// An engine that can is to tell of threads beyond the limit.
Result<void> LldbTrace::limit_threads() {
  if (!process_ || !recorder_.engine().tells_of_threads()) return {};
  if (auto met = meet_threads(); !met) return met;
  if (process_) recorder_.engine().set_thread_room(process_->pid, thread_room());
  return {};
}

// Threads that were made since the process is traced.
Result<void> LldbTrace::meet_new_threads(const std::vector<ThreadId>& threads,
                                         std::vector<std::string>& warnings) {
  if (!process_) return {};
  for (ThreadId thread : threads) {
    if (is_traced(thread) || process_->left_out.contains(thread)) continue;
    if (!has_room()) {
      warnings.push_back(thread_error(thread, kNoRoom));
      continue;
    }
    auto started = start_thread(thread, process_->settings);
    if (!started && started.error().code == ErrorCode::kGone) return started;
    if (!started)
      warnings.push_back(thread_error(thread, "is not traced: " + started.error().to_line()));
  }
  return {};
}

std::string LldbTrace::tell_of_no_room(ThreadId thread) {
  process_->left_out.insert(thread);
  return fmt::format("T00thread:{};reason:processor trace;description:{};",
                     rsp::format_thread(thread), to_hex(as_bytes(thread_error(thread, kNoRoom))));
}

// A thread that the engine tells of. Others that it has not told of come before it.
Result<std::optional<std::string>> LldbTrace::meet_told_thread(ThreadId thread) {
  auto others = threads();
  if (!others) return fail(std::move(others.error()));
  std::erase(*others, thread);
  std::vector<std::string> warnings;
  if (auto met = meet_new_threads(*others, warnings); !met) return fail(std::move(met.error()));
  bool is_met = !process_ || is_traced(thread) || process_->left_out.contains(thread);
  if (!is_met && !has_room()) return std::optional(tell_of_no_room(thread));
  // Others have ended: it has room after all.
  if (auto met = meet_new_threads({thread}, warnings); !met) return fail(std::move(met.error()));
  if (process_) recorder_.engine().set_thread_room(process_->pid, thread_room());
  return std::optional<std::string>();
}

Result<std::optional<std::string>> LldbTrace::untraceable_thread(const rsp::StopReply& stop) {
  if (!process_) return std::optional<std::string>();
  bool is_told = (stop.reasons & rsp::StopReply::kThreadCreated) != 0 && stop.thread &&
                 stop.thread->is_thread() && stop.thread->pid == process_->pid;
  if (is_told && recorder_.engine().tells_of_threads())
    return meet_told_thread(stop.thread->thread());
  if (process_->looked_at == recorder_.met()) return std::optional<std::string>();
  std::vector<ThreadId> fresh;
  recorder_.for_each([&](RecordedThread& thread) {
    if (thread.id.pid == process_->pid && !thread.enabled &&
        !process_->left_out.contains(thread.id))
      fresh.push_back(thread.id);
  });
  for (ThreadId thread : fresh) {
    if (!has_room()) return std::optional(tell_of_no_room(thread));
    if (auto started = start_thread(thread, process_->settings);
        !started && started.error().code == ErrorCode::kGone)
      return fail(std::move(started.error()));
  }
  process_->looked_at = recorder_.met();
  return std::optional<std::string>();
}

void LldbTrace::stopped() {
  stopped_at_ = __rdtsc();
  has_met_ = false;
}

Result<void> LldbTrace::meet_threads() {
  if (!process_ || std::exchange(has_met_, true)) return {};
  auto known = threads();
  if (!known) return fail(std::move(known.error()));
  std::vector<std::string> warnings;
  return meet_new_threads(*known, warnings);
}

Result<void> LldbTrace::runs() {
  if (auto limited = limit_threads(); !limited) return limited;
  if (!recorder_.engine().can_mark_stops()) return {};
  for (auto& [id, traced] : traced_) {
    RecordedThread* thread = recorder_.find(id);
    if (thread == nullptr || !thread->enabled) continue;
    auto here = recorder_.mark(*thread);
    if (!here && here.error().code == ErrorCode::kGone) continue;  // the thread
    if (!here) return fail(std::move(here.error()));
    if (traced.pauses.size() >= kMaxPauses)
      traced.pauses.erase(traced.pauses.begin(), traced.pauses.begin() + kMaxPauses / 2);
    traced.pauses.push_back({*here, std::max(stopped_at_, traced.since), __rdtsc()});
  }
  return {};
}

}  // namespace tailtrace
