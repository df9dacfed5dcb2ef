// What `tailtrace decode` prints: the items of a trace, one a line, while they are decoded.
//
// Threading: the main thread.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "decoder/pt/decoder.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {

enum class DecodeItems { kAddresses, kInstructions, kRecords, kEvents };

// A sink that prints. finish() is called once, when the trace is decoded.
class DecodePrinter : public pt::Sink {
 public:
  virtual void finish() = 0;
  std::uint64_t gaps() const { return gaps_; }

 protected:
  std::uint64_t gaps_ = 0;
};

struct DecodePrinterConfig {
  DecodeItems items = DecodeItems::kAddresses;
  JsonForm json = JsonForm::kNone;
  std::FILE* out = stdout;
  std::string name;          // of the trace; empty when there is but one
  std::string decoder;       // for JSON
  bool unknown_cpu = false;  // that the user named
};

// REQUIRES: the code outlives the printer.
std::unique_ptr<DecodePrinter> make_decode_printer(const DecodePrinterConfig& config,
                                                   const CodeImage& code);

}  // namespace tailtrace
