// Names of many kinds: methods, a namespace, a template, a static function, calls into libraries,
// a lambda, a local class. What it computes does not matter; that it runs all of them does.
#include <cstdio>
#include <cstdlib>
#include <string>

namespace sample {

class Worker {
 public:
  int step(int n);
  static int count;
};

int Worker::count = 0;

int Worker::step(int n) {
  count += n;
  return n == 0 ? count : step(n - 1);
}

template <class T>
T twice(T value) {
  return value + value;
}

template int twice<int>(int);
template std::string twice<std::string>(std::string);

}  // namespace sample

static int hidden(int n) { return n * 3; }

extern "C" int plain(int n) {
  struct Local {
    static int add(int a, int b) { return a + b; }
  };
  return Local::add(n, hidden(n));
}

int main(int argc, char**) {
  sample::Worker worker;
  auto lambda = [&](int n) { return worker.step(n) + argc; };
  std::string text = sample::twice(std::string("ab"));
  int sum = lambda(3) + plain(argc) + sample::twice(argc) + static_cast<int>(text.size());
  std::puts(text.c_str());
  return std::abs(sum) == 0 ? 1 : 0;
}
