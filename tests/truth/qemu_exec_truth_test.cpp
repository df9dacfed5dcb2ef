// Programs that execute something else than an ordinary program: followed, or clearly cut.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/support/qemu_recording.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unfold.h"

namespace tailtrace {
namespace {

Addresses last(Addresses all, std::size_t count) {
  all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(std::min(count, all.size())));
  return all;
}

class QemuExecTruth : public testing::Test {
 protected:
  std::string write_program(const std::string& name, const std::string& content) {
    std::string path = folder_.file(name);
    std::ofstream(path, std::ios::binary) << content;
    ::chmod(path.c_str(), 0755);
    return path;
  }

  // The program vfork_exec, whose first child executes `target`.
  void record(const std::string& target) {
    auto both = step_and_record({built_program("vfork_exec"), target});
    ASSERT_TRUE(both) << both.error().to_string();
    steps_ = std::move(both->steps);
    recording_ = std::move(both->recording);
    ASSERT_GE(recording_.processes.size(), 2u);
  }

  void record_program(std::vector<std::string> program) {
    QemuOptions options = test_options(std::move(program));
    options.environment = {{"LANG=C"}};
    options.ring_records = 1 << 18;
    auto recorded = record_to_end(std::move(options));
    ASSERT_TRUE(recorded) << recorded.error().to_string();
    recording_ = std::move(*recorded);
  }

  const RecordedThread& main_thread(std::size_t process) {
    return recording_.processes.at(process).threads.at(0);
  }
  Addresses history(std::size_t process) {
    Unfolded unfolded = unfold(main_thread(process).snapshot, true);
    EXPECT_EQ(unfolded.problem, "") << "process " << process;
    return unfolded.executed;
  }
  // The first child's history ends with all that stepping saw of it.
  testing::AssertionResult ends_as_stepped() {
    Addresses all = history(1);
    Addresses own = without_iterations(steps_.children.at(0), *main_thread(1).snapshot.code);
    if (all.size() < own.size()) return testing::AssertionFailure() << "it is too short";
    return is_equal(last(std::move(all), own.size()), own);
  }

  TempFolder folder_;
  QemuSteps steps_;
  Recording recording_;
};

TEST_F(QemuExecTruth, AScriptIsFollowedToItsInterpreter) {
  std::string recursion = built_program("recursion");
  std::string script = write_program("script", "#!" + recursion + " one argument\n");
  ASSERT_NO_FATAL_FAILURE(record(script));
  ASSERT_EQ(recording_.processes.size(), 5u);
  EXPECT_TRUE(ends_as_stepped());
  EXPECT_EQ(main_thread(1).state, RingState::kFollowed);
  EXPECT_EQ(recording_.processes[2].program_index, 1u);
  auto steps = step_under_qemu({recursion, "one argument", script, "from-vfork"}, {"LANG=C"});
  ASSERT_TRUE(steps) << steps.error().to_string();
  const CodeImage& code = *main_thread(2).snapshot.code;
  EXPECT_TRUE(is_equal(history(2), without_iterations(steps->threads.at(0), code)));
}

TEST_F(QemuExecTruth, AScriptWhoseInterpreterIsMissingIsNotExecutedAndTheCallerGoesOn) {
  ASSERT_NO_FATAL_FAILURE(record(write_program("script", "#!/nowhere/at/all\n")));
  ASSERT_EQ(recording_.processes.size(), 4u);
  EXPECT_TRUE(ends_as_stepped());
  EXPECT_EQ(main_thread(1).state, RingState::kProcessExited);
}

// What /proc/self is differs between qemu and the program under it, and from one qemu to the next.
TEST_F(QemuExecTruth, AProgramThatExecutesItselfByProcIsFollowed) {
  const std::string program = built_program("executes_itself");
  auto steps = step_under_qemu({program}, {"LANG=C"});
  ASSERT_TRUE(steps) << steps.error().to_string();
  for (const char* by : {"self", "number", "descriptor"}) {
    ASSERT_NO_FATAL_FAILURE(record_program({program, by}));
    EXPECT_EQ(WEXITSTATUS(recording_.status), 49) << by;
    ASSERT_EQ(recording_.processes.size(), 2u) << by;
    EXPECT_EQ(main_thread(0).state, RingState::kFollowed) << by;
    const CodeImage& code = *main_thread(1).snapshot.code;
    EXPECT_TRUE(is_equal(history(1), without_iterations(steps->threads.at(0), code))) << by;
  }
}

// From memory it executes itself by /proc. Where it begins it depends on the length of its name.
TEST_F(QemuExecTruth, AProgramInMemoryWhoseDescriptorIsClosedIsFollowed) {
  const std::string program = built_program("executes_itself");
  auto steps = step_under_qemu({program}, {"LANG=C"});
  ASSERT_TRUE(steps) << steps.error().to_string();
  ASSERT_NO_FATAL_FAILURE(record_program({program, "memory"}));
  EXPECT_EQ(WEXITSTATUS(recording_.status), 49);
  ASSERT_EQ(recording_.processes.size(), 3u);
  EXPECT_EQ(main_thread(1).state, RingState::kFollowed);
  const CodeImage& code = *main_thread(2).snapshot.code;
  const Addresses truth = without_iterations(steps->threads.at(0), code);
  EXPECT_TRUE(is_equal(last(history(2), 2000), last(truth, 2000)));
}

// mov eax, 1; mov ebx, 42; int 0x80 in a 32-bit ELF file (System V ABI, i386 supplement).
std::string program_of_32_bits() {
  constexpr std::uint32_t kBase = 0x8048000;
  const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80};
  const std::uint16_t kinds[] = {2, 3};
  const std::uint32_t words[] = {1, kBase + 84, 52, 0, 0};
  const std::uint16_t sizes[] = {52, 32, 1, 0, 0, 0};
  const std::uint32_t segment[] = {1, 0, kBase, kBase, 84 + sizeof code, 84 + sizeof code, 5, 4096};
  std::string file(
      "\x7f"
      "ELF\x01\x01\x01",
      7);
  file.resize(16);
  auto add = [&](const void* data, std::size_t size) {
    file.append(static_cast<const char*>(data), size);
  };
  add(kinds, sizeof kinds);
  add(words, sizeof words);
  add(sizes, sizeof sizes);
  add(segment, sizeof segment);
  add(code, sizeof code);
  return file;
}

// Whether this kernel runs it at all.
bool runs_natively(const std::string& path) {
  std::string name = path;
  char* argv[] = {name.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv, environ) != 0) return false;
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

TEST_F(QemuExecTruth, AProgramOf32BitsCutsTheHistoryAndSaysSo) {
  std::string program = write_program("program32", program_of_32_bits());
  bool runs = runs_natively(program);
  ASSERT_NO_FATAL_FAILURE(record(program));
  ASSERT_EQ(recording_.processes.size(), 4u);
  EXPECT_TRUE(ends_as_stepped());
  EXPECT_EQ(main_thread(1).state, runs ? RingState::kReplaced : RingState::kProcessExited);
  const BranchRecord& end = main_thread(1).snapshot.records.back();
  EXPECT_EQ(end.kind, RecordKind::kDisable);
  EXPECT_EQ(end.extra, static_cast<std::uint16_t>(runs ? EdgeCause::kExec : EdgeCause::kProcess));
}

}  // namespace
}  // namespace tailtrace
