#include "decoder/code/former_maps.h"

#include <algorithm>
#include <charconv>

#include "decoder/code/maps_line.h"

namespace tailtrace {
namespace {

std::optional<Epoch> epoch_in(std::string_view text) {
  Epoch epoch;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, epoch.value);
  if (error != std::errc() || end != last) return std::nullopt;
  return epoch;
}

}  // namespace

std::optional<FormerMaps::Piece> FormerMaps::parse(std::string_view line) const {
  const std::optional<MapsLine> parsed = parse_maps_line(line);
  if (!parsed) return std::nullopt;
  Piece piece;
  piece.line = line;
  piece.begin = parsed->begin;
  piece.end = parsed->end;
  piece.file_offset_bytes = parsed->file_offset_bytes;
  piece.is_code = was_executed_ ? !parsed->writable() : parsed->executable();
  if (!parsed->has_file()) return piece;
  // One that is deleted while it is mapped is what it was.
  std::string_view path = parsed->name;
  if (path.ends_with(kDeletedWord)) path.remove_suffix(kDeletedWord.size());
  piece.file.append(parsed->file_id).append(" ").append(path);
  return piece;
}

// Whether the same of the file is where the piece is, or some of it.
bool FormerMaps::is_in(const std::vector<Piece>& pieces, const Piece& piece, bool as_code) {
  auto at = std::upper_bound(pieces.begin(), pieces.end(), piece.begin,
                             [](std::uint64_t begin, const Piece& p) { return begin < p.end; });
  for (; at != pieces.end() && at->begin < piece.end; ++at)
    if (at->begin - at->file_offset_bytes == piece.begin - piece.file_offset_bytes &&
        (at->is_code || !as_code) && at->file == piece.file)
      return true;
  return false;
}

// By address.
std::vector<FormerMaps::Piece> FormerMaps::code_and_files(std::string_view maps) const {
  std::vector<Piece> pieces;
  while (!maps.empty()) {
    auto piece = parse(cut_line(maps));
    if (piece && (piece->is_code || !piece->file.empty())) pieces.push_back(std::move(*piece));
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  return pieces;
}

void FormerMaps::keep_gone(const std::vector<Piece>& before, const std::vector<Piece>& now) {
  for (auto begin = before.begin(), end = begin; begin != before.end(); begin = end) {
    Module module;
    bool had_code = false;
    for (; end != before.end() && end->file == begin->file; ++end) {
      if (end->file.empty() || is_in(now, *end, false)) continue;
      Piece& piece = module.pieces.emplace_back(*end);
      if (was_executed_) piece.is_code = was_executed_({{piece.begin}, {piece.end}});
      had_code |= piece.is_code;
    }
    if (had_code) gone_.push_front(std::move(module));
  }
}

// A piece of code is there that was not. The same file in the same place is what it was.
void FormerMaps::replace(const Piece& piece, Epoch next, std::vector<Range>& ranges) {
  for (auto module = gone_.begin(); module != gone_.end();) {
    const bool is_same_file = module->pieces.front().file == piece.file;
    if (!is_same_file) note_deleted(*module, path_in_maps_line(piece.line));
    const bool is_back = is_same_file && !module->until && is_in(module->pieces, piece, false);
    if (!is_back && !module->until && add_overlaps(*module, piece, ranges)) module->until = next;
    module = is_back ? gone_.erase(module) : std::next(module);
  }
}

// Another file has the path now.
void FormerMaps::note_deleted(Module& module, std::string_view path) {
  if (path.empty() || path_in_maps_line(module.pieces.front().line) != path) return;
  for (Piece& piece : module.pieces) piece.line += kDeletedWord;
}

bool FormerMaps::add_overlaps(const Module& module, const Piece& piece,
                              std::vector<Range>& ranges) {
  bool overlaps = false;
  for (const Piece& gone : module.pieces) {
    const std::uint64_t begin = std::max(piece.begin, gone.begin);
    const std::uint64_t end = std::min(piece.end, gone.end);
    if (!gone.is_code || begin >= end) continue;
    ranges.push_back({{begin}, {end}});
    overlaps = true;
  }
  return overlaps;
}

// No more than what has changed is looked at: there may be thousands of libraries.
std::vector<FormerMaps::Range> FormerMaps::see(std::string_view maps, Epoch next) {
  std::vector<Range> ranges;
  const ChangedLines changed = changed_lines(last_, maps);
  const auto before = code_and_files(changed.before), now = code_and_files(changed.now);
  keep_gone(before, now);
  for (const Piece& piece : now)
    if (piece.is_code && !gone_.empty() && !is_in(before, piece, true))
      replace(piece, next, ranges);
  last_ = maps;
  cut();
  return ranges;
}

void FormerMaps::cut() {
  std::size_t size_bytes = 0;
  for (auto module = gone_.begin(); module != gone_.end(); ++module) {
    for (const Piece& piece : module->pieces) size_bytes += piece.line.size() + 16;
    if (size_bytes <= kMaxText_bytes) continue;
    gone_.erase(module, gone_.end());
    return;
  }
}

bool FormerMaps::had_code_in(Range range) const {
  for (const Module& module : gone_)
    for (const Piece& piece : module.pieces)
      if (piece.is_code && piece.begin < range.end.value && range.begin.value < piece.end)
        return true;
  return false;
}

std::string FormerMaps::text() const {
  std::string text;
  for (const Module& module : gone_)
    for (const Piece& piece : module.pieces) {
      const std::string until = module.until ? std::to_string(module.until->value) : "-";
      text.append(kFormerWord).append(until).append(" ").append(piece.line).append("\n");
    }
  return text;
}

std::string with_epochs(std::string_view former, const ChangeEpoch& change) {
  std::string changed;
  while (!former.empty()) {
    std::string_view line = cut_line(former);
    if (!line.starts_with(kFormerWord)) continue;
    line.remove_prefix(kFormerWord.size());
    std::optional<Epoch> until = epoch_in(cut_word(line));
    if (!change(until, line)) continue;
    changed.append(kFormerWord).append(until ? std::to_string(until->value) : "-").append(line);
    changed.push_back('\n');
  }
  return changed;
}

std::string take_former_maps(std::string& maps) {
  std::string former, others;
  if (!maps.starts_with(kFormerWord) && maps.find("\nwas ") == maps.npos) return former;
  for (std::string_view rest = maps; !rest.empty();) {
    const std::string_view line = cut_line(rest);
    (line.starts_with(kFormerWord) ? former : others).append(line).append("\n");
  }
  maps = std::move(others);
  return former;
}

}  // namespace tailtrace
