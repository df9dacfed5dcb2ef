#include "decoder/export/drcov.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxModules = 0xffff;
constexpr std::uint64_t kMaxBlock_bytes = 0xffff;

// A line of the table is one module.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

template <class Number>
void put(Number number, std::string& bytes) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    bytes.push_back(static_cast<char>(number >> (8 * i) & 0xff));
}

}  // namespace

void DrcovFile::add_block(std::span<const LoadedFile> files, Address begin, Address end) {
  auto behind =
      std::upper_bound(files.begin(), files.end(), begin,
                       [](Address at, const LoadedFile& file) { return at < file.begin; });
  const LoadedFile* file = behind == files.begin() ? nullptr : &*std::prev(behind);
  const bool is_inside = file != nullptr && begin < file->end &&
                         begin - file->begin <= 0xffffffffu && modules_.size() < kMaxModules;
  if (!is_inside) {
    ++left_out_;
    return;
  }
  auto [module, added] = modules_.try_emplace(Module{file->begin, file->end, file->path},
                                              static_cast<std::uint16_t>(modules_.size()));
  for (Address at = begin; at < end;) {
    const std::uint64_t size_bytes = std::min<std::uint64_t>(end - at, kMaxBlock_bytes);
    blocks_.insert({static_cast<std::uint32_t>(at - file->begin),
                    static_cast<std::uint16_t>(size_bytes), module->second});
    at = at + size_bytes;
  }
}

void DrcovFile::add(const History& history, Range range, const FilesIn& files_in) {
  CodeRuns runs;
  add_code_runs(history, range, runs);
  CodeReader code(*history.frame().code);
  std::map<Epoch, std::vector<LoadedFile>> loaded;
  for (const auto& [run, times] : runs.runs) {
    auto [files, added] = loaded.try_emplace(run.epoch);
    if (added) files->second = files_in(run.epoch);
    each_block(run, code,
               [&, &in = files->second](Address begin, Address end) { add_block(in, begin, end); });
  }
}

void DrcovFile::write(const ByteSink& sink) const {
  std::vector<const Module*> modules(modules_.size());
  for (const auto& [module, number] : modules_) modules[number] = &module;
  std::string text = fmt::format(
      "DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\nModule Table: version 2, count {}\n"
      "Columns: id, base, end, entry, path\n",
      modules.size());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const auto& [begin, end, path] = *modules[i];
    text += fmt::format("{:3}, {:#018x}, {:#018x}, {:#018x}, {}\n", i, begin.value, end.value, 0,
                        one_line(path));
  }
  text += fmt::format("BB Table: {} bbs\n", blocks_.size());
  if (!sink(text)) return;
  for (const Block& block : blocks_) {
    std::string bytes;
    put(block.offset_bytes, bytes);
    put(block.size_bytes, bytes);
    put(block.module, bytes);
    if (!sink(bytes)) return;
  }
}

}  // namespace tailtrace
