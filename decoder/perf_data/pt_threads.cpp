// The part of PerfRecording that decodes Intel PT.
#include <algorithm>

#include "decoder/history/pt_segments.h"
#include "decoder/perf_data/recording.h"

namespace tailtrace::perf {

// A trace in one run that met one version of the code is read segment by segment, when it is asked
// for; any other is decoded now.
Result<void> PerfRecording::open_pt_by_thread(const Thread& thread, std::uint64_t limit,
                                              OpenedThread& opened) const {
  const RecordedPrograms::Program& program = programs_.of(thread.thread.pid);
  const bool is_timed = clock_.has_value();
  const std::vector<const AuxQueue*>& queues = queues_of_threads_.at(thread.thread.tid);
  pt::DecoderConfig config = decoder_config();
  if (!is_timed) config.first_epoch = program.image->newest();
  opened.frame.first_epoch = config.first_epoch;
  const std::vector<AuxRun>& first = queues.front()->runs;
  opened.frame.complete = !is_snapshot() && first.front().offset_bytes == 0;
  if (queues.size() == 1 && first.size() == 1 && (program.begins.empty() || !is_timed)) {
    auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>(data_.owners);
    owners->insert(owners->end(), queues.front()->owners.begin(), queues.front()->owners.end());
    PtSegmentsOptions options;
    options.clock = clock_;
    opened.source = std::make_shared<PtSegments>(owners, first.front().bytes, program.image,
                                                 std::move(config), std::move(options));
    return {};
  }
  pt::Tail tail(limit, is_timed ? program.begins : std::vector<pt::EpochBegin>(),
                config.first_epoch);
  if (is_timed) config.code_changes = pt::code_changes(program.begins);
  auto decoder = pt::make_flow_decoder(*program.image, config);
  for (const AuxQueue* queue : queues)
    for (const AuxRun& run : queue->runs) {
      if (run.lost_before != 0) tail.lost(pt::cause_of_hole(run.lost_before));
      decoder->decode(run.bytes, tail);
    }
  put_tail(opened, tail, limit);
  return {};
}

void PerfRecording::put_tail(OpenedThread& opened, pt::Tail& tail, std::uint64_t limit) const {
  ThreadSnapshot snapshot;
  snapshot.records = tail.records();
  opened.frame.first_epoch = tail.first_epoch();
  opened.frame.first = {tail.forgotten()};
  opened.frame.complete = opened.frame.complete && tail.forgotten() == 0;
  for (const BranchRecord& record : tail.ending()) snapshot.records.push_back(record);
  for (BranchRecord& record : snapshot.records)
    if (clock_ && record.time != 0) record.time = clock_->to_ns(record.time);
  put_records(opened, std::move(snapshot), limit);
}

pt::CpuTrace PerfRecording::decode_cpu(const AuxQueue& queue, std::size_t most_records,
                                       const pt::JoinedCode& code,
                                       const pt::ProgramCodes& programs) const {
  pt::CpuTrace traced;
  traced.log = pt::StretchLog(most_records);
  auto slots = slots_.find(queue.cpu);
  if (slots != slots_.end())
    traced.slots = slots->second;
  else if (threads_.size() == 1)
    traced.slots.slots.push_back({threads_.front().thread, 0, ~0ull});
  pt::DecoderConfig config = decoder_config();
  config.code_changes =
      pt::slot_changes(code, programs, programs.begin()->first, traced.slots, *clock_);
  auto decoder = pt::make_flow_decoder(code.image, config);
  for (const AuxRun& run : queue.runs) {
    if (run.lost_before != 0) traced.log.event(pt::hole_event(run.lost_before));
    decoder->decode(run.bytes, traced.log);
  }
  traced.log.finish();
  const auto& stretches = traced.log.stretches();
  const bool is_whole =
      !is_snapshot() && queue.runs.front().offset_bytes == 0 && !traced.log.forgot();
  auto timed = std::find_if(stretches.begin(), stretches.end(),
                            [](const pt::StretchLog::Stretch& s) { return s.time != 0; });
  if (!is_whole) traced.begin_ns = timed == stretches.end() ? ~0ull : clock_->to_ns(timed->time);
  return traced;
}

void PerfRecording::decode_cpus() const {
  pt::ProgramCodes programs;
  for (const Thread& thread : threads_) {
    const RecordedPrograms::Program& program = programs_.of(thread.thread.pid);
    programs[thread.thread.pid] = {program.image.get(), program.begins};
  }
  const pt::JoinedCode code = pt::join_codes(programs);
  const std::size_t most_records =
      std::min<std::size_t>(pt::StretchLog::kMostRecords, kMostRecords / queues_of_cpus_.size());
  cpus_.reserve(queues_of_cpus_.size());
  for (const auto& [cpu, queue] : queues_of_cpus_)
    cpus_.push_back(decode_cpu(*queue, most_records, code, programs));
  pieces_ = pt::pieces_by_thread(cpus_, *clock_);
}

Result<void> PerfRecording::open_pt_by_cpu(const Thread& thread, std::uint64_t limit,
                                           OpenedThread& opened) const {
  if (!clock_)
    return fail(ErrorCode::kBadInput,
                "cannot tell what of the trace in " + data_.name + " is of which thread",
                "it is kept by CPU, and the kernel's clock is not the processor's counter there",
                "record with `perf record --per-thread`");
  std::call_once(cpus_decoded_, [this] { decode_cpus(); });
  const RecordedPrograms::Program& program = programs_.of(thread.thread.pid);
  pt::Tail tail(limit, program.begins);
  auto pieces = pieces_.find(thread.thread);
  opened.frame.complete = pieces == pieces_.end() ? false : pt::play_pieces(pieces->second, tail);
  put_tail(opened, tail, limit);
  return {};
}

}  // namespace tailtrace::perf
