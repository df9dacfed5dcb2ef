// qXfer reads: documents handed over in pieces.
//
// Threading: values, no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tailtrace::rsp {

struct TransferRequest {
  std::string_view object;  // "btrace"
  std::string_view annex;   // "all"
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// `qXfer:OBJECT:read:ANNEX:OFFSET,LENGTH`; nothing for any other packet. An annex may hold ':'.
std::optional<TransferRequest> parse_transfer_read(std::string_view payload);

// `m` and a piece of the document, or `l` and its end.
std::string transfer_answer(std::string_view document, const TransferRequest& request);

// Text as it stands in a document of XML, with '?' for what none can hold: a thread may be named
// with any bytes, and its name ends within a character where it is too long.
std::string xml_escaped(std::string_view text);

}  // namespace tailtrace::rsp
