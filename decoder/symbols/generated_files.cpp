#include "decoder/symbols/generated_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/base/process_status.h"
#include "decoder/symbols/jit_dump.h"
#include "decoder/symbols/perf_map.h"

namespace tailtrace {
namespace {

// Its number where it runs: in a container another one than here.
std::string own_number(std::int32_t pid) {
  const std::string status = process_status(pid).value_or("");
  const std::string_view numbers = status_value(status, "NSpid");
  if (numbers.empty()) return std::to_string(pid);
  return std::string(numbers.substr(numbers.find_last_of('\t') + 1));
}

bool is_believed(const std::string& path, std::int32_t pid) {
  struct stat file {};
  struct stat process {};
  if (::lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return false;
  if (file.st_uid == ::geteuid() || file.st_uid == 0) return true;
  return ::stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0 &&
         file.st_uid == process.st_uid;
}

}  // namespace

std::string perf_map_path(std::int32_t pid) { return fmt::format("/tmp/perf-{}.map", pid); }

std::string perf_map_of(std::int32_t pid) {
  const std::string there = fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, own_number(pid));
  for (const std::string& path : {there, perf_map_path(pid)})
    if (is_believed(path, pid)) return path;
  return {};
}

std::vector<std::string> jit_dumps_of(const std::vector<Mapping>& mappings) {
  std::vector<std::string> paths;
  for (const Mapping& mapping : mappings)
    if (mapping.has_file() && is_jit_dump_name(mapping.path) &&
        std::ranges::find(paths, mapping.path) == paths.end())
      paths.push_back(mapping.path);
  return paths;
}

Result<Bytes> read_generated_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return fail(system_error("cannot open " + path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail(system_error("cannot read " + path));
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kBadInput, "cannot read " + path, "it is no regular file");
  const auto size_bytes = static_cast<std::uint64_t>(info.st_size);
  if (size_bytes > kMaxGeneratedFile_bytes)
    return fail(ErrorCode::kBadInput, "cannot read " + path,
                fmt::format("it has {} bytes, more than {}", size_bytes, kMaxGeneratedFile_bytes));
  return read_rest(fd.get(), path, kMaxGeneratedFile_bytes);
}

GeneratedFunctions read_generated_functions(const std::string& perf_map,
                                            const std::vector<std::string>& jit_dumps,
                                            std::vector<Error>& problems) {
  GeneratedFunctions functions;
  if (!perf_map.empty()) {
    auto bytes = read_generated_file(perf_map);
    Result<void> added =
        bytes ? add_perf_map(as_text(*bytes), perf_map, functions) : fail(std::move(bytes.error()));
    if (!added) problems.push_back(std::move(added.error()));
  }
  for (const std::string& path : jit_dumps) {
    auto bytes = read_generated_file(path);
    auto dump = bytes ? parse_jit_dump(*bytes, path) : fail(std::move(bytes.error()));
    if (!dump) {
      problems.push_back(std::move(dump.error()));
      continue;
    }
    for (const JitLoad& made : dump->loads)
      functions.add(made.address, made.size_bytes, made.name, made.code);
    functions.keep(std::make_shared<const Bytes>(std::move(*bytes)));
    std::ranges::move(dump->problems, std::back_inserter(problems));
  }
  if (!functions.any_replaced()) functions.drop_code();
  return functions;
}

}  // namespace tailtrace
