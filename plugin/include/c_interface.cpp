// The C interface of libtailtrace over the provider. Nothing of C++ passes through it: exceptions
// of the standard library become errors.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "decoder/history/history.h"
#include "plugin/engines/perf/lossless.h"
#include "plugin/engines/perf/marker_set.h"
#include "plugin/engines/perf/process_recording.h"
#include "plugin/engines/perf/pt_settings.h"
#include "plugin/engines/tasks.h"
#include "plugin/include/tailtrace/tailtrace.h"
#include "plugin/provider/trace_provider.h"

using namespace tailtrace;

struct tt_error {
  Error error;
};

// What a snapshot of a whole process found.
using Threads = std::vector<std::shared_ptr<const ThreadSnapshot>>;

struct tt_provider {
  TraceProvider provider;
  std::deque<Error> remarks = {};
  Threads threads = {};  // of the last snapshot of a process
};

struct tt_snapshot {
  tt_snapshot(std::shared_ptr<const ThreadSnapshot> taken, std::string thread_name)
      : snapshot(taken), name(std::move(thread_name)), history(std::move(taken)), cursor(history) {}

  std::shared_ptr<const ThreadSnapshot> snapshot;
  std::string name;
  History history;
  HistoryCursor cursor;
};

struct tt_process {
  perf::ProcessRecording recording;
  Threads threads = {};  // of the last snapshot
};

struct tt_lossless {
  perf::Lossless recording;
  ThreadId thread;
};

struct tt_watch {
  perf::MarkerSet markers;
  perf::MarkerLog last = {};
  std::deque<Error> remarks = {};
};

struct tt_alarm {
  perf::Alarm alarm;
  std::vector<perf::MarkerHit> last = {};
};

static_assert(sizeof(tt_record) == sizeof(BranchRecord));
static_assert(offsetof(tt_record, insns) == offsetof(BranchRecord, insns));
static_assert(offsetof(tt_record, extra) == offsetof(BranchRecord, extra));

namespace {

void store(tt_error** to, Error error) noexcept {
  if (to != nullptr) *to = new (std::nothrow) tt_error{std::move(error)};
}

// Runs what may fail; `failed` is returned then.
template <class T, class Call>
T guarded(tt_error** error, T failed, Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& caught) {
    store(error, Error{ErrorCode::kSystem, "libtailtrace failed", caught.what(), {}, {}});
    return failed;
  }
}

int answer(Result<void> result, tt_error** error) {
  if (result) return 0;
  store(error, std::move(result.error()));
  return -1;
}

// What the caller knows of a structure, the rest as it is by default.
template <class Structure>
Structure known_part(const Structure* given) {
  Structure known{};
  if (given != nullptr) std::memcpy(&known, given, std::min(sizeof known, given->size_bytes));
  return known;
}

Result<perf::BreakpointSpec> spec_of(const tt_place& given) {
  const tt_place place = known_part(&given);
  const bool is_known = place.on >= TT_EXECUTE && place.on <= TT_ACCESS &&
                        (place.action == TT_LOG || place.action == TT_STOP);
  const bool fits = place.on == TT_EXECUTE || (place.width >= 1 && place.width <= 8);
  if (!is_known || !fits)
    return fail(ErrorCode::kUsage, "cannot watch a place",
                "its `on`, `action` or `width` is none of those that there are");
  perf::BreakpointSpec spec;
  spec.address = {place.address};
  spec.on = static_cast<perf::BreakOn>(place.on);
  if (place.on != TT_EXECUTE) spec.size_bytes = static_cast<std::uint8_t>(place.width);
  spec.stop = place.action == TT_STOP;
  spec.pinned = place.flexible == 0;
  spec.registers = place.registers;
  if (place.name != nullptr) spec.name = place.name;
  return spec;
}
static_assert(static_cast<int>(perf::BreakOn::kWrite) == TT_WRITE &&
              static_cast<int>(perf::BreakOn::kAccess) == TT_ACCESS);

Result<perf::PerfConfig> config_of(const tt_options& options) {
  perf::PerfConfig config;
  config.buffer_bytes = options.buffer_bytes;
  if (options.records != 0) config.records.ring_records = options.records;
  if (options.resume_at != 0) config.resume_at = Address{options.resume_at};
  if (options.pause_at != 0) config.pause_at = Address{options.pause_at};
  config.kernel = options.kernel != 0;
  if (options.settings != nullptr)
    if (auto ok = perf::apply_pt_settings(options.settings, config); !ok)
      return fail(std::move(ok.error()));
  if (options.filters != nullptr && *options.filters != 0) config.filters = {options.filters};
  for (std::size_t i = 0; i < options.place_count; ++i) {
    auto spec = spec_of(options.places[i]);
    if (!spec) return fail(std::move(spec.error()));
    config.markers.push_back(std::move(*spec));
  }
  return config;
}

struct Wanted {
  std::optional<perf::Hardware> hardware;
  perf::PerfConfig config;
};

Result<Wanted> wanted_of(const tt_options* options) {
  const tt_options known = known_part(options);
  auto hardware = parse_hardware(known.hardware == nullptr ? "auto" : known.hardware);
  if (!hardware) return fail(std::move(hardware.error()));
  auto config = config_of(known);
  if (!config) return fail(std::move(config.error()));
  return Wanted{*hardware, std::move(*config)};
}

int fill_in(const std::vector<perf::MarkerHit>& hits, size_t index, tt_hit* hit) {
  if (index >= hits.size()) return -1;
  const perf::MarkerHit& found = hits[index];
  const tt_hit filled{std::min(hit->size_bytes, sizeof(tt_hit)),
                      found.number,
                      found.ip.value,
                      found.time_ns,
                      found.registers.data(),
                      found.registers.size()};
  std::memcpy(hit, &filled, filled.size_bytes);
  return 0;
}

// The first of them, taken; null when there is none.
tt_error* next_of(std::deque<Error>& remarks) {
  if (remarks.empty()) return nullptr;
  auto* next = new tt_error{std::move(remarks.front())};
  remarks.pop_front();
  return next;
}

std::uint64_t limit_of(std::uint64_t limit) { return limit == 0 ? ~0ull : limit; }

// Of a thread that is still there.
tt_snapshot* snapshot_of(std::shared_ptr<const ThreadSnapshot> taken) {
  std::string name = name_of("", taken->thread);
  return new tt_snapshot(std::move(taken), std::move(name));
}

// Keeps what was taken for those who ask for it by index; returns how many there are.
int keep(Result<std::vector<ThreadSnapshot>> taken, Threads& threads, tt_error** error) {
  if (!taken) return answer(fail(std::move(taken.error())), error);
  threads.clear();
  for (ThreadSnapshot& snapshot : *taken)
    threads.push_back(std::make_shared<ThreadSnapshot>(std::move(snapshot)));
  return static_cast<int>(threads.size());
}

}  // namespace

const char* tt_version(void) { return TAILTRACE_VERSION; }

int tt_error_code(const tt_error* error) { return static_cast<int>(error->error.code); }
const char* tt_error_what(const tt_error* error) { return error->error.what.c_str(); }
const char* tt_error_why(const tt_error* error) { return error->error.why.c_str(); }
const char* tt_error_fix(const tt_error* error) { return error->error.fix.c_str(); }
const char* tt_error_now(const tt_error* error) { return error->error.now.c_str(); }
void tt_error_free(tt_error* error) { delete error; }

tt_provider* tt_provider_new(const tt_options* options, tt_error** error) {
  return guarded<tt_provider*>(error, nullptr, [&]() -> tt_provider* {
    auto wanted = wanted_of(options);
    if (!wanted) {
      store(error, std::move(wanted.error()));
      return nullptr;
    }
    return new tt_provider{
        TraceProvider(perf::real_kernel(), wanted->hardware, std::move(wanted->config))};
  });
}

void tt_provider_free(tt_provider* provider) { delete provider; }

int tt_start_thread(tt_provider* provider, int32_t pid, int32_t tid, tt_error** error) {
  return guarded(error, -1, [&] { return answer(provider->provider.start({pid, tid}), error); });
}

int tt_start_process(tt_provider* provider, int32_t pid, tt_error** error) {
  return guarded(error, -1, [&] { return answer(provider->provider.start_process(pid), error); });
}

int tt_stop_thread(tt_provider* provider, int32_t pid, int32_t tid, tt_error** error) {
  return guarded(error, -1, [&] { return answer(provider->provider.stop({pid, tid}), error); });
}

int tt_stop_process(tt_provider* provider, int32_t pid, tt_error** error) {
  return guarded(error, -1, [&] { return answer(provider->provider.stop_process(pid), error); });
}

tt_error* tt_next_remark(tt_provider* provider) {
  return guarded<tt_error*>(nullptr, nullptr, [&]() -> tt_error* {
    for (Error& remark : provider->provider.take_remarks())
      provider->remarks.push_back(std::move(remark));
    return next_of(provider->remarks);
  });
}

tt_snapshot* tt_snapshot_thread(tt_provider* provider, int32_t pid, int32_t tid, uint64_t pc,
                                uint64_t limit, tt_error** error) {
  return guarded<tt_snapshot*>(error, nullptr, [&]() -> tt_snapshot* {
    auto taken = provider->provider.snapshot(
        {pid, tid}, pc == 0 ? std::nullopt : std::optional(Address{pc}), limit_of(limit));
    if (taken) return snapshot_of(std::make_shared<ThreadSnapshot>(std::move(*taken)));
    store(error, std::move(taken.error()));
    return nullptr;
  });
}

int tt_snapshot_process(tt_provider* provider, int32_t pid, uint64_t limit, tt_error** error) {
  return guarded(error, -1, [&] {
    return keep(provider->provider.snapshot_process(pid, limit_of(limit)), provider->threads,
                error);
  });
}

tt_snapshot* tt_provider_thread(tt_provider* provider, size_t index) {
  return guarded<tt_snapshot*>(nullptr, nullptr, [&]() -> tt_snapshot* {
    if (index >= provider->threads.size()) return nullptr;
    return snapshot_of(provider->threads[index]);
  });
}

int32_t tt_snapshot_pid(const tt_snapshot* snapshot) { return snapshot->snapshot->thread.pid; }
int32_t tt_snapshot_tid(const tt_snapshot* snapshot) { return snapshot->snapshot->thread.tid; }
const char* tt_snapshot_name(const tt_snapshot* snapshot) { return snapshot->name.c_str(); }

tt_process* tt_process_record(const tt_options* options, int32_t pid, int children,
                              tt_error** error) {
  return guarded<tt_process*>(error, nullptr, [&]() -> tt_process* {
    auto wanted = wanted_of(options);
    if (!wanted) {
      store(error, std::move(wanted.error()));
      return nullptr;
    }
    auto started = perf::ProcessRecording::start(perf::real_kernel(),
                                                 wanted->hardware.value_or(perf::Hardware::kPt),
                                                 wanted->config, pid, children != 0);
    if (started) return new tt_process{std::move(*started)};
    store(error, std::move(started.error()));
    return nullptr;
  });
}

void tt_process_free(tt_process* process) { delete process; }

int tt_process_snapshot(tt_process* process, uint64_t limit, tt_error** error) {
  return guarded(error, -1, [&] {
    return keep(process->recording.snapshot(limit_of(limit)), process->threads, error);
  });
}

tt_snapshot* tt_process_thread(tt_process* process, size_t index) {
  return guarded<tt_snapshot*>(nullptr, nullptr, [&]() -> tt_snapshot* {
    if (index >= process->threads.size()) return nullptr;
    const auto& taken = process->threads[index];
    return new tt_snapshot(taken, process->recording.name(taken->thread));
  });
}

tt_lossless* tt_lossless_start(const tt_options* options, int32_t pid, int32_t tid,
                               const char* path, tt_error** error) {
  return guarded<tt_lossless*>(error, nullptr, [&]() -> tt_lossless* {
    auto wanted = wanted_of(options);
    if (!wanted) {
      store(error, std::move(wanted.error()));
      return nullptr;
    }
    auto started =
        perf::Lossless::start(perf::real_kernel(), wanted->hardware.value_or(perf::Hardware::kPt),
                              wanted->config, {pid, tid}, path);
    if (started) return new tt_lossless{std::move(*started), {pid, tid}};
    store(error, std::move(started.error()));
    return nullptr;
  });
}

void tt_lossless_free(tt_lossless* lossless) { delete lossless; }

int64_t tt_lossless_drain(tt_lossless* lossless, int timeout_ms, tt_error** error) {
  return guarded<int64_t>(error, -1, [&]() -> int64_t {
    auto waited = lossless->recording.wait(timeout_ms);
    if (!waited) return answer(std::move(waited), error);
    auto drained = lossless->recording.drain();
    if (drained) return static_cast<int64_t>(*drained);
    store(error, std::move(drained.error()));
    return -1;
  });
}

tt_error* tt_lossless_trouble(const tt_lossless* lossless) {
  return guarded<tt_error*>(nullptr, nullptr, [&]() -> tt_error* {
    auto trouble = lossless->recording.backpressure();
    return trouble ? new tt_error{std::move(*trouble)} : nullptr;
  });
}

tt_snapshot* tt_lossless_snapshot(tt_lossless* lossless, uint64_t pc, uint64_t limit,
                                  tt_error** error) {
  return guarded<tt_snapshot*>(error, nullptr, [&]() -> tt_snapshot* {
    Address stop{pc};
    if (pc == 0) stop = perf::pc_of("", lossless->thread).value_or(Address{});
    auto taken = lossless->recording.snapshot(stop, limit_of(limit));
    if (taken) return snapshot_of(std::make_shared<ThreadSnapshot>(std::move(*taken)));
    store(error, std::move(taken.error()));
    return nullptr;
  });
}

tt_watch* tt_watch_new(int32_t tid, uint64_t log_bytes, tt_error** error) {
  return guarded<tt_watch*>(error, nullptr, [&]() -> tt_watch* {
    constexpr uint64_t kUsual_bytes = 1 << 16;
    const uint64_t size = log_bytes == 0 ? kUsual_bytes : log_bytes;
    if (std::has_single_bit(size) && size >= perf::page_size())
      return new tt_watch{perf::MarkerSet(perf::real_kernel(), tid, size)};
    store(error, Error{ErrorCode::kUsage,
                       "cannot log hits",
                       "a log of " + std::to_string(size) + " bytes cannot be made",
                       "a power of two from " + std::to_string(perf::page_size()),
                       {}});
    return nullptr;
  });
}

void tt_watch_free(tt_watch* watch) { delete watch; }

int tt_watch_add(tt_watch* watch, const tt_place* place, tt_error** error) {
  return guarded(error, -1, [&] {
    auto spec = spec_of(*place);
    if (!spec) return answer(fail(std::move(spec.error())), error);
    auto added = watch->markers.add(*spec);
    return added ? static_cast<int>(watch->markers.size()) - 1 : answer(std::move(added), error);
  });
}

int64_t tt_watch_read(tt_watch* watch, int place, uint64_t limit, tt_error** error) {
  return guarded<int64_t>(error, -1, [&]() -> int64_t {
    if (place < 0 || static_cast<std::size_t>(place) >= watch->markers.size())
      return answer(fail(ErrorCode::kUsage, "cannot read hits", "there is no such place"), error);
    auto log = watch->markers.read(static_cast<std::size_t>(place), limit_of(limit));
    if (!log) return answer(fail(std::move(log.error())), error);
    watch->last = std::move(*log);
    return static_cast<int64_t>(watch->last.hits.size());
  });
}

uint64_t tt_watch_count(const tt_watch* watch) { return watch->last.count; }
int tt_watch_hit(const tt_watch* watch, size_t index, tt_hit* hit) {
  return fill_in(watch->last.hits, index, hit);
}

int tt_watch_waits(const tt_watch* watch, int place) {
  if (place < 0 || static_cast<std::size_t>(place) >= watch->markers.size()) return -1;
  return watch->markers.waits(static_cast<std::size_t>(place)) ? 1 : 0;
}

int tt_watch_give_way(tt_watch* watch) {
  return guarded(nullptr, 0, [&] { return watch->markers.give_way() ? 1 : 0; });
}

void tt_watch_retry(tt_watch* watch) {
  guarded(nullptr, 0, [&] { return watch->markers.retry(), 0; });
}

tt_error* tt_watch_remark(tt_watch* watch) {
  return guarded<tt_error*>(nullptr, nullptr, [&] {
    for (Error& remark : watch->markers.take_remarks()) watch->remarks.push_back(std::move(remark));
    return next_of(watch->remarks);
  });
}

tt_alarm* tt_alarm_new(int32_t tid, const tt_place* place, tt_error** error) {
  return guarded<tt_alarm*>(error, nullptr, [&]() -> tt_alarm* {
    auto spec = spec_of(*place);
    auto opened = spec ? perf::Alarm::open(perf::real_kernel(), tid, *spec)
                       : Result<perf::Alarm>(fail(std::move(spec.error())));
    if (opened) return new tt_alarm{std::move(*opened)};
    store(error, std::move(opened.error()));
    return nullptr;
  });
}

void tt_alarm_free(tt_alarm* alarm) { delete alarm; }

int64_t tt_alarm_wait(tt_alarm* alarm, int timeout_ms, tt_error** error) {
  return guarded<int64_t>(error, -1, [&]() -> int64_t {
    auto hits = alarm->alarm.wait(timeout_ms);
    if (!hits) return answer(fail(std::move(hits.error())), error);
    alarm->last = std::move(*hits);
    return static_cast<int64_t>(alarm->last.size());
  });
}

int tt_alarm_hit(const tt_alarm* alarm, size_t index, tt_hit* hit) {
  return fill_in(alarm->last, index, hit);
}
int tt_alarm_fd(const tt_alarm* alarm) { return alarm->alarm.fd(); }

void tt_snapshot_free(tt_snapshot* snapshot) { delete snapshot; }

const tt_record* tt_snapshot_records(const tt_snapshot* snapshot, size_t* count) {
  *count = snapshot->snapshot->records.size();
  return reinterpret_cast<const tt_record*>(snapshot->snapshot->records.data());
}

uint64_t tt_snapshot_first(const tt_snapshot* snapshot) { return snapshot->snapshot->first.value; }
int tt_snapshot_complete(const tt_snapshot* snapshot) { return snapshot->snapshot->complete; }
const char* tt_snapshot_hardware(const tt_snapshot* snapshot) {
  return snapshot->snapshot->engine.c_str();
}

uint64_t tt_snapshot_size(const tt_snapshot* snapshot) { return snapshot->history.size(); }

int tt_snapshot_item(tt_snapshot* snapshot, uint64_t number, tt_item* item) {
  return guarded(nullptr, -1, [&] {
    snapshot->cursor.seek(number);
    if (!snapshot->cursor.valid()) return -1;
    const HistoryItem& found = snapshot->cursor.item();
    tt_item filled{std::min(item->size_bytes, sizeof(tt_item)), found.number,
                   found.is_gap ? 0 : found.instruction.address.value, found.time, found.is_gap};
    std::memcpy(item, &filled, filled.size_bytes);
    return 0;
  });
}

int tt_snapshot_text(tt_snapshot* snapshot, uint64_t number, char* text, size_t size) {
  return guarded(nullptr, -1, [&] {
    snapshot->cursor.seek(number);
    if (!snapshot->cursor.valid()) return -1;
    const HistoryItem& found = snapshot->cursor.item();
    std::string line = found.is_gap
                           ? gap_text(found.gap)
                           : disassemble(snapshot->cursor.bytes(), found.instruction.address);
    if (size > 0) std::snprintf(text, size, "%s", line.c_str());
    return static_cast<int>(line.size());
  });
}
