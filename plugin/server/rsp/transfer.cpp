#include "plugin/server/rsp/transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "plugin/server/rsp/frame.h"

namespace tailtrace::rsp {
namespace {

// Whatever a debugger asks for, an answer stays well inside a packet: escaping may double it.
constexpr std::uint64_t kMaxPiece_bytes = 1 << 16;

constexpr std::string_view kEscaped = "&<>\"'\t\n\r";

// Bytes of the character that the text begins with; 0 where that is none of UTF-8, or none that a
// document of XML may hold.
std::size_t character_bytes(std::string_view text) {
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // of so many bytes
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return lead >= 0x20 || kEscaped.find(text.front()) != kEscaped.npos ? 1 : 0;
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  std::uint32_t code = lead & (0x7fu >> size);
  if (lead < 0xc0 || lead >= 0xf8 || size > text.size()) return 0;
  for (const char c : text.substr(1, size - 1)) {
    if ((c & 0xc0) != 0x80) return 0;
    code = code << 6 | (c & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  const bool is_none = is_surrogate || code == 0xfffe || code == 0xffff || code > 0x10ffff;
  return code < kLeast[size] || is_none ? 0 : size;
}

}  // namespace

std::optional<TransferRequest> parse_transfer_read(std::string_view payload) {
  static constexpr std::string_view kXfer = "qXfer:", kRead = ":read:";
  if (!payload.starts_with(kXfer)) return std::nullopt;
  payload.remove_prefix(kXfer.size());
  std::size_t read = payload.find(kRead), last = payload.rfind(':');
  if (read == std::string_view::npos || last < read + kRead.size() - 1) return std::nullopt;
  TransferRequest request;
  request.object = payload.substr(0, read);
  std::size_t annex = read + kRead.size();
  if (last < annex) return std::nullopt;
  request.annex = payload.substr(annex, last - annex);
  std::string_view numbers = payload.substr(last + 1);
  std::size_t comma = numbers.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  auto offset = parse_hex(numbers.substr(0, comma)), length = parse_hex(numbers.substr(comma + 1));
  if (!offset || !length) return std::nullopt;
  request.offset = *offset;
  request.length = *length;
  return request;
}

std::string transfer_answer(std::string_view document, const TransferRequest& request) {
  if (request.offset >= document.size()) return "l";
  std::string_view rest = document.substr(request.offset);
  std::string_view piece = rest.substr(0, std::min(request.length, kMaxPiece_bytes));
  return (piece.size() < rest.size() ? "m" : "l") + escape(piece);
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_bytes(text);
    const char c = text.front();
    if (size == 0)
      out += '?';
    else if (kEscaped.find(c) != kEscaped.npos)
      out += fmt::format("&#{};", static_cast<int>(c));
    else
      out += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

}  // namespace tailtrace::rsp
