// What runs inside gdbserver, here in a tracer of the test's own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include "plugin/server/below/gdbserver_preload/new_threads.h"

namespace {

constexpr char kLibrary[] = TAILTRACE_BINARY_DIR "/plugin/libtailtrace_gdbserver.so";

// A process that waits for SIGUSR1, its end, and that this one has attached to.
class GdbserverPreload : public testing::Test {
 protected:
  void SetUp() override {
    library_ = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    ptrace_ = reinterpret_cast<Ptrace>(::dlsym(library_, "ptrace"));
    waitpid_ = reinterpret_cast<Waitpid>(::dlsym(library_, "waitpid"));
    const sighandler_t before = ::signal(SIGUSR1, [](int) { ::_exit(0); });
    pid_ = ::fork();
    if (pid_ == 0)
      for (;;) ::pause();
    ::signal(SIGUSR1, before);
    ASSERT_EQ(ptrace_(PTRACE_ATTACH, pid_, nullptr, nullptr), 0);
    ASSERT_EQ(signal_of_next_stop(), SIGSTOP);
  }
  void TearDown() override {
    if (pid_ > 0) {  // another number means more than a process
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (library_ != nullptr) ::dlclose(library_);
  }

  int signal_of_next_stop() const {
    int status = 0;
    return ::waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
  }
  long resume(int request, long signal) const {
    return ptrace_(request, pid_, nullptr, reinterpret_cast<void*>(signal));
  }
  // Once let go of, it ends when it is sent its signal, or else stops by the one it got before.
  bool goes_on() const {
    ::kill(pid_, SIGUSR1);
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFEXITED(status);
  }

  // It stands, and gdbserver knows.
  void stop() const {
    EXPECT_EQ(resume(PTRACE_CONT, 0), 0);
    ::kill(pid_, SIGUSR2);
    wait_until(WSTOPPED);
    EXPECT_EQ(waitpid_(-1, nullptr, WNOHANG | __WALL), pid_);
  }
  void kill() const {
    ::kill(pid_, SIGKILL);
    wait_until(WEXITED);
  }
  void wait_until(int what) const {
    siginfo_t seen{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &seen, what | WNOWAIT), 0);
  }
  // In all-stop it waits for nothing else.
  void wait_for_debugger(nfds_t polled_count) const {
    pollfd polled[2] = {{-1, 0, 0}, {-1, 0, 0}};
    reinterpret_cast<decltype(&::poll)>(::dlsym(library_, "poll"))(polled, polled_count, 0);
  }
  // Whether gdbserver is told of its end.
  bool is_told(pid_t wanted) {
    int status = 0;
    if (waitpid_(wanted, &status, WNOHANG | __WALL) != pid_) return false;
    pid_ = 0;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  using Ptrace = long (*)(int, pid_t, void*, void*);
  using Waitpid = pid_t (*)(pid_t, int*, int);
  void* library_ = nullptr;
  Ptrace ptrace_ = nullptr;
  Waitpid waitpid_ = nullptr;
  pid_t pid_ = 0;
};

TEST_F(GdbserverPreload, TheSignalOfAttachingDoesNotStopAProcessThatIsLetGoOf) {
  EXPECT_EQ(resume(PTRACE_DETACH, SIGSTOP), 0);
  EXPECT_TRUE(goes_on());
}

TEST_F(GdbserverPreload, NorOneThatIsResumed) {
  EXPECT_EQ(resume(PTRACE_CONT, SIGSTOP), 0);
  ::kill(pid_, SIGUSR1);
  EXPECT_EQ(signal_of_next_stop(), SIGUSR1);
}

TEST_F(GdbserverPreload, NorOneThatIsResumedUpToASystemCall) {
  EXPECT_EQ(resume(PTRACE_SYSCALL, SIGSTOP), 0);
  EXPECT_EQ(signal_of_next_stop(), SIGTRAP);  // which it begins anew
}

TEST_F(GdbserverPreload, OneThatItStoppedItselfGoesOnToo) {
  EXPECT_EQ(resume(PTRACE_CONT, 0), 0);
  ::syscall(SYS_tkill, pid_, SIGSTOP);
  ASSERT_EQ(signal_of_next_stop(), SIGSTOP);
  EXPECT_EQ(resume(PTRACE_DETACH, SIGSTOP), 0);
  EXPECT_TRUE(goes_on());
}

TEST_F(GdbserverPreload, OneThatSomebodySendsDoes) {
  EXPECT_EQ(resume(PTRACE_CONT, 0), 0);
  ::kill(pid_, SIGSTOP);
  ASSERT_EQ(signal_of_next_stop(), SIGSTOP);
  EXPECT_EQ(resume(PTRACE_DETACH, SIGSTOP), 0);
  EXPECT_FALSE(goes_on());
}

TEST_F(GdbserverPreload, OtherSignalsAreDelivered) {
  EXPECT_EQ(resume(PTRACE_DETACH, SIGTERM), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

// Where the registers of a process that is traced lie in what the kernel tells of it.
void* place_of(std::size_t offset) { return reinterpret_cast<void*>(offset); }

TEST_F(GdbserverPreload, NoWatchpointStoppedAThreadThatIsGone) {
  const auto kStatus = place_of(offsetof(user, u_debugreg) + 6 * sizeof(long));
  ::kill(pid_, SIGKILL);
  ASSERT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  errno = 0;
  EXPECT_EQ(ptrace_(PTRACE_PEEKUSER, pid_, kStatus, nullptr), 0);
  EXPECT_EQ(errno, 0);
  EXPECT_EQ(ptrace_(PTRACE_PEEKUSER, pid_, place_of(offsetof(user, regs.rip)), nullptr), -1);
  EXPECT_EQ(errno, ESRCH);
  pid_ = 0;
}

TEST_F(GdbserverPreload, DebugRegistersAreWhatTheyAre) {
  const auto kFirst = place_of(offsetof(user, u_debugreg));
  ASSERT_EQ(ptrace_(PTRACE_POKEUSER, pid_, kFirst, place_of(0x1234)), 0);
  errno = 0;
  EXPECT_EQ(ptrace_(PTRACE_PEEKUSER, pid_, kFirst, nullptr), 0x1234);
  EXPECT_EQ(errno, 0);
  EXPECT_EQ(ptrace_(PTRACE_PEEKUSER, pid_, place_of(offsetof(user, u_debugreg) + 1), nullptr), -1);
  EXPECT_EQ(errno, EIO);  // the kernel's answer to what is no register
}

// It would have stopped the others, and told of a thread that it no longer knew.
TEST_F(GdbserverPreload, AThreadThatStandsEndsWhenItIsResumed) {
  stop();
  kill();
  EXPECT_FALSE(is_told(-1));
  EXPECT_EQ(resume(PTRACE_CONT, 0), 0);
  EXPECT_TRUE(is_told(-1));
}

// One of several that have stopped is told of later, when nothing was resumed.
TEST_F(GdbserverPreload, AThreadThatStandsSinceTheLastStopEndsThenToo) {
  wait_for_debugger(1);
  stop();
  kill();
  EXPECT_FALSE(is_told(-1));
  wait_for_debugger(1);
  EXPECT_FALSE(is_told(-1));
  EXPECT_EQ(resume(PTRACE_CONT, 0), 0);
  EXPECT_TRUE(is_told(-1));
}

TEST_F(GdbserverPreload, AThreadThatStandsEndsAtOnceInNonStop) {
  wait_for_debugger(2);
  stop();
  kill();
  EXPECT_TRUE(is_told(-1));
}

TEST_F(GdbserverPreload, AThreadThatIsAskedForHasEnded) {
  stop();
  kill();
  EXPECT_FALSE(is_told(-1));
  EXPECT_TRUE(is_told(pid_));
}

TEST_F(GdbserverPreload, AThreadThatRunsEndsAtOnce) {
  stop();
  EXPECT_EQ(resume(PTRACE_SYSCALL, 0), 0);  // as where system calls are caught
  kill();
  EXPECT_TRUE(is_told(-1));
}

void* ends_at_once(void*) { return nullptr; }

TEST(GdbserverPreloadThreads, AreToldOfBeforeTheyRun) {
  int line[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
  ::setenv(tailtrace::kNewThreadsVariable, std::to_string(line[1]).c_str(), 1);
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_EQ(::getenv(tailtrace::kNewThreadsVariable), nullptr);
  auto ptrace = reinterpret_cast<long (*)(int, pid_t, void*, void*)>(::dlsym(library, "ptrace"));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(line[0]);
    ::raise(SIGSTOP);
    pthread_t thread;
    ::_exit(::pthread_create(&thread, nullptr, ends_at_once, nullptr));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_EQ(ptrace(PTRACE_SEIZE, pid, nullptr, reinterpret_cast<void*>(PTRACE_O_TRACECLONE)), 0);
  ::kill(pid, SIGCONT);
  while (::waitpid(pid, &status, 0) == pid && status >> 16 != PTRACE_EVENT_CLONE)
    ASSERT_EQ(::ptrace(PTRACE_CONT, pid, nullptr, nullptr), 0);
  std::int32_t told = 0;
  std::thread listener([&] {
    EXPECT_EQ(::recv(line[0], &told, sizeof told, 0), ssize_t{sizeof told});
    EXPECT_EQ(::send(line[0], "", 1, 0), 1);
  });
  unsigned long made = 0;
  EXPECT_EQ(ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &made), 0);
  listener.join();
  EXPECT_EQ(told, static_cast<std::int32_t>(made));
  ::close(line[0]);
  EXPECT_EQ(ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &made), 0);  // nobody is there any more
  ::kill(pid, SIGKILL);
  for (pid_t traced : {told, pid}) ::waitpid(traced, &status, __WALL);
  ::dlclose(library);
  ::close(line[1]);
}

}  // namespace
