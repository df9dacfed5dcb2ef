// Comes to arrived() by ways that no call and no return explains: the first argument chooses one.
// Comments name what decided that it came there: WAY#1 last, WAY#2 before that, and so on.
#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>

namespace {

volatile int arrivals, notes, unlikely = 9;
sigjmp_buf landing;
volatile int* volatile nowhere;

__attribute__((noinline)) void arrived() { arrivals = arrivals + 1; }

__attribute__((noinline)) int odd_throws(int n) {
  if (n % 2 != 0)  // throw#3
    throw n;       // throw#2
  return n;
}

void by_exception() {
  try {
    odd_throws(4);
    odd_throws(7);  // throw#4
  } catch (int) {
    arrived();  // throw#1
  }
}

__attribute__((noinline)) int crash() { return notes + *nowhere; }  // jump#4 context#2

void jump_out(int) { siglongjmp(landing, 1); }  // jump#3

void by_jump() {
  std::signal(SIGSEGV, jump_out);
  if (sigsetjmp(landing, 1) == 0)  // jump#2 jump#6
    crash();                       // jump#5
  else
    arrived();  // jump#1
}

__attribute__((noinline)) void recover() {
  arrived();  // context#1
  std::exit(0);
}

void go_elsewhere(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RIP] = reinterpret_cast<greg_t>(recover);
  registers[REG_RSP] = (registers[REG_RSP] & -16) - 8;  // as behind a call
}

void by_context() {
  struct sigaction action = {};
  action.sa_sigaction = go_elsewhere;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  crash();  // context#3
}

__attribute__((noinline)) void note(int) { notes = notes + 1; }
void note_it(int signal) { note(signal); }  // jumps, and does not decide

__attribute__((noinline)) void interrupt_third(int n) {
  if (n == 3) std::raise(SIGUSR1);  // does not decide either
}

void by_handler() {
  std::signal(SIGUSR1, note_it);
  for (int n = 0; n < 5; ++n) {  // handler#3
    interrupt_third(n);
    if (notes != 0) {  // handler#2 handler#4
      arrived();       // handler#1
      return;
    }
  }
}

__attribute__((cold, noinline)) void complain() { notes = notes + 1; }

void by_unlikely_part() {
  for (int n = 0; n < 5; ++n) {                    // unlikely#3
    if (__builtin_expect(n * n == unlikely, 0)) {  // unlikely#2
      complain();
      arrived();  // unlikely#1
    }
  }
}

__attribute__((noinline)) int read_odd(int n) {
  if (n % 2 == 0) return n;  // crash#2
  return *nowhere;           // crash#1
}

void by_nothing() {
  notes = read_odd(4);
  notes = read_odd(7);  // crash#3
}

void (*const kWays[])() = {by_exception, by_jump,          by_context,
                           by_handler,   by_unlikely_part, by_nothing};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) kWays[std::atoi(argv[1])]();  // main#99
}
