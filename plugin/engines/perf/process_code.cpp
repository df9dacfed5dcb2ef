#include "plugin/engines/perf/process_code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/code/known_code.h"
#include "decoder/code/maps_line.h"
#include "plugin/engines/perf/mapped_code.h"

namespace tailtrace::perf {
namespace {

using Range = ProcessCode::Range;

constexpr std::uint8_t kInt3 = 0xcc;
constexpr std::size_t kMostTold = 4096;     // in one look; older ones are left out
constexpr std::size_t kMostUnknown = 4096;  // ranges

ProcessCode::Read reader_of(std::int32_t pid) {
  return [pid](Address address, std::span<std::uint8_t> out) -> std::size_t {
    UniqueFd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!memory) return 0;
    std::size_t done = 0;
    while (done < out.size()) {
      ssize_t size = ::pread(memory.get(), out.data() + done, out.size() - done,
                             static_cast<off_t>(address.value + done));
      if (size <= 0) break;
      done += static_cast<std::size_t>(size);
    }
    return done;
  };
}

Range range_of(const MmapEvent& map) { return {map.address, map.address + map.size_bytes}; }

// Whether a region is what was told of; the kernel's names of what is no file differ.
bool shows(const MemoryRegion& region, const MmapEvent& map) {
  const bool is_file = map.path.starts_with('/') && !map.path.starts_with("//");
  return is_file ? region.path == map.path : !region.path.starts_with('/');
}

// As the map has it where it is still there: on some file systems events name another device.
std::string line_of(const MemoryMap& map, const MmapEvent& event) {
  const MemoryRegion* region = map.find(event.address);
  if (region == nullptr || !region->executable || !shows(*region, event))
    return maps_line_of(event);
  return fmt::format("{:x}-{:x} r-xp {:08x} {} {}", event.address.value,
                     event.address.value + event.size_bytes, event.offset_bytes, region->file_id,
                     region->path);
}

// What of a range none of the others covers.
std::vector<Range> without(Range range, const std::vector<Range>& others) {
  std::vector<Range> left = {range};
  for (Range other : others) {
    std::vector<Range> rest;
    for (Range piece : left) {
      if (!piece.overlaps(other)) {
        rest.push_back(piece);
        continue;
      }
      if (piece.begin < other.begin) rest.push_back({piece.begin, other.begin});
      if (other.end < piece.end) rest.push_back({other.end, piece.end});
    }
    left = std::move(rest);
  }
  return left;
}

// Only the process itself can change it, by a system call that the map shows.
bool is_stable(const MemoryRegion& region) {
  return !region.writable && !region.shared && !region.path.empty();
}

}  // namespace

ProcessCode::ProcessCode(std::int32_t pid, Read read)
    : pid_(pid),
      own_read_(!read),
      read_(read ? std::move(read) : reader_of(pid)),
      image_(std::make_shared<CodeImage>()) {}

Bytes ProcessCode::read_region(const MemoryRegion& region) const {
  std::uint64_t room = kMaxImage_bytes - std::min(kMaxImage_bytes, size_bytes_);
  Bytes bytes(std::min(room, region.end - region.begin));
  bytes.resize(read_(region.begin, bytes));
  if (own_read_) hide_breakpoints(region, bytes);
  return bytes;
}

// Debuggers put INT3 into private copies of file pages; the file still has what was there.
void ProcessCode::hide_breakpoints(const MemoryRegion& region, Bytes& bytes) const {
  if (region.writable || !region.path.starts_with('/')) return;
  auto file = MappedFile::open(fmt::format("/proc/{}/root{}", pid_, region.path));
  if (!file || file->bytes().size() <= region.offset_bytes) return;
  ByteSpan original = file->bytes().subspan(region.offset_bytes);
  std::size_t common = std::min(original.size(), bytes.size());
  if (std::equal(bytes.data(), bytes.data() + common, original.data())) return;  // nearly always
  std::size_t differing = 0;
  for (std::size_t i = 0; i < common; ++i) differing += bytes[i] != original[i];
  // Another file by that name now, or code that rewrote itself: then no byte of it is believed.
  constexpr std::size_t kMostBreakpoints = 4096;
  if (differing > kMostBreakpoints) return;
  for (std::size_t i = 0; i < common; ++i)
    if (bytes[i] == kInt3) bytes[i] = original[i];
}

// What was told of: as memory shows it, where nothing came in its place since; else as its file
// does, if there is one.
void ProcessCode::find_told(const MemoryMap& map, const std::vector<MapChange>& told,
                            std::vector<Found>& found) const {
  for (std::size_t i = 0; i < told.size(); ++i) {
    const Range range = range_of(told[i].map);
    std::vector<Range> later;
    for (std::size_t k = i + 1; k < told.size(); ++k) later.push_back(range_of(told[k].map));
    const MemoryRegion* region = map.find(range.begin);
    const bool is_there = region != nullptr && region->executable && shows(*region, told[i].map);
    std::vector<Range> left;
    if (is_there) left = without({range.begin, std::min(range.end, region->end)}, later);
    if (left.size() != 1 || left.front().begin != range.begin || left.front().end != range.end)
      found.push_back({told[i].time, range, code_in_file(told[i].map, pid_)});
    for (Range piece : left) {
      MemoryRegion part = *region;
      part.begin = piece.begin;
      part.end = piece.end;
      part.offset_bytes += piece.begin.value - region->begin.value;
      found.push_back({told[i].time, piece, read_region(part)});
    }
  }
}

// What is there and was not told of, now: it changed after the last look.
void ProcessCode::find_untold(const MemoryMap& map, const std::vector<MapChange>& told,
                              std::vector<Found>& found) {
  std::vector<Range> ranges;
  for (const MapChange& change : told) ranges.push_back(range_of(change.map));
  std::map<Address, Held> held;
  for (const MemoryRegion& region : map.regions()) {
    if (!region.executable) continue;
    auto known = held_.find(region.begin);
    bool same = known != held_.end() && known->second.region == region;
    if (same && is_stable(region)) {
      held.insert(held_.extract(known));
      continue;
    }
    Bytes bytes = read_region(region);
    if (same && known->second.bytes == bytes) {
      held.insert(held_.extract(known));
      continue;
    }
    Held now{region, is_stable(region) ? Bytes() : bytes};
    for (Range piece : without({region.begin, region.end}, ranges)) {
      const std::uint64_t from = piece.begin.value - region.begin.value;
      if (bytes.size() <= from) continue;
      if (piece.size_bytes() == region.end.value - region.begin.value) {
        found.push_back({last_look_, piece, std::move(bytes)});  // all of it, nearly always
        break;
      }
      ByteSpan part = ByteSpan(bytes).subspan(from);
      part = part.first(std::min<std::uint64_t>(part.size(), piece.size_bytes()));
      found.push_back({last_look_, piece, Bytes(part.begin(), part.end())});
    }
    held.emplace(region.begin, std::move(now));
  }
  if (!map.regions().empty()) held_ = std::move(held);
}

// Something was there that nobody knows: what is known from before holds no longer, and what is
// found later was not there before.
Result<bool> ProcessCode::put_unknown(CodeImage& image, const Found& found, Epoch before) {
  unknown_.push_back(found.range);
  if (unknown_.size() > kMostUnknown) unknown_.erase(unknown_.begin());
  if (!shows_any_code(image, found.range.begin, found.range.end)) return false;
  auto forgotten = image.forget(found.range.begin, found.range.size_bytes(),
                                epoch_from(image, found.time, before));
  if (!forgotten) return fail(std::move(forgotten.error()));
  return true;
}

// Returns whether anything is new.
Result<bool> ProcessCode::put(CodeImage& image, Found found, Epoch before) {
  if (found.bytes.empty()) return put_unknown(image, found, before);
  const KnownCode known = compare_code(image, found.range.begin, found.bytes);
  if (known == KnownCode::kSame || found.bytes.size() > kMaxImage_bytes - size_bytes_) return false;
  const bool was_unknown =
      std::erase_if(unknown_, [&](Range range) { return range.overlaps(found.range); }) != 0;
  const Epoch epoch = known == KnownCode::kOther || was_unknown
                          ? epoch_from(image, found.time, before)
                          : image.newest();
  size_bytes_ += found.bytes.size();
  auto added = image.add(found.range.begin, std::move(found.bytes), epoch);
  if (!added) return fail(std::move(added.error()));
  return true;
}

// What is found in one look, and dated alike, changed together.
Epoch ProcessCode::epoch_from(const CodeImage& image, std::uint64_t time, Epoch before) {
  const Epoch epoch = image.newest();
  if (epoch != before && begins_.back().time == time) return begins_.back().epoch;
  begins_.push_back({time, {epoch.value + 1}});
  return begins_.back().epoch;
}

// A library came where another one was: none of what is known of that holds from now on, whatever
// the bytes of the other are.
Result<bool> ProcessCode::begin_files(CodeImage& image, const ToldMaps::Lines& lines,
                                      std::uint64_t time, Epoch before) {
  const bool has_begun = image.newest() != before && begins_.back().time == time;
  const Epoch next{image.newest().value + (has_begun ? 0 : 1)};
  const ToldMaps::Ranges replaced = maps_.put(lines, next);
  if (!replaced.empty()) (void)epoch_from(image, time, before);
  for (const FormerMaps::Range& range : replaced) {
    auto forgotten = image.forget(range.begin, range.end - range.begin, next);
    if (!forgotten) return fail(std::move(forgotten.error()));
  }
  return !replaced.empty();
}

// What there is that nobody told of.
ToldMaps::Lines ProcessCode::untold_lines(const MemoryMap& map,
                                          const std::vector<MapChange>& told) const {
  ToldMaps::Lines lines = maps_.new_code(map.text());
  std::erase_if(lines, [&](const std::string& text) {
    const auto line = parse_maps_line(text);
    const Range range{{line->begin}, {line->end}};
    return std::ranges::any_of(
        told, [&](const MapChange& change) { return range.overlaps(range_of(change.map)); });
  });
  return lines;
}

Result<std::uint32_t> ProcessCode::update(std::vector<MapChange> told, std::uint64_t now) {
  MemoryMap map = MemoryMap::of_process(pid_);
  if (map.regions().empty() && told.empty())
    return fail(ErrorCode::kGone, fmt::format("cannot read the code of process {}", pid_),
                "it has no memory map: it is gone, or may not be looked at");
  auto by_time = [](const auto& a, const auto& b) { return a.time < b.time; };
  std::stable_sort(told.begin(), told.end(), by_time);
  if (told.size() > kMostTold) told.erase(told.begin(), told.end() - kMostTold);
  std::vector<Found> found;
  find_told(map, told, found);
  find_untold(map, told, found);
  std::stable_sort(found.begin(), found.end(), by_time);
  auto next = std::make_shared<CodeImage>(*image_);
  const Epoch before = image_->newest();
  bool changed = false;
  auto note = [&changed](const Result<bool>& did) {
    changed = changed || (did && *did);
    return did.has_value();
  };
  Result<bool> done = begin_files(*next, untold_lines(map, told), last_look_, before);
  auto change = told.begin();
  for (auto code = found.begin(); note(done) && code != found.end(); ++code) {
    for (; change != told.end() && change->time <= code->time && note(done); ++change)
      done = begin_files(*next, {line_of(map, change->map)}, change->time, before);
    if (note(done)) done = put(*next, std::move(*code), before);
  }
  if (!done) return fail(std::move(done.error()));
  if (!map.regions().empty()) (void)maps_.see(map.text(), next->newest());
  last_look_ = std::max(last_look_, now);
  if (changed) image_ = next;
  return next->newest().value - before.value;
}

ProcessCode ProcessCode::of_child(std::int32_t pid) const {
  ProcessCode child(pid);
  child.image_ = image_;
  child.begins_ = begins_;
  child.unknown_ = unknown_;
  child.maps_ = maps_;
  child.size_bytes_ = size_bytes_;
  child.last_look_ = last_look_;
  return child;
}

}  // namespace tailtrace::perf
