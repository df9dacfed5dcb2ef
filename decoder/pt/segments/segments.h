// Segments: pieces of a trace that decode on their own, from one PSB to another, and what decoding
// one yields: a compact path, from which its records are made on demand.
//
// A segment needs nothing but its bytes and the code. Two neighbours join without a seam: the
// second begins at the very instruction at which the first ends.
//
// Threading: a SegmentDecoder belongs to one thread at a time; make one per thread, which may
// share a pool. A SegmentPath is immutable once made.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "decoder/pt/fast/fast_flow.h"
#include "decoder/pt/fast/stretch_records.h"
#include "decoder/pt/record_sink.h"

namespace tailtrace::pt {

struct Segment {
  std::size_t begin = 0;  // a PSB
  std::size_t end = 0;    // the next segment's, or the end of the trace
};

// The segments of a trace, of at least `least_bytes` each but for the last. They are cut at PSBs
// that code runs across: where tracing was switched off, both sides are of one segment. Bytes
// before the first PSB belong to none.
std::vector<Segment> find_segments(ByteSpan trace, std::size_t least_bytes = 0);

// Whether code runs across the PSB there.
bool is_seam(ByteSpan trace, std::size_t psb);

// The first PSB at or behind `from` that code runs across.
std::optional<std::size_t> find_seam(ByteSpan trace, std::size_t from);

// The instruction that is next there, as the PSB says. REQUIRES: find_seam found the PSB.
Address seam_address(ByteSpan trace, std::size_t psb);

// What was decoded of a segment. Storage is the words, four bytes for a TNT byte or a TIP, eight
// for each time that was told between them, and full records for the little that the fast path does
// not take.
class SegmentPath {
 public:
  const Segment& segment() const { return segment_; }
  const PathTotals& totals() const { return totals_; }
  std::size_t size_bytes() const;

  // Appends its records in order. Where the segment begins inside the flow, started_at(), there is
  // no record of that.
  void records(std::vector<BranchRecord>& out) const;
  // The same into memory of room() records, whose end is scratch; how many.
  std::size_t records(std::span<BranchRecord> room) const;
  std::size_t room() const { return totals_.records + StretchRecords::kSlack; }

  // Whether all its records are of near branches and led somewhere: then they tell of no more than
  // the instructions that totals() counts.
  bool is_of_near_branches() const;

  const std::vector<Gap>& gaps() const { return gaps_; }

  // Where the flow was at its begin and end; no value where that is not known or not traced.
  std::optional<Address> started_at() const { return started_at_; }
  std::optional<Address> stopped_at() const { return stopped_at_; }
  // Executed behind the last record, up to stopped_at().
  std::uint32_t open_insns() const { return open_insns_; }
  // The time at the begin; 0 unknown.
  std::uint64_t start_time() const { return start_time_; }

 private:
  friend class SegmentDecoder;
  friend class PathRecorder;

  // A stretch of the fast path, and the records that follow it.
  struct Chunk {
    Stretch stretch;
    std::size_t first_word = 0, word_count = 0;
    std::size_t first_mark = 0, mark_count = 0;
    std::size_t first_record = 0, record_count = 0;
    std::uint32_t open_insns = 0;  // executed since the last record before it
  };
  std::span<const std::uint32_t> words_of(const Chunk& chunk) const {
    return path_.words.span().subspan(chunk.first_word, chunk.word_count);
  }
  std::span<const TimeMark> marks_of(const Chunk& chunk) const {
    return path_.marks.span().subspan(chunk.first_mark, chunk.mark_count);
  }

  Segment segment_;
  PathTotals totals_;
  CompactPath path_;
  std::vector<Chunk> chunks_;  // the first one has no words
  std::vector<BranchRecord> records_;
  std::vector<Gap> gaps_;
  std::optional<Address> started_at_, stopped_at_;
  std::uint32_t open_insns_ = 0;
  std::uint64_t start_time_ = 0;
};

class SegmentDecoder {
 public:
  // REQUIRES: trace, code and configuration outlive the decoder.
  SegmentDecoder(ByteSpan trace, const CodeImage& code, const DecoderConfig& config)
      : SegmentDecoder(trace, code, config, std::make_shared<RowPool>(config.first_epoch)) {}
  // Shares what it learns of the code with all others that have the pool.
  SegmentDecoder(ByteSpan trace, const CodeImage& code, const DecoderConfig& config,
                 std::shared_ptr<RowPool> pool);

  // `ends_trace`: nothing of what the trace has behind the segment belongs to it.
  SegmentPath decode(const Segment& segment, bool ends_trace = false);

 private:
  ByteSpan trace_;
  const CodeImage& code_;
  const DecoderConfig& config_;
  FastFlow fast_;
  CompactPath path_;  // of the segment that is being decoded
};

// The flow goes on at `next`, where another segment begins: if the newest of `records` is of a
// loss, it ends there. False: there is none.
bool end_loss(std::vector<BranchRecord>& records, Address next);

// The records of neighbouring segments, as one decoder over all of them would make them.
std::vector<BranchRecord> join_records(std::span<const SegmentPath> paths);

// Decodes them on `threads` threads; the result is in the order of the segments.
std::vector<SegmentPath> decode_segments(ByteSpan trace, std::span<const Segment> segments,
                                         const CodeImage& code, const DecoderConfig& config,
                                         unsigned threads);

}  // namespace tailtrace::pt
