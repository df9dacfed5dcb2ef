#include "decoder/perf_data/aux_queue.h"

#include <algorithm>
#include <map>

namespace tailtrace::perf {
namespace {

// Pieces of which each begins where the one before ended, as one.
AuxRun join(std::span<const AuxPiece> pieces, AuxQueue& queue) {
  AuxRun run{pieces.front().offset_bytes, pieces.front().bytes, 0};
  if (pieces.size() == 1) return run;
  auto joined = std::make_shared<Bytes>();
  std::size_t size = 0;
  for (const AuxPiece& piece : pieces) size += piece.bytes.size();
  joined->reserve(size);
  for (const AuxPiece& piece : pieces)
    joined->insert(joined->end(), piece.bytes.begin(), piece.bytes.end());
  run.bytes = *joined;
  queue.owners.push_back(std::move(joined));
  return run;
}

// Cuts runs in two where a hole was told of.
void cut_at_holes(AuxQueue& queue, std::span<const ToldHole> holes) {
  std::map<std::uint64_t, std::uint64_t> flags;  // by offset
  for (const ToldHole& hole : holes)
    if (queue.is_by_cpu() ? hole.cpu == queue.cpu : hole.tid == queue.tid)
      flags[hole.offset_bytes] |= hole.flags;
  std::vector<AuxRun> cut;
  for (AuxRun run : queue.runs) {
    for (auto hole = flags.lower_bound(run.offset_bytes); hole != flags.end(); ++hole) {
      const std::uint64_t inside = hole->first - run.offset_bytes;
      if (inside >= run.bytes.size()) break;
      if (inside != 0) cut.push_back({run.offset_bytes, run.bytes.first(inside), run.lost_before});
      run = {hole->first, run.bytes.subspan(inside), hole->second};
    }
    cut.push_back(run);
  }
  queue.runs = std::move(cut);
}

}  // namespace

std::vector<AuxQueue> join_pieces(std::span<const AuxPiece> pieces, std::span<const ToldHole> holes,
                                  bool is_snapshot) {
  std::map<std::uint32_t, std::vector<AuxPiece>> by_queue;
  for (const AuxPiece& piece : pieces)
    if (!piece.bytes.empty()) by_queue[piece.queue].push_back(piece);
  std::vector<AuxQueue> queues;
  for (auto& [number, own] : by_queue) {
    std::stable_sort(own.begin(), own.end(), [](const AuxPiece& a, const AuxPiece& b) {
      return a.offset_bytes < b.offset_bytes;
    });
    AuxQueue& queue = queues.emplace_back();
    queue.tid = own.front().tid;
    queue.cpu = own.front().cpu;
    std::vector<AuxPiece> run;
    std::uint64_t lost = 0;
    auto close = [&] {
      if (run.empty()) return;
      queue.runs.push_back(join(run, queue));
      queue.runs.back().lost_before = lost;
      run.clear();
    };
    for (const AuxPiece& piece : own) {
      const std::uint64_t end = run.empty() ? 0 : run.back().offset_bytes + run.back().bytes.size();
      if (!run.empty() && piece.offset_bytes > end) {
        close();
        lost = is_snapshot ? kAuxOverwrite : kAuxTruncated;
      } else if (!run.empty()) {
        // Pieces are filled up with zeros to whole words, and snapshots show things twice: where
        // the next piece begins counts.
        if (piece.offset_bytes + piece.bytes.size() <= end) continue;
        run.back().bytes = run.back().bytes.first(piece.offset_bytes - run.back().offset_bytes);
      }
      run.push_back(piece);
    }
    close();
    if (!is_snapshot) cut_at_holes(queue, holes);
  }
  return queues;
}

}  // namespace tailtrace::perf
