// Control that leaves functions in other ways than by returning: coroutines that are suspended and
// resumed, stacks that are changed, a longjmp over several frames, and a signal's handler.
#include <ucontext.h>

#include <coroutine>
#include <csetjmp>
#include <csignal>

namespace {

struct Numbers {
  struct promise_type {
    int value = 0;
    Numbers get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int next) {
      value = next;
      return {};
    }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};

Numbers count(int end) {
  for (int i = 0; i < end; ++i) co_yield i;
}

int use_coroutine() {
  Numbers numbers = count(4);
  int sum = 0;
  while (!numbers.handle.done()) {
    numbers.handle.resume();
    sum += numbers.handle.promise().value;
  }
  numbers.handle.destroy();
  return sum;
}

ucontext_t home, away;
char stack[65536];
volatile int steps;

void on_other_stack() {
  for (int i = 0; i < 3; ++i) {
    steps = steps + 1;
    swapcontext(&away, &home);
  }
}

void change_stacks() {
  getcontext(&away);
  away.uc_stack.ss_sp = stack;
  away.uc_stack.ss_size = sizeof stack;
  away.uc_link = &home;
  makecontext(&away, on_other_stack, 0);
  for (int i = 0; i < 3; ++i) swapcontext(&home, &away);
}

std::jmp_buf out;

[[gnu::noipa]] void leave() { std::longjmp(out, 1); }

[[gnu::noipa]] void deeper(int depth) {
  if (depth != 0)
    deeper(depth - 1);
  else
    leave();
  steps = steps + 1;
}

int jump_out() {
  if (setjmp(out) != 0) return 1;
  deeper(4);
  return 0;
}

void handle(int) { steps = steps + 1; }

}  // namespace

int main() {
  std::signal(SIGUSR1, handle);
  int sum = use_coroutine();
  change_stacks();
  sum += jump_out();
  std::raise(SIGUSR1);
  return sum + steps == 14 ? 0 : 1;
}
