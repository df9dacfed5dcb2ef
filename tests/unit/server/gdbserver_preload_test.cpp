// What runs inside gdbserver, here in a tracer of the test's own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace {

constexpr char kLibrary[] = TAILTRACE_BINARY_DIR "/plugin/libtailtrace_gdbserver.so";

// A process that waits for SIGUSR1, its end, and that this one has attached to.
class GdbserverPreload : public testing::Test {
 protected:
  void SetUp() override {
    library_ = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    ptrace_ = reinterpret_cast<Ptrace>(::dlsym(library_, "ptrace"));
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

  using Ptrace = long (*)(int, pid_t, void*, void*);
  void* library_ = nullptr;
  Ptrace ptrace_ = nullptr;
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

}  // namespace
