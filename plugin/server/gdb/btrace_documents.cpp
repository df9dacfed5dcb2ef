#include "plugin/server/gdb/btrace_documents.h"

#include <fmt/compile.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "decoder/base/types.h"

namespace tailtrace {
namespace {

constexpr std::string_view kBegin =
    "<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<btrace version=\"1.0\">\n";
constexpr std::string_view kEnd = "</btrace>\n";

}  // namespace

std::string_view format_name(BtraceFormat format) {
  return format == BtraceFormat::kBts ? "bts" : "pt";
}

std::string bts_document(const std::vector<BtsBlock>& blocks) {
  std::string text;
  write_bts_document(blocks, [&text](std::string_view piece) {
    text += piece;
    return true;
  });
  return text;
}

void write_bts_document(const std::vector<BtsBlock>& blocks, const ByteSink& sink) {
  constexpr std::size_t kPiece_bytes = 1 << 16;
  std::string text(kBegin);
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    fmt::format_to(std::back_inserter(text),
                   FMT_COMPILE("<block begin=\"{:#x}\" end=\"{:#x}\"/>\n"), block->begin.value,
                   block->end.value);
    if (text.size() < kPiece_bytes) continue;
    if (!sink(text)) return;
    text.clear();
  }
  (void)sink(text.append(kEnd));
}

std::string pt_document(ByteSpan trace) {
  std::string text(kBegin);
  text += "<pt>\n";
  // White space inside the digits is an error to GDB.
  if (!trace.empty()) text += "<raw>\n" + to_hex(trace) + "</raw>\n";
  return text.append("</pt>\n").append(kEnd);
}

std::string conf_document(BtraceFormat format, std::uint64_t size_bytes) {
  return fmt::format(
      "<!DOCTYPE btrace-conf SYSTEM \"btrace-conf.dtd\">\n<btrace-conf version=\"1.0\">\n"
      "<{} size=\"{:#x}\"/>\n</btrace-conf>\n",
      format_name(format), size_bytes);
}

std::uint64_t btrace_buffer_size(std::uint64_t wanted_bytes) {
  return std::clamp(std::bit_ceil(std::min(wanted_bytes, kMaxBtraceSize_bytes)), kPage_bytes,
                    kMaxBtraceSize_bytes);
}

}  // namespace tailtrace
