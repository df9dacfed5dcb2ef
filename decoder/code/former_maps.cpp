#include "decoder/code/former_maps.h"

#include <algorithm>
#include <charconv>

namespace tailtrace {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Cuts the next word off the front; words are separated by blanks.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <class Number>
std::optional<Number> number_in(std::string_view text, int base) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view path_in(std::string_view line) {
  return line.substr(std::min(line.find('/'), line.size()));
}

}  // namespace

std::optional<FormerMaps::Piece> FormerMaps::parse(std::string_view line) const {
  Piece piece;
  piece.line = line;
  const std::string_view range = take_word(line), access = take_word(line);
  const auto offset = number_in<std::uint64_t>(take_word(line), 16);
  const std::size_t dash = std::min(range.find('-'), range.size());
  const auto begin = number_in<std::uint64_t>(range.substr(0, dash), 16);
  const auto end = number_in<std::uint64_t>(range.substr(std::min(dash + 1, range.size())), 16);
  if (!begin || !end || !offset || *begin >= *end || access.size() < 4) return std::nullopt;
  piece.begin = *begin;
  piece.end = *end;
  piece.file_offset_bytes = *offset;
  piece.is_code = was_executed_ ? access[1] != 'w' : access[2] == 'x';
  if (path_in(line).empty()) return piece;
  const std::string_view device = take_word(line), inode = take_word(line);
  piece.file.append(device).append(" ").append(inode).append(" ").append(path_in(line));
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

void FormerMaps::keep_gone(const std::vector<Piece>& now) {
  for (auto begin = pieces_.begin(), end = begin; begin != pieces_.end(); begin = end) {
    Module module;
    bool had_code = false;
    for (; end != pieces_.end() && end->file == begin->file; ++end) {
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
    if (!is_same_file) note_deleted(*module, path_in(piece.line));
    const bool is_back = is_same_file && !module->until && is_in(module->pieces, piece, false);
    if (!is_back && !module->until && add_overlaps(*module, piece, ranges)) module->until = next;
    module = is_back ? gone_.erase(module) : std::next(module);
  }
}

// Another file has the path now.
void FormerMaps::note_deleted(Module& module, std::string_view path) {
  if (path.empty() || path_in(module.pieces.front().line) != path) return;
  for (Piece& piece : module.pieces) piece.line += kDeleted;
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

std::vector<FormerMaps::Range> FormerMaps::see(std::string_view maps, Epoch next) {
  std::vector<Range> ranges;
  if (maps == last_) return ranges;
  last_ = maps;
  std::vector<Piece> now;
  while (!maps.empty()) {
    auto piece = parse(take_line(maps));
    if (piece && (piece->is_code || !piece->file.empty())) now.push_back(std::move(*piece));
  }
  std::stable_sort(now.begin(), now.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  keep_gone(now);
  for (const Piece& piece : now)
    if (piece.is_code && !gone_.empty() && !is_in(pieces_, piece, true))
      replace(piece, next, ranges);
  pieces_ = std::move(now);
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
    std::string_view line = take_line(former);
    if (!line.starts_with(kFormerWord)) continue;
    line.remove_prefix(kFormerWord.size());
    const std::string_view word = take_word(line);
    std::optional<Epoch> until;
    if (const auto number = number_in<std::uint32_t>(word, 10)) until = Epoch{*number};
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
    const std::string_view line = take_line(rest);
    (line.starts_with(kFormerWord) ? former : others).append(line).append("\n");
  }
  maps = std::move(others);
  return former;
}

}  // namespace tailtrace
