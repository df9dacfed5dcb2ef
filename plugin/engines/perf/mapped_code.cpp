#include "plugin/engines/perf/mapped_code.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/symbols/elf_file.h"

namespace tailtrace::perf {
namespace {

bool is_the_same(const MmapEvent& map, const std::string& path) {
  if (!map.build_id.empty()) {
    auto file = ElfFile::open(path);
    return file && file->build_id() == to_hex(map.build_id);
  }
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && found.st_ino == map.inode;
}

}  // namespace

Bytes code_in_file(const MmapEvent& map, std::int32_t pid) {
  if (!map.path.starts_with('/') || map.path.starts_with("//")) return {};
  for (const std::string& path : {fmt::format("/proc/{}/root{}", pid, map.path), map.path}) {
    if (!is_the_same(map, path)) continue;
    auto file = MappedFile::open(path);
    if (!file || file->bytes().size() <= map.offset_bytes) continue;
    ByteSpan code = file->bytes().subspan(map.offset_bytes);
    code = code.first(std::min<std::uint64_t>(code.size(), map.size_bytes));
    return Bytes(code.begin(), code.end());
  }
  return {};
}

}  // namespace tailtrace::perf
