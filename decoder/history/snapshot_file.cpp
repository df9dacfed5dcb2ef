#include "decoder/history/snapshot_file.h"

#include <algorithm>
#include <map>

#include "decoder/code/former_maps.h"
#include "decoder/code/vdso.h"
#include "decoder/history/runs.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxName_bytes = 16;

// Stretches of addresses, joined where they touch.
class Stretches {
 public:
  void add(Address begin, Address end) {
    auto it = ends_.upper_bound(begin);
    if (it != ends_.begin() && std::prev(it)->second >= begin) {
      --it;
      if (it->second >= end) return;
      begin = it->first;
    }
    while (it != ends_.end() && it->first <= end) {
      end = std::max(end, it->second);
      it = ends_.erase(it);
    }
    ends_.emplace_hint(it, begin, end);
  }
  bool overlap(Address begin, Address end) const {
    const auto it = ends_.lower_bound(end);
    return it != ends_.begin() && std::prev(it)->second > begin;
  }
  const std::map<Address, Address>& all() const { return ends_; }

 private:
  std::map<Address, Address> ends_;  // by begin
};

// What a history needs to know of the code in one epoch.
struct Needed {
  Stretches code;
  std::vector<Address> unknown;  // tried, and not known
};

// The code of every run, by epoch.
std::map<Epoch, Needed> code_needed(const History& history) {
  std::map<Epoch, Needed> needed;
  if (history.size() == 0) return needed;
  HistoryRuns runs(history, history.oldest());
  HistoryRun run;
  while (runs.next(run)) {
    Needed& here = needed[run.step.epoch];
    if (run.step.shown != 0) {
      Address last = run.record->from;
      if (!run.ends_with_branch()) {
        last = run.step.start;
        for (std::uint64_t i = 1; i < run.step.shown; ++i) last = runs.code().at(last)->next();
      }
      here.code.add(run.step.start, runs.code().at(last)->next());
    }
    const Gap& gap = run.step.gap;
    // Some of its bytes may be known; where they end is part of what is shown.
    if (run.step.has_gap && !gap.at.is_null() && gap.reason == GapReason::kBadInstruction)
      here.code.add(gap.at, gap.at + kMaxInstructionSize_bytes);
    if (run.step.has_gap && gap.reason == GapReason::kNoCode) here.unknown.push_back(gap.at);
  }
  return needed;
}

// Where some of the vDSO ran, all of it that is known: its names are in it.
void add_vdso(Address begin, Address end, const CodeImage& code, Epoch epoch,
              Stretches& stretches) {
  if (!stretches.overlap(begin, end)) return;
  Bytes known(std::min<std::uint64_t>(end - begin, kMaxVdso_bytes));
  known.resize(code.read(begin, known, epoch));
  if (!known.empty()) stretches.add(begin, begin + known.size());
}

Result<void> write_code(const ThreadSnapshot& snapshot, std::string_view maps,
                        RecordStreamWriter& writer) {
  History history(std::make_shared<ThreadSnapshot>(snapshot));
  CodeImage written;
  const auto vdso = vdso_in(maps);
  for (auto& [epoch, needed] : code_needed(history)) {
    if (vdso) add_vdso(vdso->first, vdso->second, *snapshot.code, epoch, needed.code);
    for (auto& [begin, end] : needed.code.all()) {
      Bytes bytes(end - begin), before(end - begin);
      bytes.resize(snapshot.code->read(begin, bytes, epoch));
      before.resize(written.read(begin, before, epoch));
      if (bytes.empty() || bytes == before) continue;
      Result<void> added = writer.add_code({begin, epoch, bytes, 0});
      if (!added) return added;
      if (added = written.add(begin, bytes, epoch); !added) return added;
    }
    for (Address address : needed.unknown) {
      if (written.at(address, 1, epoch).empty()) continue;
      Result<void> added = writer.add_code({address, epoch, {}, 1});
      if (!added) return added;
      if (added = written.forget(address, 1, epoch); !added) return added;
    }
  }
  return {};
}

Result<void> save(const ThreadSnapshot& snapshot, std::span<const BranchRecord> records,
                  std::string_view maps, const std::string& path,
                  RecordStreamWriter::Packing packing, RecordStreamWriter::Sync sync) {
  StreamHeader header;
  header.thread = snapshot.thread;
  header.engine = snapshot.engine.substr(0, kMaxName_bytes);
  header.first = snapshot.first;
  header.first_epoch = snapshot.first_epoch;
  header.complete = snapshot.complete;
  Result<RecordStreamWriter> writer = RecordStreamWriter::create(path, header, packing);
  if (!writer) return fail(std::move(writer.error()));
  if (Result<void> ok = writer->add_records(records); !ok) return ok;
  if (Result<void> ok = write_code(snapshot, maps, *writer); !ok) return ok;
  const std::string all_maps = std::string(maps) + snapshot.former_maps;
  if (!all_maps.empty())
    if (Result<void> ok = writer->add_maps(all_maps); !ok) return ok;
  return writer->finish(sync);
}

}  // namespace

Result<void> save_snapshot(const ThreadSnapshot& snapshot, std::string_view maps,
                           const std::string& path, RecordStreamWriter::Packing packing) {
  return save(snapshot, snapshot.records, maps, path, packing, RecordStreamWriter::Sync::kNow);
}

Result<void> save_snapshot_frame(const ThreadSnapshot& snapshot, std::string_view maps,
                                 const std::string& path) {
  return save(snapshot, {}, maps, path, RecordStreamWriter::Packing::kZstd,
              RecordStreamWriter::Sync::kLater);
}

LoadedSnapshot snapshot_of(RecordStream stream, const std::string& name) {
  LoadedSnapshot loaded;
  loaded.maps = std::move(stream.maps);
  loaded.problems = std::move(stream.problems);
  auto image = std::make_shared<CodeImage>();
  for (StreamCode& code : stream.code) {
    Result<void> added = code.bytes.empty()
                             ? image->forget(code.address, code.gone_bytes, code.from)
                             : image->add(code.address, std::move(code.bytes), code.from);
    if (!added) {
      added.error().what += " in " + name;
      loaded.problems.push_back(std::move(added.error()));
    }
  }
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->thread = stream.header.thread;
  snapshot->engine = stream.header.engine;
  snapshot->first = stream.header.first;
  snapshot->first_epoch = stream.header.first_epoch;
  snapshot->complete = stream.header.complete;
  snapshot->records = std::move(stream.records);
  snapshot->code = std::move(image);
  snapshot->former_maps = take_former_maps(loaded.maps);
  loaded.snapshot = std::move(snapshot);
  return loaded;
}

Result<LoadedSnapshot> load_snapshot(const std::string& path) {
  Result<RecordStream> stream = read_record_stream(path);
  if (!stream) return fail(std::move(stream.error()));
  return snapshot_of(std::move(*stream), path);
}

}  // namespace tailtrace
