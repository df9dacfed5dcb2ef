// A signal handler that has the program go on elsewhere, behind what is there to fill: INT3, as
// Go's linker and lld put before functions.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

void elsewhere(void);

__asm__(
    ".text\n"
    ".byte 0xcc\n"
    ".type elsewhere, @function\n"
    "elsewhere: call leave\n"
    ".size elsewhere, .-elsewhere\n");

__attribute__((used)) static void leave(void) { _Exit(0); }

static void go_elsewhere(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] = (long)elsewhere;
}

static void work(void) {
  for (;;) continue;
}

int main(void) {
  struct sigaction action = {0};
  action.sa_sigaction = go_elsewhere;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGURG, &action, 0);
  work();
}
