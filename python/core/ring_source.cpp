#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "python/core/source.h"

namespace tailtrace::python {
namespace {

bool process_exists(std::int32_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

EdgeCause cause_of(RingState state) {
  if (state == RingState::kThreadExited) return EdgeCause::kThread;
  if (state == RingState::kProcessExited) return EdgeCause::kProcess;
  if (state == RingState::kReplaced) return EdgeCause::kExec;
  return EdgeCause::kUnknown;
}

// Where the thread stands, of writers that keep no table of blocks.
BranchRecord closing_record(const Ring& ring) {
  const RingHeader& header = ring.header();
  BranchRecord record;
  record.kind = RecordKind::kDisable;
  record.flags = kFlagAsync | kFlagSynthetic;
  record.extra = static_cast<std::uint16_t>(cause_of(ring.state()));
  if (header.open_block.load(std::memory_order_acquire) == 0) {
    record.from = {header.own_block.begin};
    record.insns = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(header.run_insns.load(std::memory_order_relaxed), ~0u));
  }
  return record;
}

Result<std::shared_ptr<const CodeImage>> image_of(const GivenCode& code) {
  auto image = std::make_shared<CodeImage>();
  for (const auto& [address, bytes] : code)
    if (auto ok = image->add(address, bytes); !ok) return fail(std::move(ok.error()));
  return image;
}

std::shared_ptr<const ThreadSnapshot> snapshot_of(const Ring& ring,
                                                  std::shared_ptr<const CodeImage> image) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->thread = ring.thread();
  snapshot->code = std::move(image);
  constexpr int kMaxTries = 16;
  for (int i = 0; i < kMaxTries; ++i) {
    Position head = ring.head();
    RecordRange range = ring.newest(kRingMaxRecords);
    BranchRecord closing = closing_record(ring);
    snapshot->first = range.first;
    snapshot->records = std::move(range.records);
    // Both must be of one moment. Of a thread that never pauses it is not known where it stands.
    if (ring.head() != head) continue;
    snapshot->records.push_back(closing);
    break;
  }
  snapshot->complete = snapshot->first.value == 0;
  return snapshot;
}

// Of a ring that nobody writes any more.
OpenedThread content_in_place(const Ring& ring, std::shared_ptr<const CodeImage> image) {
  const BranchRecord closing = closing_record(ring);
  const RecordSpan span = view_ring(ring, {&closing, 1});
  ThreadFrame frame;
  frame.thread = ring.thread();
  frame.code = std::move(image);
  frame.first = span.first;
  frame.complete = span.first.value == 0;
  return records_in_place(std::move(frame), span.owner, span.records);
}

}  // namespace

// A killed writer leaves the state of a running one behind.
bool is_live(const Ring& ring) {
  RingState state = ring.state();
  return (state == RingState::kRunning || state == RingState::kEmpty) &&
         process_exists(ring.header().pid);
}

Result<std::vector<ThreadSource>> open_ring(const std::string& path, const GivenCode& code) {
  Result<Ring> opened = Ring::open(path);
  if (!opened) return fail(std::move(opened.error()));
  Result<std::shared_ptr<const CodeImage>> image = image_of(code);
  if (!image) return fail(std::move(image.error()));
  auto ring = std::make_shared<const Ring>(std::move(*opened));
  ThreadSource source;
  source.thread = ring->thread();
  source.live = is_live(*ring);
  source.content = [ring, image = *image]() -> Result<OpenedThread> {
    if (!is_live(*ring)) return content_in_place(*ring, image);
    return opened_thread({snapshot_of(*ring, image), {}, {}});
  };
  source.records = [ring]() -> Result<RecordSpan> {
    return is_live(*ring) ? view_written_ring(ring) : view_ring(*ring);
  };
  return std::vector<ThreadSource>{std::move(source)};
}

}  // namespace tailtrace::python
