// Names for a toy program: every 64 bytes are a function, every 8 bytes a line, seven lines repeat.
//
// Threading: one thread at a time.
#pragma once

#include <map>

#include "decoder/history/symbolizer.h"
#include "tests/support/toy_program.h"

namespace tailtrace {

class ToySymbols : public Symbolizer {
 public:
  static constexpr std::uint64_t kFunction_bytes = 64;

  // Loaded so many bytes further up than a toy program is.
  explicit ToySymbols(std::uint64_t moved_bytes = 0, std::string module = "/bin/toy")
      : base_(ToyProgram::kBase + moved_bytes), module_(std::move(module)) {}

  const Function& function_at(Address address) override {
    std::uint64_t index = (address - base_) / kFunction_bytes;
    auto [known, added] = functions_.try_emplace(index);
    if (added) {
      Address begin = base_ + index * kFunction_bytes;
      std::string name = "f" + std::to_string(index);
      known->second = {begin, begin + kFunction_bytes, begin, name, name, "", "src/toy.c", module_};
    }
    return known->second;
  }

  std::optional<SourceLine> line_at(Address address, Epoch) override {
    return SourceLine{"src/toy.c", static_cast<unsigned>((address - base_) / 8 % 7 + 1)};
  }

  std::optional<std::uint64_t> address_in_file(Address address, Epoch) override {
    return address - base_;
  }

 private:
  Address base_;
  std::string module_;
  std::map<std::uint64_t, Function> functions_;
};

}  // namespace tailtrace
