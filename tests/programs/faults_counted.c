// Faults whose handlers asked for no siginfo: a loop reads ten bytes and faults on the eleventh,
// three times; and an instruction that no processor has is stepped over, twenty times.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { kPage = 4096, kReadable = 10, kScans = 3, kRounds = 20 };

static sigjmp_buf back;

static void leave(int signal) { siglongjmp(back, signal); }

// The third argument is there without SA_SIGINFO, too.
static void step_over(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

// What the kernel leaves unwritten of a handler's frame is this.
__attribute__((noinline)) static void dirty_the_stack(void) {
  volatile int below[1200];
  for (int i = 0; i < 1200; ++i) below[i] = -1;
}

void scan(const char* from);
void count_to(int n);
__asm__(
    ".globl scan, count_to\n"
    ".type scan, @function\n"
    "scan: xor %eax, %eax\n"
    "1: addb (%rdi), %al\n"
    "inc %rdi\n"
    "jmp 1b\n"
    ".size scan, . - scan\n"
    ".type count_to, @function\n"
    "count_to: xor %eax, %eax\n"
    "1: inc %eax\n"
    "ud2\n"
    "cmp %edi, %eax\n"
    "jl 1b\n"
    "ret\n"
    ".size count_to, . - count_to\n");

int main(void) {
  char* memory = mmap(0, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(memory + kPage, kPage, PROT_NONE);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = leave;
  sigaction(SIGSEGV, &action, 0);
  for (int i = 0; i < kScans; ++i) {
    dirty_the_stack();
    if (sigsetjmp(back, 1) == 0) scan(memory + kPage - kReadable);
  }
  action.sa_sigaction = step_over;
  sigaction(SIGILL, &action, 0);
  dirty_the_stack();
  count_to(kRounds);
  return 0;
}
