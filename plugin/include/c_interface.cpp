// The C interface of libtailtrace over the provider. Nothing of C++ passes through it: exceptions
// of the standard library become errors.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <new>

#include "decoder/history/history.h"
#include "plugin/include/tailtrace/tailtrace.h"
#include "plugin/provider/trace_provider.h"

using namespace tailtrace;

struct tt_error {
  Error error;
};

struct tt_provider {
  TraceProvider provider;
  std::deque<Error> remarks;
};

struct tt_snapshot {
  explicit tt_snapshot(std::shared_ptr<const ThreadSnapshot> taken)
      : snapshot(taken), history(std::move(taken)), cursor(history) {}

  std::shared_ptr<const ThreadSnapshot> snapshot;
  History history;
  HistoryCursor cursor;
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
tt_options known_part(const tt_options* options) {
  tt_options known{};
  if (options != nullptr) std::memcpy(&known, options, std::min(sizeof known, options->size_bytes));
  return known;
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
    tt_options known = known_part(options);
    auto hardware = parse_hardware(known.hardware == nullptr ? "auto" : known.hardware);
    if (!hardware) {
      store(error, std::move(hardware.error()));
      return nullptr;
    }
    perf::PerfConfig config;
    config.buffer_bytes = known.buffer_bytes;
    if (known.records != 0) config.records.ring_records = known.records;
    return new tt_provider{TraceProvider(perf::real_kernel(), *hardware, std::move(config)), {}};
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
    if (provider->remarks.empty()) return nullptr;
    auto* next = new tt_error{std::move(provider->remarks.front())};
    provider->remarks.pop_front();
    return next;
  });
}

tt_snapshot* tt_snapshot_thread(tt_provider* provider, int32_t pid, int32_t tid, uint64_t pc,
                                uint64_t limit, tt_error** error) {
  return guarded<tt_snapshot*>(error, nullptr, [&]() -> tt_snapshot* {
    auto taken =
        provider->provider.snapshot({pid, tid}, pc == 0 ? std::nullopt : std::optional(Address{pc}),
                                    limit == 0 ? ~0ull : limit);
    if (taken) return new tt_snapshot(std::make_shared<ThreadSnapshot>(std::move(*taken)));
    store(error, std::move(taken.error()));
    return nullptr;
  });
}

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
