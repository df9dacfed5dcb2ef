// The history of the qemu engine against what single-stepping the same program saw, instruction by
// instruction.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "decoder/code/code_reader.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "tests/support/qemu_steps.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

using Addresses = std::vector<std::uint64_t>;

const std::vector<std::string> kEnvironment = {"LANG=C", "PATH=/usr/bin:/bin"};

std::string built_program(const std::string& name) {
  return std::string(TAILTRACE_BINARY_DIR) + "/tests/programs/" + name;
}

struct Recorded {
  std::map<unsigned, ThreadSnapshot> threads;  // by the number of their ring
  int status = 0;
};

Result<Recorded> record(const std::vector<std::string>& program, std::uint64_t ring_records) {
  UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  QemuOptions options;
  options.program = program;
  options.environment = kEnvironment;
  options.stdio = {nothing.get(), nothing.get(), 2};
  options.ring_records = ring_records;
  options.qemu_options = {"-seed", "1"};
  auto process = QemuProcess::launch(options);
  if (!process) return fail(std::move(process.error()));
  auto status = process->wait();
  if (!status) return fail(std::move(status.error()));
  auto engine = QemuEngine::open(process->process_folder());
  if (!engine) return fail(std::move(engine.error()));
  auto threads = (*engine)->threads();
  if (!threads) return fail(std::move(threads.error()));
  Recorded result;
  result.status = *status;
  for (unsigned i = 0; i < threads->size(); ++i) {
    auto snapshot = (*engine)->last_snapshot((*threads)[i].thread, ~0ull >> 1);
    if (!snapshot) return fail(std::move(snapshot.error()));
    result.threads.emplace(i, std::move(*snapshot));
  }
  return result;
}

// Iterations of a string instruction are one instruction in a history.
Addresses without_iterations(const Addresses& steps, const CodeImage& code) {
  CodeReader reader(code);
  Addresses result;
  for (std::uint64_t at : steps) {
    bool repeats = false;
    if (!result.empty() && result.back() == at) {
      auto insn = reader.at({at});
      repeats = insn && insn->kind == InstructionClass::kRepString;
    }
    if (!repeats) result.push_back(at);
  }
  return result;
}

testing::AssertionResult is_equal(const Addresses& history, const Addresses& truth) {
  if (history == truth) return testing::AssertionSuccess();
  std::size_t n = std::min(history.size(), truth.size());
  std::size_t i = static_cast<std::size_t>(
      std::mismatch(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(n),
                    truth.begin())
          .first -
      history.begin());
  auto around = [&](const Addresses& list) {
    std::string text;
    for (std::size_t k = i < 4 ? 0 : i - 4; k < std::min(i + 4, list.size()); ++k)
      text += fmt::format("{}{:#x}", k == i ? " >" : " ", list[k]);
    return text;
  };
  return testing::AssertionFailure()
         << "they differ at " << i << "; history (" << history.size() << "):" << around(history)
         << "; truth (" << truth.size() << "):" << around(truth);
}

class QemuTruth : public testing::TestWithParam<const char*> {};

TEST_P(QemuTruth, HistoryIsWhatSteppingSaw) {
  std::vector<std::string> program = {built_program(GetParam())};
  auto truth = step_under_qemu(program, kEnvironment);
  ASSERT_TRUE(truth) << truth.error().to_string();
  auto recorded = record(program, 1 << 20);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_EQ(recorded->status, truth->status);
  ASSERT_EQ(recorded->threads.size(), 1u);
  const ThreadSnapshot& snapshot = recorded->threads.at(0);
  EXPECT_TRUE(snapshot.complete);
  Unfolded history = unfold(snapshot, true);
  EXPECT_EQ(history.problem, "");
  Addresses steps = without_iterations(truth->threads.at(0), *snapshot.code);
  EXPECT_GT(steps.size(), 10000u);
  EXPECT_TRUE(is_equal(history.executed, steps));
}

TEST_P(QemuTruth, ASmallRingHoldsExactlyTheTail) {
  std::vector<std::string> program = {built_program(GetParam())};
  auto truth = step_under_qemu(program, kEnvironment);
  ASSERT_TRUE(truth) << truth.error().to_string();
  auto recorded = record(program, 1 << 10);
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  const ThreadSnapshot& snapshot = recorded->threads.at(0);
  EXPECT_FALSE(snapshot.complete);
  EXPECT_EQ(snapshot.records.size(), (1u << 10) - 1 + 1);
  Unfolded history = unfold(snapshot, true);
  EXPECT_EQ(history.problem, "");
  Addresses steps = without_iterations(truth->threads.at(0), *snapshot.code);
  ASSERT_GE(steps.size(), history.executed.size());
  EXPECT_GT(history.executed.size(), 1000u);
  Addresses tail(steps.end() - static_cast<std::ptrdiff_t>(history.executed.size()), steps.end());
  EXPECT_TRUE(is_equal(history.executed, tail));
}

INSTANTIATE_TEST_SUITE_P(Programs, QemuTruth,
                         testing::Values("recursion", "tail_calls", "exceptions", "signals",
                                         "lazy_binding", "loads_library", "changes_code",
                                         "string_instructions"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tailtrace
