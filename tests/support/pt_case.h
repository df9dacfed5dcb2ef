// PtCase: one situation of PT decoding in a text file: code, packets and what they mean.
// tests/cases/README.md describes the format.
//
// Threading: values; pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/pt/decoder.h"

namespace tailtrace {

struct PtCase {
  std::string about;
  std::map<std::string, Address> labels;
  std::shared_ptr<CodeImage> code = std::make_shared<CodeImage>();
  pt::DecoderConfig config;
  Bytes trace;
  bool prints_records = false;

  // What each decoder must say, line by line. `expect` stands for both; a decoder of its own
  // section has an entry under its name.
  std::map<std::string, std::vector<std::string>> expected;
  const std::vector<std::string>* expected_of(std::string_view decoder) const;
};

// Errors: kBadInput with the line in `why`.
Result<PtCase> parse_pt_case(std::string_view text);

// What a decoder makes of the case, in the words of the expectations.
std::vector<std::string> run_pt_case(const PtCase& test, pt::Decoder& decoder);

}  // namespace tailtrace
