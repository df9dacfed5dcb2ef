#include "plugin/recorder/traced_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <string>

namespace tailtrace {
namespace {

// A program of two threads: its leader waits for words, the other for a signal.
class TwoThreads {
 public:
  TwoThreads() {
    std::array<int, 2> words{}, said{};
    EXPECT_EQ(::pipe2(words.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(said.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, words[0], 0);
    ::posix_spawn_file_actions_adddup2(&files, said[1], 1);
    std::string program = TAILTRACE_BINARY_DIR "/tests/programs/waits_for_words";
    std::array<char*, 2> argv{program.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &files, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&files);
    ::close(words[0]);
    ::close(said[1]);
    words_ = words[1];
    char ready = 0;
    EXPECT_EQ(::read(said[0], &ready, 1), 1);
    ::close(said[0]);
  }
  ~TwoThreads() {
    if (pid_ > 0) {  // another number means more than a process
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(words_);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  int words_ = -1;
};

// Something happened to a thread that waits to be taken.
void wait_for_what_happens(pid_t tid) {
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(tid), &info, WSTOPPED | WEXITED | WNOWAIT | __WALL),
            0);
}

// All threads stand, each in the system call that it waits in, a step out of which is to be told.
void stand_in_steps(TracedProcess& process) {
  std::set<pid_t> begun;
  while (begun.size() < process.threads().size()) {
    auto event = process.next();
    if (!event) continue;
    ASSERT_EQ(event->kind, TracedProcess::Event::Kind::kBegins);
    begun.insert(event->tid);
  }
  for (pid_t tid : begun) process.resume(tid, 0, true);
  process.stop();
}

TEST(TracedProcess, IsLetGoOfAndGoesOn) {
  TwoThreads program;
  auto process = TracedProcess::attach(program.pid());
  ASSERT_TRUE(process);
  stand_in_steps(*process);
  process->detach({});
  EXPECT_FALSE(process->has_threads());
  EXPECT_EQ(::kill(program.pid(), SIGTERM), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(program.pid(), &status, 0), program.pid());
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

// The leader's end is told behind that of all others, so who waits for it alone waits for ever.
TEST(TracedProcess, IsLetGoOfWhenItWasKilledMeanwhile) {
  for (bool is_told : {false, true}) {
    TwoThreads program;
    auto process = TracedProcess::attach(program.pid());
    ASSERT_TRUE(process);
    stand_in_steps(*process);
    const std::vector<pid_t> threads = process->threads();
    ASSERT_EQ(threads.size(), 2u);
    ::kill(program.pid(), SIGKILL);
    for (pid_t tid : threads) wait_for_what_happens(tid);
    if (is_told) process->next();
    process->detach({});
    EXPECT_FALSE(process->has_threads());
    // Its end is waited for already, or can be.
    EXPECT_TRUE(::waitpid(program.pid(), nullptr, 0) == program.pid() || errno == ECHILD)
        << is_told;
  }
}

TEST(TracedProcess, SaysOfOneThatHasEndedThatItHas) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  auto process = TracedProcess::attach(pid);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, ErrorCode::kGone);
  EXPECT_EQ(process.error().why, "it has ended; its parent has not asked for its status");
  ::waitpid(pid, nullptr, 0);
}

TEST(TracedProcess, NamesTheTracerThatIsThereAlready) {
  TwoThreads program;
  auto first = TracedProcess::attach(program.pid());
  ASSERT_TRUE(first) << first.error().to_string();
  const pid_t second = ::fork();
  if (second == 0) {
    auto refused = TracedProcess::attach(program.pid());
    const bool names_us =
        !refused &&
        refused.error().why == "process " + std::to_string(::getppid()) + " traces it already";
    ::_exit(names_us ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(second, &status, 0), second);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tailtrace
