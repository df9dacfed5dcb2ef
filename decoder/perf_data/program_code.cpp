#include "decoder/perf_data/program_code.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "decoder/base/types.h"
#include "decoder/code/former_maps.h"
#include "decoder/code/known_code.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/jit_dump.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint32_t kExecutable = 4;  // PROT_EXEC

bool is_file(const MmapEvent& map) {
  return map.path.starts_with('/') && !map.path.starts_with("//");
}

std::string build_id_of(const std::string& path) {
  auto file = ElfFile::open(path);
  return file ? file->build_id() : std::string();
}

std::string shorten(const std::string& id) { return id.empty() ? "none" : id.substr(0, 12); }

}  // namespace

std::string RecordedPrograms::Program::maps() const {
  std::string text;
  for (const auto& [begin, line] : lines) text += line.text;
  return text;
}

std::string RecordedPrograms::Program::former_maps() const {
  std::string text;
  for (auto line = former.rbegin(); line != former.rend(); ++line) text += *line;
  return text;
}

const RecordedPrograms::Program& RecordedPrograms::of(std::int32_t pid) const {
  static const Program kNone;
  auto found = programs_.find(pid);
  return found == programs_.end() ? kNone : found->second;
}

RecordedPrograms::Program* RecordedPrograms::program(std::int32_t pid) {
  auto found = programs_.find(pid);
  if (found != programs_.end()) return &found->second;
  if (programs_.size() >= kMaxPrograms) return nullptr;
  return &programs_[pid];
}

std::optional<Error> RecordedPrograms::problem() const {
  constexpr std::size_t kNamed = 4;
  if (missing_.empty()) return std::nullopt;
  Error error{ErrorCode::kBadInput, "the code of " + missing_.begin()->first + " is not known",
              missing_.begin()->second,
              "put the file that was recorded there, or into perf's cache with "
              "`perf buildid-cache --add`",
              "gaps stand for what ran there"};
  if (missing_.size() == 1) return error;
  error.what = fmt::format("the code of {} files is not known", missing_.size());
  error.why.clear();
  std::size_t named = 0;
  for (const auto& [path, why] : missing_) {
    if (named == kNamed) break;
    error.why += fmt::format("{}{}: {}", named++ == 0 ? "" : "; ", path, why);
  }
  if (named < missing_.size()) error.why += fmt::format("; and {} more", missing_.size() - named);
  return error;
}

bool RecordedPrograms::spend(std::size_t changes) {
  changes_ += changes;
  return changes_ <= kMaxChanges;
}

// What changes at one time changes together.
Epoch RecordedPrograms::new_epoch(Program& program, std::uint64_t time) {
  const Epoch newest = program.image->newest();
  if (!program.begins.empty() && program.begins.back().time == time &&
      program.begins.back().epoch == newest)
    return newest;
  program.begins.push_back({time, {newest.value + 1}});
  return program.begins.back().epoch;
}

// In the place of what was there. Of another file all is other code, whatever its bytes are.
void RecordedPrograms::put_line(Program& program, Address begin, Line line, std::uint64_t time) {
  auto old = program.lines.upper_bound(begin);
  if (old != program.lines.begin() && begin < std::prev(old)->second.end) --old;
  std::optional<Epoch> epoch;
  while (old != program.lines.end() && old->first < line.end) {
    const Line& gone = old->second;
    if (!gone.file.empty() && (gone.file != line.file || gone.origin != line.origin)) {
      if (!epoch) epoch = new_epoch(program, time);
      keep_former(program, gone, *epoch);
    }
    old = program.lines.erase(old);
  }
  if (epoch) (void)program.image->forget(begin, line.end - begin, *epoch).has_value();
  program.lines[begin] = std::move(line);
}

// What went first is given up first.
void RecordedPrograms::keep_former(Program& program, const Line& line, Epoch until) {
  program.former.push_back(fmt::format("{}{} {}", kFormerWord, until.value, line.text));
  program.former_bytes += program.former.back().size();
  for (; program.former_bytes > FormerMaps::kMaxText_bytes; program.former.pop_front())
    program.former_bytes -= program.former.front().size();
}

void RecordedPrograms::mapped(std::uint64_t time, const MmapEvent& map) {
  if (map.protection != 0 && (map.protection & kExecutable) == 0) return;
  const Address begin = map.address, end = map.address + map.size_bytes;
  Program* program = this->program(map.thread.pid);
  if (program == nullptr || end <= begin || map.thread.pid < 0) return;
  pages_ += map.size_bytes / kPage_bytes + 1;
  if (!spend(1) || pages_ > kMaxPages) return;
  ++program->changes;
  const Found& found = find(map);
  generate_until(*program, time);
  if (found.file && is_jit_dump_name(map.path) && program->dumps.insert(map.path).second)
    take_dump(*program, time, found);
  ByteSpan code;
  if (found.file && map.offset_bytes < found.file->bytes().size()) {
    code = found.file->bytes().subspan(map.offset_bytes);
    code = code.first(std::min<std::uint64_t>(code.size(), map.size_bytes));
  }
  const std::string shown = found.file ? found.path : map.path + (is_file(map) ? " (deleted)" : "");
  Line line{end, fmt::format("{:x}-{:x} r-xp {:08x} 00:00 0 {}\n", begin.value, end.value,
                             map.offset_bytes, shown)};
  if (is_file(map)) {
    line.file = shown;
    line.origin = begin.value - map.offset_bytes;
  }
  put_line(*program, begin, std::move(line), time);
  CodeImage& image = *program->image;
  if (code.empty()) {
    if (program->unknown.size() == kMaxUnknown) program->unknown.erase(program->unknown.begin());
    program->unknown.push_back({begin, end});
    if (shows_any_code(image, begin, end))
      (void)image.forget(begin, map.size_bytes, new_epoch(*program, time)).has_value();
    return;
  }
  add_code(*program, time, begin, code, found.file);
}

void RecordedPrograms::add_code(Program& program, std::uint64_t time, Address begin, ByteSpan code,
                                std::shared_ptr<const MappedFile> file) {
  CodeImage& image = *program.image;
  const Address end = begin + code.size();
  const KnownCode known = compare_code(image, begin, code);
  if (known == KnownCode::kSame) return;
  const bool was_unknown = std::erase_if(program.unknown, [&](const auto& range) {
                             return range.first < end && begin < range.second;
                           }) != 0;
  const bool replaces = known == KnownCode::kOther || was_unknown;
  // Nothing that lies in a file is too long for the address space, but for its place.
  (void)image
      .add(begin, code, std::move(file), replaces ? new_epoch(program, time) : image.newest())
      .has_value();
}

// Where the times of both are not of one clock, all of it was made when the file was mapped.
void RecordedPrograms::take_dump(Program& program, std::uint64_t time, const Found& found) {
  auto dump = parse_jit_dump(found.file->bytes(), found.path);
  const Error* problem = !dump ? &dump.error() : nullptr;
  if (dump && !dump->problems.empty()) problem = &dump->problems.front();
  if (problem != nullptr && missing_.size() < kMaxMissing)
    missing_.emplace(found.path, problem->what + ": " + problem->why);
  if (!dump || !spend(dump->loads.size())) return;
  program.changes += dump->loads.size();
  const bool is_timed = dump->is_tsc == files_.has_tsc;
  std::vector<Generated>& all = program.generated;
  for (const JitLoad& made : dump->loads) {
    generated_pages_ += made.size_bytes / kPage_bytes + 1;
    if (generated_pages_ > kMaxGenerated_pages) break;
    all.push_back(
        {is_timed ? std::max(made.time, time) : time, made.address, made.code, found.file});
  }
  // The next one last, and those of one time in the file's order.
  std::ranges::reverse(all);
  std::ranges::stable_sort(all, std::ranges::greater(), &Generated::time);
}

void RecordedPrograms::generate_until(Program& program, std::uint64_t time) {
  std::vector<Generated>& all = program.generated;
  for (; !all.empty() && all.back().time <= time; all.pop_back())
    add_code(program, all.back().time, all.back().begin, all.back().code,
             std::move(all.back().file));
}

void RecordedPrograms::finish() {
  for (auto& [pid, program] : programs_) generate_until(program, ~0ull);
}

void RecordedPrograms::executed(std::uint64_t time, std::int32_t pid) {
  Program* program = this->program(pid);
  if (program == nullptr || !spend(program->changes + 1)) return;
  const auto lines = std::exchange(program->lines, {});
  program->unknown.clear();
  program->generated.clear();
  program->dumps.clear();
  if (program->image->empty()) return;
  const Epoch epoch = program->image->append(CodeImage());
  program->begins.push_back({time, epoch});
  for (const auto& [begin, line] : lines)
    if (!line.file.empty()) keep_former(*program, line, epoch);
}

void RecordedPrograms::forked(std::int32_t pid, std::int32_t parent) {
  auto found = programs_.find(parent);
  if (found == programs_.end() || pid == parent) return;
  if (!spend(found->second.changes + 1)) return;
  Program* child = program(pid);
  if (child == nullptr) return;
  *child = found->second;
  child->image = std::make_shared<CodeImage>(*found->second.image);
}

const RecordedPrograms::Found& RecordedPrograms::find(const MmapEvent& map) {
  std::string id = to_hex(map.build_id);
  if (auto known = files_.build_ids.find(map.path); id.empty() && known != files_.build_ids.end())
    id = known->second;
  const std::string version = id.empty() ? std::to_string(map.inode) : id;
  auto [place, is_new] = found_.try_emplace({map.path, version});
  if (is_new) place->second = look_for(map, id);
  return place->second;
}

RecordedPrograms::Found RecordedPrograms::look_for(const MmapEvent& map,
                                                   const std::string& wanted_id) {
  std::vector<std::string> paths;
  if (is_file(map)) paths.push_back(map.path);
  if (wanted_id.size() > 2 && !files_.build_id_cache.empty())
    for (const char* name : {"elf", "vdso"})
      paths.push_back(fmt::format("{}/.build-id/{}/{}/{}", files_.build_id_cache,
                                  wanted_id.substr(0, 2), wanted_id.substr(2), name));
  std::string why = "there is no such file";
  for (const std::string& path : paths) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const std::string id = wanted_id.empty() ? "" : build_id_of(path);
    const bool is_other =
        wanted_id.empty() ? map.inode != 0 && info.st_ino != map.inode : id != wanted_id;
    if (is_other) {
      why = wanted_id.empty() ? "it is another file than the one that was recorded"
                              : fmt::format("its build id is {}, and {} was recorded", shorten(id),
                                            shorten(wanted_id));
      continue;
    }
    auto file = MappedFile::open(path);
    if (file) return {std::make_shared<const MappedFile>(std::move(*file)), path};
    why = file.error().why;
  }
  if (is_file(map) || map.path.starts_with('['))
    if (missing_.size() < kMaxMissing) missing_.emplace(map.path, std::move(why));
  return {};
}

}  // namespace tailtrace::perf
