// What `tailtrace decode` works on: raw traces, each with its code and its processor.
//
// Threading: the main thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "decoder/code/code_image.h"
#include "decoder/pt/decoder.h"

namespace tailtrace {

// One stream of packets.
struct DecodeJob {
  std::string name;                   // "thread 4211", "cpu 3"; empty for a lone file
  std::shared_ptr<const void> owner;  // of the trace
  ByteSpan trace;                     // empty when the file is
  std::shared_ptr<const CodeImage> code;
  pt::DecoderConfig config;
};

struct DecodeRequest {
  std::string trace_path;          // PT bytes, LLDB's trace.json, or its folder
  std::vector<std::string> codes;  // as parse_code_file() takes them
  std::string cpu;                 // "6/85/4"; empty: unknown, or as a bundle says
  std::optional<std::int32_t> tid;
};

struct DecodeInput {
  std::vector<DecodeJob> jobs;
  std::vector<std::string> notes;  // what was missing and could be done without, one line each
};

// Errors: kUsage for arguments that cannot be understood; those of reading files.
Result<DecodeInput> open_decode_input(DecodeRequest request);

// "6/85/4" or "6/85", decimal or with 0x; "none": one that is not known. Errors: kUsage.
Result<pt::Cpu> parse_cpu(const std::string& text);

// What to tell the user where the processor is named and not known.
std::optional<std::string> note_of_cpu(const pt::Cpu& cpu);

// The address ranges of a trace's filters: "0x401000-0x401fff", both bytes inside. First all to
// which tracing was restricted, then those that stop it. Errors: kUsage, also for more than four.
Result<std::array<pt::AddressFilter, 4>> parse_filters(const std::vector<std::string>& filters,
                                                       const std::vector<std::string>& stops);

// Splits "FILE@0x1000" at the last '@' that an address follows; without one the address is empty.
// "FILE:0x200-0x300@0x1000" is a piece of a file, without its last number to the file's end.
struct CodeFile {
  struct Piece {
    std::uint64_t first_bytes = 0;
    std::optional<std::uint64_t> end_bytes;
  };
  std::string path;
  std::optional<Address> at;
  std::optional<Piece> piece;  // only where there is an address
};
CodeFile parse_code_file(const std::string& text);

// A perf.data file holds Intel PT in pieces, with headers between them. Errors: it is one.
Result<void> refuse_perf_data(const std::string& path, ByteSpan bytes);

// Adds an ELF file's executable segments, or the whole of any other file, which needs an address.
// What begins like an ELF file and is none is such a file, too, and a piece of any.
Result<void> add_code_file(CodeImage& image, const CodeFile& file);

}  // namespace tailtrace
