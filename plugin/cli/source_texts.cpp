#include "plugin/cli/source_texts.h"

#include <filesystem>
#include <system_error>

#include "decoder/base/bytes.h"
#include "decoder/base/file.h"
#include "decoder/base/text.h"

namespace tailtrace {
namespace {

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return lines;
  Result<Bytes> read = read_file(path, SourceTexts::kMaxFile_bytes);
  if (!read) return lines;
  std::string_view rest = as_text(*read);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(printable_line(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

}  // namespace

const std::vector<std::string>& SourceTexts::lines(const std::string& path) {
  auto known = files_.find(path);
  if (known != files_.end()) return known->second;
  if (files_.size() == kMaxFiles) files_.clear();
  return files_[path] = read_lines(path);
}

}  // namespace tailtrace
