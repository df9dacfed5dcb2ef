// What is told of a trace when some of its code is not known: what is told of it when all is, with
// holes, and no hole is larger than it has to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/legal_trace.h"
#include "tests/support/pt_case.h"

namespace tailtrace::pt {
namespace {

using Lines = std::vector<std::string>;

bool is_gap(const std::string& line) { return line.starts_with("[error"); }
// Others do as well, but their address is that of an instruction before them.
bool says_where(const std::string& line) {
  return line.starts_with("[enabled") || line.starts_with("[overflow") ||
         line.starts_with("[interrupt");
}

// One that a processor could have sent, and its program without a piece of its code.
struct LegalCase {
  PtCase whole, cut;

  explicit LegalCase(unsigned seed) {
    std::mt19937 random(seed);
    Bytes bytes(4000);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    Choices choices(bytes);
    const LegalProgram program(choices);
    whole.trace = cut.trace = make_legal_trace(choices, program, {});
    whole.config.resumption = cut.config.resumption = Resumption::kAtAddress;
    const std::size_t hurt = random() % program.regions().size();
    for (std::size_t i = 0; i < program.regions().size(); ++i) {
      const LegalProgram::Region& region = program.regions()[i];
      const std::size_t size = region.bytes.size(), begin = random() % size;
      const std::size_t end = std::min(size, begin + 1 + random() % 64);
      EXPECT_TRUE(whole.code->add({region.base}, region.bytes));
      add(region, 0, i == hurt ? begin : size);
      if (i == hurt) add(region, end, size);
    }
  }

  void add(const LegalProgram::Region& region, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    const Bytes piece(region.bytes.data() + begin, region.bytes.data() + end);
    EXPECT_TRUE(cut.code->add({region.base + begin}, piece));
  }
};

Lines told(const PtCase& test) {
  Lines lines = run_pt_case(test, *make_flow_decoder(*test.code, test.config));
  for (std::string& line : lines) {
    // Behind a hole nobody knows where it stood before.
    if (line.starts_with("[resumed")) line.replace(0, 8, "[enabled");
    // And a PSB where tracing is off does not say that a transaction goes on.
    if (line.starts_with("? ")) line.erase(0, 2);
  }
  return lines;
}

struct Resumed {
  unsigned earlier = 0, at_event = 0;
};

// Whether `told` is `all` with holes that end as early as they can.
testing::AssertionResult is_rest_of(const Lines& told, const Lines& all, Resumed& resumed) {
  auto at = all.begin();
  for (auto piece = told.begin(); piece != told.end();) {
    const auto end = std::find_if(piece, told.end(), is_gap);
    auto found = std::search(at, all.end(), piece, end);
    if (found == all.end() && piece != end)
      return testing::AssertionFailure() << "told nowhere else: " << *piece;
    if (piece != told.begin() && piece != end) {
      const auto earliest = std::find_if(at, all.end(), says_where);
      if (found > earliest) return testing::AssertionFailure() << "could begin at " << *earliest;
      ++(found == earliest ? resumed.at_event : resumed.earlier);
    }
    at = found + (end - piece);
    piece = end == told.end() ? end : end + 1;
  }
  return testing::AssertionSuccess();
}

TEST(Resumption, TellsTheRestOfEveryTrace) {
  Resumed resumed;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const LegalCase test(seed);
    const Lines all = told(test.whole);
    ASSERT_EQ(std::ranges::count_if(all, is_gap), 0) << "seed " << seed;
    ASSERT_TRUE(is_rest_of(told(test.cut), all, resumed)) << "seed " << seed;
  }
  EXPECT_GT(resumed.at_event, 100u);
  EXPECT_GT(resumed.earlier, 10u);
}

}  // namespace
}  // namespace tailtrace::pt
