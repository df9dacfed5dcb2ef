// Runs every file of tests/cases/pt with both decoders.
#include <gtest/gtest.h>

#include <filesystem>

#include "decoder/base/file.h"
#include "tests/support/pt_case.h"

namespace tailtrace {
namespace {

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(TAILTRACE_SOURCE_DIR "/tests/cases/pt"))
    if (entry.path().extension() == ".case") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

void run(const PtCase& test, std::unique_ptr<pt::Decoder> decoder) {
  const auto* expected = test.expected_of(decoder->name());
  ASSERT_TRUE(expected) << "nothing is expected of " << decoder->name();
  EXPECT_EQ(joined(run_pt_case(test, *decoder)), joined(*expected))
      << test.about << "\nas " << decoder->name() << " sees it";
}

class PtCaseFile : public testing::TestWithParam<std::string> {};

TEST_P(PtCaseFile, MeansTheSameToBothDecoders) {
  auto text = read_file(TAILTRACE_SOURCE_DIR "/tests/cases/pt/" + GetParam() + ".case", 1 << 20);
  ASSERT_TRUE(text) << text.error().to_string();
  auto test = parse_pt_case(as_text(*text));
  ASSERT_TRUE(test) << test.error().to_string();
  run(*test, pt::make_flow_decoder(*test->code, test->config));
  run(*test, pt::make_libipt_decoder(*test->code, test->config));
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pt, PtCaseFile, testing::ValuesIn(case_names()), test_name);

}  // namespace
}  // namespace tailtrace
