// The documents that GDB reads with qXfer:btrace and qXfer:btrace-conf, exactly as its own server
// writes them.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/export/sinks.h"
#include "plugin/server/gdb/bts_blocks.h"
#include "plugin/server/recording/btrace_format.h"

namespace tailtrace {

// "bts", "pt"
std::string_view format_name(BtraceFormat format);

// Blocks are given oldest first; the document has them newest first. No blocks: "nothing new".
std::string bts_document(const std::vector<BtsBlock>& blocks);
// The same in pieces.
void write_bts_document(const std::vector<BtsBlock>& blocks, const ByteSink& sink);

// Without bytes: "nothing new". No processor is named: GDB then applies no errata.
std::string pt_document(ByteSpan trace);

std::string conf_document(BtraceFormat format, std::uint64_t size_bytes);

// The size that a trace buffer gets when `wanted_bytes` are asked for: a power of two of pages,
// at most kMaxBtraceSize_bytes.
constexpr std::uint64_t kMaxBtraceSize_bytes = 64u << 20;
std::uint64_t btrace_buffer_size(std::uint64_t wanted_bytes);

}  // namespace tailtrace
