#include "plugin/server/rsp/transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/bytes.h"
#include "plugin/server/rsp/frame.h"

namespace tailtrace::rsp {
namespace {

// Whatever a debugger asks for, an answer stays well inside a packet: escaping may double it.
constexpr std::uint64_t kMaxPiece_bytes = 1 << 16;

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
  static constexpr std::string_view kSpecial = "&<>\"'";
  std::string out;
  for (char c : text)
    if (kSpecial.find(c) == kSpecial.npos)
      out += c;
    else
      out += fmt::format("&#{};", static_cast<int>(c));
  return out;
}

}  // namespace tailtrace::rsp
