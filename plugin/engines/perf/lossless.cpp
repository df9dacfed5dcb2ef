#include "plugin/engines/perf/lossless.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "decoder/base/file.h"
#include "decoder/bts/branch_list.h"
#include "decoder/pt/tail.h"
#include "plugin/engines/perf/branch_events.h"
#include "plugin/engines/perf/pt_settings.h"

namespace tailtrace::perf {
namespace {

// AUX records, of which one comes for each time on a CPU and each quarter of the buffer.
constexpr std::uint64_t kAuxRing_bytes = 64u << 10;

Result<perf_event_attr> area_attr(Kernel& kernel, Hardware hardware, const PerfConfig& config,
                                  ThreadId thread, std::uint64_t size) {
  const char* name = hardware == Hardware::kPt ? "intel_pt" : "intel_bts";
  const Purpose purpose = hardware == Hardware::kPt ? Purpose::kPt : Purpose::kBtsArea;
  auto pmu = read_pmu(kernel.root(), name);
  if (!pmu) return fail(explain(kernel, {purpose, Step::kOpen, ENOENT, {thread.tid, -1}}));
  auto attr = hardware == Hardware::kPt ? pt_attr(*pmu, config, size)
                                        : Result<perf_event_attr>(plain_attr(pmu->type, 0));
  if (!attr) return attr;
  attr->aux_watermark = static_cast<__u32>(size / 4);
  return attr;
}

}  // namespace

Lossless::Lossless(Event event, Hardware hardware, ThreadId thread, std::string path, UniqueFd file)
    : event_(std::move(event)),
      hardware_(hardware),
      thread_(thread),
      path_(std::move(path)),
      file_(std::move(file)) {
  progress_.buffer_bytes = event_.aux().size();
}

Result<Lossless> Lossless::start(Kernel& kernel, Hardware hardware, const PerfConfig& config,
                                 ThreadId thread, const std::string& path) {
  if (hardware == Hardware::kLbr)
    return fail(ErrorCode::kUsage, "cannot record last branch records without loss",
                "they are a short tail, taken now and then", "--engine=pt or bts");
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return fail(system_error("cannot make " + path));
  const std::uint64_t size = drained_buffer_for(config);
  auto attr = area_attr(kernel, hardware, config, thread, size);
  if (!attr) return fail(std::move(attr.error()));
  attr->disabled = 1;
  const Purpose purpose = hardware == Hardware::kPt ? Purpose::kPt : Purpose::kBtsArea;
  auto event = Event::open(kernel, purpose, *attr, {thread.tid, -1});
  if (!event) return fail(std::move(event.error()));
  if (auto ok = event->map_ring(kAuxRing_bytes, Event::WhenFull::kStop); !ok)
    return fail(std::move(ok.error()));
  if (auto got = event->map_aux(size, Event::WhenFull::kStop); !got)
    return fail(std::move(got.error()));
  Lossless lossless(std::move(*event), hardware, thread, path, std::move(file));
  lossless.code_ = std::make_unique<ProcessCode>(thread.pid);
  lossless.start_ = pc_of(kernel.root(), thread);
  if (hardware == Hardware::kPt)
    lossless.decoder_ = pt_decoder_config(read_machine(kernel.root()).cpu,
                                          *read_pmu(kernel.root(), "intel_pt"), config);
  if (auto ok = lossless.reconfigure(config); !ok) return fail(std::move(ok.error()));
  return lossless;
}

// The code is looked at: the library may be gone at the end.
Result<void> Lossless::reconfigure(const PerfConfig& config) {
  (void)code_->update().has_value();
  auto anything = set_filters(event_, config);
  if (!anything) return fail(std::move(anything.error()));
  return *anything ? event_.enable() : Result<void>();
}

Result<void> Lossless::wait(int timeout_ms) {
  pollfd waited{event_.fd(), POLLIN, 0};
  if (::poll(&waited, 1, timeout_ms) < 0 && errno != EINTR)
    return fail(system_error("cannot wait for trace data"));
  return {};
}

// A kernel that goes on with a full buffer says so whenever the thread is on a CPU again: what has
// nothing recorded in between is one hole.
void Lossless::put_hole(std::uint64_t offset, std::uint64_t flags) {
  if (!holes_.empty() && holes_.back().offset_bytes == offset) {
    holes_.back().flags |= flags;
    return;
  }
  holes_.push_back({offset, flags});
  ++progress_.holes;
}

// What the kernel does not tell of in a record is no trace: the driver of BTS skips a few bytes
// from one piece of its memory to the next.
Result<void> Lossless::take_stretches() {
  constexpr std::uint64_t kHoles = kAuxTruncated | kAuxPartial | kAuxCollision;
  const std::uint64_t head = event_.data_head();
  auto records = read_forward_ring(event_.ring(), ring_tail_, head);
  if (!records) return fail(std::move(records.error()));
  for (std::size_t i = 0; i < records->size(); ++i) {
    auto record = parse_record((*records)[i], RecordFormat{});
    if (!record) return fail(std::move(record.error()));
    if (std::holds_alternative<LostEvent>(record->body))
      put_hole(progress_.written_bytes, kAuxTruncated);
    const auto* aux = std::get_if<AuxEvent>(&record->body);
    if (aux == nullptr) continue;
    auto stretch =
        unread_aux_area(event_.aux(), aux->offset_bytes, aux->offset_bytes + aux->size_bytes);
    if (!stretch) return fail(std::move(stretch.error()));
    if (auto ok = write(*stretch); !ok) return ok;
    aux_tail_ = aux->offset_bytes + aux->size_bytes;
    if ((aux->flags & kHoles) != 0) put_hole(progress_.written_bytes, aux->flags & kHoles);
    cut_ = cut_ || (aux->flags & kAuxTruncated) != 0;
  }
  ring_tail_ = head;
  event_.set_data_tail(head);
  return {};
}

Result<void> Lossless::write(const AuxView& stretch) {
  progress_.written_bytes += stretch.size_bytes();
  if (auto ok = write_all(file_.get(), stretch.older, path_); !ok) return ok;
  return write_all(file_.get(), stretch.newer, path_);
}

Result<void> Lossless::take_area() {
  const std::uint64_t unread_bytes = event_.aux_head() - aux_tail_;
  progress_.fullest_bytes = std::max(progress_.fullest_bytes, unread_bytes);
  if (auto ok = take_stretches(); !ok) return ok;
  event_.set_aux_tail(aux_tail_);
  if (event_.aux().size() - std::min(event_.aux().size(), unread_bytes) > least_room()) return {};
  put_hole(progress_.written_bytes, kAuxTruncated);
  cut_ = true;
  return {};
}

// With no more room than this the kernel switches the event off when the thread comes back to a
// CPU, and says nothing (perf_aux_output_begin() in kernel/events/ring_buffer.c, where a buffer is
// full with one byte free; a driver that needs more for a record gives up as silently). Nobody can
// tell whether the thread came back: it is told as if it had.
std::uint64_t Lossless::least_room() const {
  return hardware_ == Hardware::kBts ? kBtsRecordSize_bytes : 1;
}

Result<std::uint64_t> Lossless::drain() {
  const std::uint64_t before = progress_.written_bytes;
  if (auto ok = take_area(); !ok) return fail(std::move(ok.error()));
  // There is room again; the kernel does not go on by itself, or not before the thread comes back
  // to a CPU. Should it have gone on, what it does meanwhile is in the hole.
  if (std::exchange(cut_, false)) {
    if (auto ok = event_.disable(); !ok) return fail(std::move(ok.error()));
    if (auto ok = take_area(); !ok) return fail(std::move(ok.error()));
    put_hole(progress_.written_bytes, kAuxTruncated);
    cut_ = false;
    if (auto ok = event_.enable(); !ok) return fail(std::move(ok.error()));
  }
  return progress_.written_bytes - before;
}

std::optional<Error> Lossless::backpressure() const {
  const std::string fix =
      fmt::format("a buffer of more than {} KiB, or more processor time for whoever drains it",
                  progress_.buffer_bytes / 1024);
  if (progress_.holes != 0)
    return Error{ErrorCode::kSystem,
                 fmt::format("the trace of thread {} is not whole", thread_.tid),
                 fmt::format("it was cut {} time{}: the buffer of {} KiB was full before it was "
                             "drained, or the hardware failed",
                             progress_.holes, progress_.holes == 1 ? "" : "s",
                             progress_.buffer_bytes / 1024),
                 fix, "the gaps are in the history"};
  if (progress_.fullest_bytes * 4 > progress_.buffer_bytes * 3)
    return Error{ErrorCode::kSystem,
                 fmt::format("the trace of thread {} is about to be cut", thread_.tid),
                 fmt::format("{} of {} KiB of its buffer were full before they were drained",
                             progress_.fullest_bytes / 1024, progress_.buffer_bytes / 1024),
                 fix, "nothing is lost yet"};
  return std::nullopt;
}

void Lossless::decode_pt(ByteSpan trace, const CodeImage& code, Address pc, std::uint64_t limit,
                         ThreadSnapshot& snapshot) const {
  pt::Tail tail(limit);
  pt::DecoderConfig config = decoder_;
  config.first_epoch = code.newest();
  auto decoder = pt::make_flow_decoder(code, config);
  std::uint64_t begin = 0;
  for (const Hole& hole : holes_) {
    // A cut may go through a packet: each side is decoded by itself.
    std::uint64_t end = std::min<std::uint64_t>(hole.offset_bytes, trace.size());
    decoder->decode(trace.subspan(begin, end - begin), tail);
    tail.lost(pt::cause_of_hole(hole.flags));
    begin = end;
  }
  decoder->decode(trace.subspan(begin), tail);
  snapshot.records = tail.records();
  snapshot.first = {tail.forgotten()};
  for (const BranchRecord& record : tail.closing(pc)) snapshot.records.push_back(record);
  snapshot.complete = tail.forgotten() == 0;
}

void Lossless::decode_bts(ByteSpan records, const CodeImage& code, Address pc, std::uint64_t limit,
                          ThreadSnapshot& snapshot) const {
  CodeReader reader(code);
  reader.set_epoch(code.newest());
  bts::BranchFlow flow(reader);
  if (start_) flow.begin_at(*start_);
  std::uint64_t begin = 0;
  auto add_until = [&](std::uint64_t end) {
    auto list = bts::read_bts_area({{}, records.subspan(begin, end - begin)}, ~0ull);
    for (const bts::Branch& branch : list.branches) flow.add(branch);
    flow.keep(limit);
    begin = end;
  };
  for (const Hole& hole : holes_) {
    add_until(std::min<std::uint64_t>(hole.offset_bytes, records.size()));
    flow.lost(pt::cause_of_hole(hole.flags));
  }
  add_until(records.size());
  std::vector<BranchRecord> closing = flow.closing(pc);
  snapshot.records = flow.records();
  snapshot.records.insert(snapshot.records.end(), closing.begin(), closing.end());
  snapshot.first = {flow.first()};
  snapshot.complete = flow.complete() && start_.has_value();
}

Result<ThreadSnapshot> Lossless::snapshot(Address pc, std::uint64_t limit) {
  (void)code_->update().has_value();  // of a process that is gone, as it was seen last
  // All that was recorded shows when the event is off; what is cut then is not the buffer's fault.
  {
    Quiet quiet(event_);
    if (auto drained = drain(); !drained) return fail(std::move(drained.error()));
  }
  ThreadSnapshot snapshot;
  snapshot.thread = thread_;
  snapshot.engine = hardware_ == Hardware::kPt ? "pt" : "bts";
  snapshot.code = code_->image();
  snapshot.former_maps = code_->former_maps();
  snapshot.first_epoch = snapshot.code->newest();
  std::optional<MappedFile> file;
  if (progress_.written_bytes != 0) {
    auto opened = MappedFile::open(path_);
    if (!opened) return fail(std::move(opened.error()));
    file.emplace(std::move(*opened));
  }
  const ByteSpan trace = file ? file->bytes() : ByteSpan();
  const std::uint64_t most = std::min<std::uint64_t>(limit, ~0ull >> 2);
  if (hardware_ == Hardware::kPt)
    decode_pt(trace, *snapshot.code, pc, most, snapshot);
  else
    decode_bts(trace, *snapshot.code, pc, most, snapshot);
  return snapshot;
}

}  // namespace tailtrace::perf
