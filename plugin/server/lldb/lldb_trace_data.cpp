// What LLDB is given of a trace: its state, the bytes of threads, and those of processors.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/pt/synthesis/synthesis.h"
#include "plugin/server/lldb/lldb_switches.h"
#include "plugin/server/lldb/lldb_trace.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kInsnsPerPtByte = 5;  // on average
// A decoder loses what is left of a stretch between two PSBs when it finds an error in it.
// And whoever wants to see its end decodes one of them at least.
constexpr std::uint64_t kPsbPeriod_bytes = 16 << 10;
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
constexpr const char* kSwitchKind = "perfContextSwitchTrace";
constexpr const char* kProcessorKind = "procfsCpuInfo";

OrderedJson part(const char* kind, std::size_t size_bytes) {
  return {{"kind", kind}, {"size", size_bytes}};
}

}  // namespace

Result<std::string> LldbTrace::state(std::string_view json) {
  if (auto ok = parse_lldb_trace_state(json); !ok) return fail(std::move(ok.error()));
  auto known = threads();
  if (!known) return fail(std::move(known.error()));
  std::vector<std::string> warnings;
  if (auto met = meet_new_threads(*known, warnings); !met) return fail(std::move(met.error()));
  bool per_cpu = process_ && process_->per_cpu, times = per_cpu;
  std::vector<std::pair<ThreadId, Traced*>> shown;
  for (ThreadId id : *known) {
    auto traced = traced_.find(id);
    if (!is_traced(id) || traced == traced_.end()) continue;
    auto made = make(*recorder_.find(id), traced->second);
    if (!made) return fail(std::move(made.error()));
    times |= (*made)->has_times;
    shown.emplace_back(id, &traced->second);
  }
  OrderedJson state = {
      {"tracedThreads", OrderedJson::array()},
      {"processBinaryData", OrderedJson::array({part(kProcessorKind, kProcessor.size())})},
      // Not in LLDB's document, and yet it does without the whole state without it.
      {"usingCgroupFiltering", false}};
  perf::TimeConversion conversion;
  if (times) {
    conversion = clock_.conversion();
    state["tscPerfZeroConversion"] = {{"timeMult", conversion.mult},
                                      {"timeShift", conversion.shift},
                                      {"timeZero", conversion.zero_ns}};
  }
  for (auto [id, traced] : shown) {
    OrderedJson trace = part(kTraceKind, traced->made->bytes.size());
    state["tracedThreads"].push_back(
        {{"tid", id.tid},
         {"binaryData", per_cpu ? OrderedJson::array() : OrderedJson::array({trace})}});
    if (!per_cpu) continue;
    traced->switches = lldb_switches(id, traced->made->oldest, traced->made->newest, conversion);
    state["cpus"].push_back(
        {{"id", traced->cpu},
         {"binaryData", OrderedJson::array({trace, part(kSwitchKind, traced->switches.size())})}});
  }
  if (!warnings.empty()) state["warnings"] = warnings;
  return state.dump();
}

std::uint64_t LldbTrace::instructions_for(const Settings& settings) const {
  const std::uint64_t most = options_.handover_instructions_lldb;
  if (options_.handover_is_said) return most;
  return std::max(most, settings.trace_size_bytes * kInsnsPerPtByte);
}

// The bytes of a thread as it stands.
Result<const LldbTrace::Made*> LldbTrace::make(RecordedThread& thread, Traced& traced) {
  auto found = recorder_.newest(thread, instructions_for(traced.settings));
  if (!found) return fail(std::move(found.error()));
  HistoryMark end = end_mark(*found);
  if (traced.made && traced.made->end == end) return &*traced.made;
  ThreadSnapshot newest = since(std::move(*found), thread.begin);
  insert_pauses(newest, thread.begin, traced.pauses);
  newest = recorder_.with_code_in_memory(of_this_program(std::move(newest)));
  std::vector<BranchRecord>& records = newest.records;
  Made made{end, {}, false, 0, 0};
  if (recorder_.engine().can_mark_stops()) {
    if (records.front().kind == RecordKind::kEnable && records.front().time == 0)
      records.front().time = traced.since;
    if (records.back().time == 0) records.back().time = stopped_at_;
  }
  for (const BranchRecord& record : records) {
    if (record.time == 0) continue;
    if (made.oldest == 0) made.oldest = record.time;
    made.newest = std::max(made.newest, record.time);
  }
  made.has_times = traced.settings.times && made.oldest != 0;
  pt::SynthesisOptions options;
  options.newest_instructions = instructions_for(traced.settings);
  options.newest_code = true;
  // LLDB repeats an instruction at each PSB that comes while tracing is on.
  options.pause_at_psb = true;
  options.psb_period_bytes = traced.settings.psb_period
                                 ? 1ull << (*traced.settings.psb_period + kPsbPeriodShift)
                                 : kPsbPeriod_bytes;
  if (made.has_times) options.timing = pt::SynthesisTiming::kTsc;
  auto bytes = pt::synthesize(records, *newest.code, newest.first_epoch, options);
  if (!bytes) return fail(std::move(bytes.error()));
  made.bytes.assign(bytes->begin(), bytes->end());
  traced.made = std::move(made);
  return &*traced.made;
}

Result<std::string> LldbTrace::data(std::string_view json) {
  auto wanted = parse_lldb_trace_data(json);
  if (!wanted) return fail(std::move(wanted.error()));
  if (wanted->kind == kProcessorKind) return std::string(kProcessor);
  bool per_cpu = process_ && process_->per_cpu;
  bool switches = wanted->kind == kSwitchKind && per_cpu && wanted->cpu;
  if (!switches && (wanted->kind != kTraceKind || (!wanted->thread && !(per_cpu && wanted->cpu))))
    return refuse(fmt::format("There is no data of kind `{}`", wanted->kind.substr(0, 40)));
  for (const auto& [id, traced] : traced_) {
    bool meant = wanted->thread ? id.tid == *wanted->thread : traced.cpu == *wanted->cpu;
    if (meant && traced.made) return switches ? traced.switches : traced.made->bytes;
  }
  return refuse(wanted->thread ? fmt::format("Thread {} not currently traced", *wanted->thread)
                               : fmt::format("CPU {} not currently traced", *wanted->cpu));
}

}  // namespace tailtrace
