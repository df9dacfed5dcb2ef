// Throws through frames with clean-ups, rethrows, and catches by type.
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

struct Guard {
  explicit Guard(int* counter) : counter_(counter) {}
  ~Guard() { ++*counter_; }
  int* counter_;
};

int cleanups = 0;

void fall(int depth, int what) {
  Guard guard(&cleanups);
  if (depth > 0) return fall(depth - 1, what);
  if (what == 0) throw std::runtime_error("deep");
  if (what == 1) throw 42;
  throw std::string("text");
}

int attempt(int what) {
  try {
    try {
      fall(6, what);
    } catch (const std::string&) {
      throw;
    }
  } catch (const std::exception& e) {
    return e.what()[0];
  } catch (int n) {
    return n;
  } catch (const std::string& s) {
    return static_cast<int>(s.size());
  }
  return 0;
}

}  // namespace

int main() {
  int sum = 0;
  for (int what = 0; what < 3; ++what) sum += attempt(what);
  std::printf("%d %d\n", sum, cleanups);
  return 0;
}
