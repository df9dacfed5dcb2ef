#include "plugin/server/lldb_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "decoder/pt/synthesis.h"
#include "plugin/server/program_type.h"

namespace tailtrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "jLLDBTrace";
constexpr std::uint64_t kInsnsPerPtByte = 5;  // on average
constexpr std::uint64_t kMaxRingRecords = 1 << 22;
// LLDB's own server says 5 MiB when it is not told.
constexpr std::uint64_t kProcessLimit_bytes = 5 << 20;
// A decoder loses what is left of a stretch between two PSBs when it finds an error in it.
constexpr std::uint64_t kPsbPeriod_bytes = 64 << 10;
constexpr int kPsbPeriodShift = 11;

// LLDB asks for /proc/cpuinfo and does not decode without these four values. The trace is no
// processor's: any that its decoder knows will do.
constexpr std::string_view kProcessor =
    "vendor_id\t: GenuineIntel\n"
    "cpu family\t: 6\n"
    "model\t\t: 85\n"
    "model name\t: tailtrace\n"
    "stepping\t: 4\n";

constexpr const char* kTraceKind = "iptTrace";
constexpr const char* kProcessorKind = "procfsCpuInfo";

bool has_times(const std::vector<BranchRecord>& records) {
  return std::ranges::any_of(records, [](const BranchRecord& r) { return r.time != 0; });
}

std::string thread_error(ThreadId thread, std::string_view what) {
  return fmt::format("Thread {} {}", thread.tid, what);
}

tl::unexpected<Error> refuse(std::string what) { return fail(ErrorCode::kUsage, std::move(what)); }

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
  return Json{
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
  std::erase_if(settings_, is_gone);
  std::erase_if(made_, is_gone);
  if (process_ && (threads.empty() || threads.front().pid != process_->pid)) process_.reset();
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
  if (process_) return refuse("Process currently traced. Stop process tracing first");
  if (start.per_cpu)
    return fail(ErrorCode::kUsage, "cannot trace for each processor",
                fmt::format("the `{}` engine records threads", recorder_.engine().name()),
                "process trace start, without --per-cpu-tracing");
  if (known->empty()) return refuse("There is no process to trace");
  ProcessTrace process;
  process.pid = known->front().pid;
  process.settings = {start.trace_size_bytes, start.times, start.psb_period};
  process.limit_bytes = start.process_limit_bytes.value_or(kProcessLimit_bytes);
  if (process.limit_bytes / start.trace_size_bytes < known->size())
    return refuse(
        "The process can't be traced because the process trace size limit has been reached. "
        "Consider retracing with a higher limit.");
  for (ThreadId thread : *known) {
    if (is_traced(thread)) continue;
    if (auto started = start_thread(thread, process.settings); !started)
      return fail(std::move(started.error()));
  }
  process_ = std::move(process);
  return "OK";
}

Result<void> LldbTrace::start_thread(ThreadId id, const Settings& settings) {
  if (auto ok = check_program(id.pid); !ok) return ok;
  recorder_.set_ring_records(std::max(
      options_.ring_records, std::min(std::bit_ceil(settings.trace_size_bytes), kMaxRingRecords)));
  bool known = recorder_.find(id) != nullptr;
  auto thread = recorder_.start(id);
  if (!thread) return fail(std::move(thread.error()));
  if (!known && !options_.since_start && !(*thread)->begun_before_enabled) {
    auto snapshot = recorder_.snapshot(**thread);
    if (!snapshot) return fail(std::move(snapshot.error()));
    (*thread)->begin = end_mark(*snapshot);
  }
  (*thread)->enabled = BtraceFormat::kPt;
  (*thread)->buffer_size_bytes = settings.trace_size_bytes;
  (*thread)->begun_before_enabled |= options_.since_start;
  settings_[id] = settings;
  return {};
}

Result<std::string> LldbTrace::stop(std::string_view json) {
  auto tids = parse_lldb_trace_stop(json);
  if (!tids) return fail(std::move(tids.error()));
  auto known = threads();
  if (!known) return fail(std::move(known.error()));
  for (ThreadId thread : *known) {
    bool meant = !*tids || std::ranges::find(**tids, thread.tid) != (*tids)->end();
    if (!meant) continue;
    if (!is_traced(thread)) {
      if (*tids) return refuse(thread_error(thread, "not currently traced"));
      continue;
    }
    if (auto stopped = stop_thread(thread); !stopped) return fail(std::move(stopped.error()));
    if (process_) process_->left_out.insert(thread);
  }
  if (!*tids) process_.reset();
  return "OK";
}

Result<void> LldbTrace::stop_thread(ThreadId thread) {
  settings_.erase(thread);
  made_.erase(thread);
  return recorder_.stop(thread);
}

// Threads that were made since the process is traced.
Result<void> LldbTrace::meet_new_threads(const std::vector<ThreadId>& threads,
                                         std::vector<std::string>& warnings) {
  if (!process_) return {};
  std::uint64_t held_bytes = 0;
  for (const auto& [id, settings] : settings_) held_bytes += settings.trace_size_bytes;
  for (ThreadId thread : threads) {
    if (is_traced(thread) || process_->left_out.contains(thread)) continue;
    if (held_bytes + process_->settings.trace_size_bytes > process_->limit_bytes) {
      warnings.push_back(thread_error(thread,
                                      "is not traced: the process trace size limit has been "
                                      "reached"));
      continue;
    }
    if (auto started = start_thread(thread, process_->settings); !started) {
      if (started.error().code == ErrorCode::kGone) return started;
      warnings.push_back(thread_error(thread, "is not traced: " + started.error().to_line()));
    } else {
      held_bytes += process_->settings.trace_size_bytes;
    }
  }
  return {};
}

Result<std::string> LldbTrace::state(std::string_view json) {
  if (auto ok = parse_lldb_trace_state(json); !ok) return fail(std::move(ok.error()));
  auto known = threads();
  if (!known) return fail(std::move(known.error()));
  std::vector<std::string> warnings;
  if (auto met = meet_new_threads(*known, warnings); !met) return fail(std::move(met.error()));
  Json traced = Json::array();
  bool times = false;
  for (ThreadId id : *known) {
    if (!is_traced(id)) continue;
    auto made = make(*recorder_.find(id));
    if (!made) return fail(std::move(made.error()));
    times |= (*made)->has_times;
    traced.push_back(
        {{"tid", id.tid},
         {"binaryData", Json::array({{{"kind", kTraceKind}, {"size", (*made)->bytes.size()}}})}});
  }
  Json state = {
      {"tracedThreads", std::move(traced)},
      {"processBinaryData", Json::array({{{"kind", kProcessorKind}, {"size", kProcessor.size()}}})},
      // Not in LLDB's document, and yet it does without the whole state without it.
      {"usingCgroupFiltering", false}};
  if (!warnings.empty()) state["warnings"] = warnings;
  if (times) {
    perf::TimeConversion conversion = clock_.conversion();
    state["tscPerfZeroConversion"] = {{"timeMult", conversion.mult},
                                      {"timeShift", conversion.shift},
                                      {"timeZero", conversion.zero_ns}};
  }
  return state.dump();
}

std::uint64_t LldbTrace::instructions_for(const Settings& settings) const {
  return std::max(options_.handover_instructions_lldb, settings.trace_size_bytes * kInsnsPerPtByte);
}

// The bytes of a thread as it stands.
Result<const LldbTrace::Made*> LldbTrace::make(RecordedThread& thread) {
  auto shown = recorder_.visible(thread);
  if (!shown) return fail(std::move(shown.error()));
  HistoryMark end = end_mark(*shown);
  auto known = made_.find(thread.id);
  if (known != made_.end() && known->second.end == end) return &known->second;
  ThreadSnapshot newest = of_this_program(std::move(*shown));
  const Settings& settings = settings_[thread.id];
  Made made{end, {}, settings.times && has_times(newest.records)};
  pt::SynthesisOptions options;
  options.newest_instructions = instructions_for(settings);
  options.newest_code = true;
  // LLDB repeats an instruction at each PSB that comes while tracing is on.
  options.pause_at_psb = true;
  options.psb_period_bytes =
      settings.psb_period ? 1ull << (*settings.psb_period + kPsbPeriodShift) : kPsbPeriod_bytes;
  if (made.has_times) options.timing = pt::SynthesisTiming::kTsc;
  auto bytes = pt::synthesize(newest.records, *newest.code, newest.first_epoch, options);
  if (!bytes) return fail(std::move(bytes.error()));
  made.bytes.assign(bytes->begin(), bytes->end());
  return &made_.insert_or_assign(thread.id, std::move(made)).first->second;
}

Result<std::string> LldbTrace::data(std::string_view json) {
  auto wanted = parse_lldb_trace_data(json);
  if (!wanted) return fail(std::move(wanted.error()));
  if (wanted->kind == kProcessorKind) return std::string(kProcessor);
  if (wanted->kind != kTraceKind || !wanted->thread)
    return refuse(fmt::format("There is no data of kind `{}`", wanted->kind.substr(0, 40)));
  for (const auto& [id, made] : made_)
    if (id.tid == *wanted->thread) return made.bytes;
  return refuse(fmt::format("Thread {} not currently traced", *wanted->thread));
}

}  // namespace tailtrace
