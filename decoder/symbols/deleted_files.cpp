#include "decoder/symbols/deleted_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "decoder/symbols/elf_file.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

bool is_deleted(const MapsLine& line) {
  return line.has_file() && line.name.ends_with(kDeletedWord);
}

std::string key_of(const MapsLine& line) {
  return std::string(line.file_id).append(" ").append(line.name);
}

// Where a living process has the files that were deleted, each looked for once.
class LivingFiles {
 public:
  explicit LivingFiles(std::int32_t pid)
      : folder_(fmt::format("/proc/{}", pid)), maps_(process_maps(pid).value_or("")) {}

  // Empty: nowhere, or it is no ELF file.
  const std::string& place_of(const MapsLine& line) {
    auto [known, is_new] = places_.try_emplace(key_of(line));
    if (is_new) known->second = find(line);
    return known->second;
  }

 private:
  // What was asked for may be of an earlier time, and another process have that number now.
  std::string find(const MapsLine& wanted) const {
    for (std::string_view rest = maps_; !rest.empty();) {
      const auto line = parse_maps_line(cut_line(rest));
      if (!line || line->file_id != wanted.file_id || line->name != wanted.name) continue;
      const std::string mapped =
          fmt::format("{}/map_files/{:x}-{:x}", folder_, line->begin, line->end);
      if (ElfFile::open(mapped)) return mapped;
      return find_open(wanted);
    }
    return {};
  }

  std::string find_open(const MapsLine& wanted) const {
    if (is_it(folder_ + "/exe", wanted)) return folder_ + "/exe";
    std::error_code error;
    for (fs::directory_iterator at(folder_ + "/fd", error), end; !error && at != end;
         at.increment(error))
      if (is_it(at->path().string(), wanted)) return at->path().string();
    return {};
  }

  // Devices are not compared: those of overlays differ.
  static bool is_it(const std::string& link, const MapsLine& wanted) {
    std::error_code error;
    if (fs::read_symlink(link, error).native() != wanted.name || error) return false;
    struct stat info {};
    if (::stat(link.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
    std::string_view id = wanted.file_id;
    cut_word(id);
    return cut_word(id) == std::to_string(info.st_ino) && ElfFile::open(link).has_value();
  }

  const std::string folder_;
  const std::string maps_;
  std::map<std::string, std::string> places_;
};

}  // namespace

std::vector<DeletedFile> deleted_files(std::int32_t pid, std::string_view maps,
                                       const std::function<bool(const MapsLine&)>& is_wanted) {
  std::vector<DeletedFile> files;
  if (maps.find(kDeletedWord) == maps.npos) return files;
  LivingFiles living(pid);
  std::set<std::string> seen;
  while (!maps.empty()) {
    const auto line = parse_maps_line(cut_line(maps));
    if (!line || !is_deleted(*line) || !is_wanted(*line)) continue;
    if (!seen.insert(key_of(*line)).second) continue;
    const std::string& at = living.place_of(*line);
    if (!at.empty()) files.push_back({std::string(line->file_id), std::string(line->name), at});
  }
  return files;
}

std::vector<Mapping> mappings_of(std::int32_t pid, std::string_view maps) {
  std::vector<Mapping> mappings = parse_maps(maps);
  if (maps.find(kDeletedWord) == maps.npos) return mappings;
  LivingFiles living(pid);
  std::map<Address, MapsLine> deleted;
  while (!maps.empty())
    if (const auto line = parse_maps_line(cut_line(maps)); line && is_deleted(*line))
      deleted.emplace(Address{line->begin}, *line);
  for (Mapping& mapping : mappings) {
    const auto line = deleted.find(mapping.begin);
    if (line == deleted.end()) continue;
    const std::string& at = living.place_of(line->second);
    if (at.empty()) continue;
    mapping.path = line->second.name.substr(0, line->second.name.size() - kDeletedWord.size());
    mapping.readable_at = at;
  }
  return mappings;
}

std::string_view deleted_path(const Mapping& mapping) {
  constexpr std::string_view kDeleted = "deleted: ";
  std::string_view path = mapping.path;
  if (!path.starts_with(kDeleted)) return {};
  path.remove_prefix(kDeleted.size());
  return path;
}

std::string mark_deleted(std::int32_t pid, std::string maps) {
  const std::string now = process_maps(pid).value_or("");
  std::set<std::string> deleted;
  for (std::string_view rest = now; !rest.empty();)
    if (const auto line = parse_maps_line(cut_line(rest)); line && is_deleted(*line))
      deleted.insert(key_of(*line));
  if (deleted.empty()) return maps;
  std::string marked;
  for (std::string_view rest = maps; !rest.empty();) {
    const std::string_view text = cut_line(rest);
    const auto line = parse_maps_line(text);
    marked += text;
    if (line && deleted.contains(key_of(*line).append(kDeletedWord))) marked += kDeletedWord;
    marked += '\n';
  }
  return marked;
}

}  // namespace tailtrace
