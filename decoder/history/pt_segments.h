// PtSegments: an Intel PT trace as segments, each from one PSB to another.
//
// Where two of them meet, the newer one's PSB says which instruction is next, or what is around it
// (pause_seam.h). The older one is closed by what makes of both the same history as of one linear
// decode: nothing if its last branch led there, a seam (segment_source.h) if a straight run did,
// and an end and a begin where the flow is known to have stood elsewhere. A loss ends where the
// newer one begins: it is one record. So a segment begins where an instruction is shown first,
// unless that is far.
//
// A trace may be put together from stretches of others, as those of the processors that a thread
// ran on: at a joint nothing is believed of what came before.
//
// Threading: immutable, but for what its readers learn and share.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "decoder/history/segment_source.h"
#include "decoder/perf/clock.h"
#include "decoder/pt/segments/segments.h"

namespace tailtrace {

// Where another stretch begins in a trace.
struct PtJoint {
  std::uint64_t at = 0;  // of its PSB, in bytes
  bool is_lost = false;  // something is missing before it, not only paused
};

struct PtSegmentsOptions {
  // Small enough that all of it can be read for one record, large enough for thousands of records.
  static constexpr std::size_t kLeast_bytes = std::size_t{1} << 12;

  std::size_t least_bytes = kLeast_bytes;
  std::vector<PtJoint> joints;                // in order; none at 0
  std::optional<perf::TimeConversion> clock;  // the records' times are perf's then, else the TSC
};

class PtSegments final : public SegmentSource {
 public:
  // `owner` keeps the trace alive. REQUIRES: the code does not change on the way.
  PtSegments(std::shared_ptr<const void> owner, ByteSpan trace,
             std::shared_ptr<const CodeImage> code, pt::DecoderConfig config,
             PtSegmentsOptions options = {});

  std::uint64_t size() const override { return trace_.size(); }
  std::optional<std::uint64_t> record_count() const override { return std::nullopt; }
  std::unique_ptr<SegmentReader> reader() const override;

 private:
  class Reader;

  std::shared_ptr<const void> owner_;
  ByteSpan trace_;
  std::shared_ptr<const CodeImage> code_;
  pt::DecoderConfig config_;
  PtSegmentsOptions options_;
  // What readers learn of the code; made with the first of them.
  mutable std::once_flag pool_made_;
  mutable std::shared_ptr<pt::RowPool> pool_;
};

}  // namespace tailtrace
