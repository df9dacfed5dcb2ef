#include "plugin/server/gdb/trace_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "decoder/pt/synthesis/synthesis.h"
#include "plugin/server/below/program_type.h"
#include "plugin/server/gdb/btrace_documents.h"
#include "plugin/server/gdb/non_stop.h"

namespace tailtrace {
namespace {

constexpr std::string_view kOperation = "Qbtrace:", kSetting = "Qbtrace-conf:";
constexpr std::uint64_t kBtsRecord_bytes = 24;   // of the processor's own buffer
constexpr std::uint64_t kInsnsPerBtsRecord = 5;  // on average
constexpr std::uint64_t kInsnsPerPtByte = 5;     // the same: the manual's example has 5.2
constexpr std::uint64_t kMaxRingRecords = 1 << 22;

// Our own failures, in a form that the debugger shows to its user.
std::string error_answer(const Error& error) { return "E." + error.to_line(); }

bool ran_nothing(const ThreadSnapshot& snapshot) {
  return std::all_of(snapshot.records.begin(), snapshot.records.end(), [](const BranchRecord& r) {
    return r.insns == 0 && r.kind >= RecordKind::kEnable;
  });
}

}  // namespace

void TraceService::announce(rsp::FeatureList& features) {
  features.remove_all("Qbtrace");  // newer gdbservers have settings that are not known here
  for (std::string_view name :
       {"Qbtrace:bts", "Qbtrace:pt", "Qbtrace:off", "Qbtrace-conf:bts:size", "Qbtrace-conf:pt:size",
        "qXfer:btrace:read", "qXfer:btrace-conf:read"})
    features.set(name, "+");
}

Result<std::optional<std::string>> TraceService::answer(std::string_view packet) {
  Result<std::string> answer;
  if (packet.starts_with(kOperation)) {
    answer = operate(packet.substr(kOperation.size()));
  } else if (packet.starts_with(kSetting)) {
    answer = configure(packet.substr(kSetting.size()));
  } else if (auto request = rsp::parse_transfer_read(packet); request) {
    if (request->object == "btrace")
      answer = read(*request);
    else if (request->object == "btrace-conf")
      answer = read_conf(*request);
    else
      return std::optional<std::string>();
  } else {
    return std::optional<std::string>();
  }
  if (answer) return std::optional<std::string>(std::move(*answer));
  if (answer.error().code == ErrorCode::kGone) return fail(std::move(answer.error()));
  return std::optional<std::string>(error_answer(answer.error()));
}

Result<std::string> TraceService::operate(std::string_view operation) {
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  if (!*thread) return "E.Must select a single thread.";
  // Under qemu a thread may end behind the stop at which the debugger was told of it, which then
  // means it with all others: for an error it would record none of them.
  if (below_.debugger_thread_vanished()) return "OK";
  if (operation == "bts") return enable(**thread, BtraceFormat::kBts);
  if (operation == "pt") return enable(**thread, BtraceFormat::kPt);
  if (operation == "off") return disable(**thread);
  return "E.Bad Qbtrace operation.  Use bts, pt, or off.";
}

Result<std::string> TraceService::enable(ThreadId id, BtraceFormat format) {
  RecordedThread* known = recorder_.find(id);
  if (known != nullptr && known->enabled) return "E.Btrace already enabled.";
  if (auto ok = check_program(id.pid); !ok) return error_answer(ok.error());
  std::uint64_t wanted = format == BtraceFormat::kBts
                             ? bts_size_bytes_ / kBtsRecord_bytes
                             : pt_size_bytes_ * kInsnsPerPtByte / kInsnsPerBtsRecord;
  recorder_.set_ring_records(
      std::max(options_.ring_records,
               std::min(std::bit_ceil(std::max<std::uint64_t>(wanted, 1)), kMaxRingRecords)));
  bool runs = known == nullptr && catch_running_ && is_running(id);
  auto thread = runs ? recorder_.start_running(id) : recorder_.start(id);
  if (!thread) return error_answer(thread.error());
  RecordedThread& t = **thread;
  if (runs) {
    if (auto caught = catch_running_(id); !caught) return fail(std::move(caught.error()));
  } else if (known == nullptr && !options_.since_start && !t.begun_before_enabled) {
    auto mark = recorder_.mark(t);
    if (!mark) return error_answer(mark.error());
    t.begin = *mark;
  }
  t.enabled = format;
  t.buffer_size_bytes = format == BtraceFormat::kBts ? bts_size_bytes_ : pt_size_bytes_;
  t.begun_before_enabled |= options_.since_start;
  return "OK";
}

Result<std::string> TraceService::disable(ThreadId id) {
  RecordedThread* thread = recorder_.find(id);
  if (thread == nullptr || !thread->enabled) return "E.Branch tracing not enabled.";
  if (auto stopped = recorder_.stop(id); !stopped) return error_answer(stopped.error());
  return "OK";
}

// `bts:size=0xN` or `pt:size=0xN`
std::string TraceService::configure(std::string_view setting) {
  static constexpr std::string_view kPrefix = "0x";
  std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return "E.Bad Qbtrace configuration option.";
  std::string_view name = setting.substr(0, equals), value = setting.substr(equals + 1);
  if (name != "bts:size" && name != "pt:size") return "E.Bad Qbtrace configuration option.";
  if (value.starts_with(kPrefix)) value.remove_prefix(kPrefix.size());
  auto size = parse_hex(value);
  if (!size || *size > 0xffffffff) return "E.Bad size value.";
  (name == "bts:size" ? bts_size_bytes_ : pt_size_bytes_) = btrace_buffer_size(*size);
  return "OK";
}

Result<std::string> TraceService::answer_for_selected(
    const std::function<Result<std::string>(RecordedThread&)>& answer) {
  auto id = below_.debugger_thread();
  if (!id) return fail(std::move(id.error()));
  if (!*id) return "E.Must select a single thread.";
  if (below_.debugger_thread_vanished()) return "E.No such thread.";
  RecordedThread* thread = recorder_.find(**id);
  if (thread == nullptr || !thread->enabled) return "E.Btrace not enabled.";
  return answer(*thread);
}

Result<std::string> TraceService::read_conf(const rsp::TransferRequest& request) {
  if (!request.annex.empty()) return "E.Bad annex.";
  return answer_for_selected([&](const RecordedThread& thread) {
    return rsp::transfer_answer(conf_document(*thread.enabled, thread.buffer_size_bytes), request);
  });
}

Result<std::string> TraceService::read(const rsp::TransferRequest& request) {
  if (request.annex != "all" && request.annex != "new" && request.annex != "delta")
    return "E.Bad annex.";
  return answer_for_selected([&](RecordedThread& thread) -> Result<std::string> {
    if (request.offset == 0) {
      auto document = make_document(thread, request.annex);
      if (!document || document->starts_with("E.")) return document;
      document_ = std::move(*document);
    }
    return rsp::transfer_answer(document_, request);
  });
}

// The document, or an answer that begins with "E.".
Result<std::string> TraceService::make_document(RecordedThread& thread, std::string_view annex) {
  auto newest = recorder_.newest(thread, handover(thread));
  if (!newest) return fail(std::move(newest.error()));
  HistoryMark now = end_mark(*newest);
  bool unchanged = thread.last_read && *thread.last_read == now;
  Result<std::string> document = std::string();
  if (*thread.enabled == BtraceFormat::kBts)
    document =
        annex == "new" && unchanged ? bts_document({}) : bts(thread, std::move(*newest), annex);
  else
    document =
        annex == "new" && unchanged ? pt_document({}) : pt(thread, std::move(*newest), annex);
  if (document && !document->starts_with("E.")) thread.last_read = now;
  return document;
}

Result<std::string> TraceService::bts(RecordedThread& thread, ThreadSnapshot newest,
                                      std::string_view annex) const {
  if (annex != "delta") {
    ThreadSnapshot shown = since(of_this_program(std::move(newest)), thread.begin);
    shown = newest_instructions(std::move(shown), handover(thread));
    return bts_document(bts_blocks(recorder_.with_code_in_memory(std::move(shown))));
  }
  // The debugger begins with the pc that it saw when it switched recording on.
  if (!thread.last_read && thread.begun_before_enabled) return "E.Overflow.";
  HistoryMark mark = thread.last_read.value_or(thread.begin);
  // Overwritten, or more than the debugger is given at once: it asks for all, and gets the newest.
  if (newest.first > mark.head) return "E.Overflow.";
  newest = recorder_.with_code_in_memory(since(std::move(newest), mark));
  std::vector<BtsBlock> blocks = bts_blocks(newest);
  // The first block must go straight on from where the debugger's last one ended.
  if (blocks.empty() || blocks.front().begin != mark.pc || blocks.front().end < mark.pc)
    return "E.Overflow.";
  blocks.front().begin = {};
  return bts_document(blocks);
}

Result<std::string> TraceService::pt(RecordedThread& thread, ThreadSnapshot newest,
                                     std::string_view annex) const {
  if (annex == "delta") return "E.Generic Error.";
  ThreadSnapshot shown = since(of_this_program(std::move(newest)), thread.begin);
  if (ran_nothing(shown)) return pt_document({});
  shown = recorder_.with_code_in_memory(std::move(shown));
  pt::SynthesisOptions options;
  options.newest_instructions = handover(thread);
  options.newest_code = true;
  auto bytes = pt::synthesize(shown.records, *shown.code, shown.first_epoch, options);
  if (!bytes) return error_answer(bytes.error());
  return pt_document(*bytes);
}

std::uint64_t TraceService::handover(const RecordedThread& thread) const {
  const bool is_bts = *thread.enabled == BtraceFormat::kBts;
  const std::uint64_t most =
      is_bts ? options_.handover_instructions_bts : options_.handover_instructions_pt;
  if (options_.handover_is_said) return most;
  return std::max(most, is_bts ? thread.buffer_size_bytes / kBtsRecord_bytes * kInsnsPerBtsRecord
                               : thread.buffer_size_bytes * kInsnsPerPtByte);
}

}  // namespace tailtrace
