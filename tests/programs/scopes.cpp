// Functions whose names are long: of classes in namespaces, of templates, operators.
#include <cstdio>
#include <string>

namespace outer::inner {

struct Worker {
  struct Part {
    int rework(int n);
  };
  ~Worker();
  int rework(int n);
  template <class T>
  int turn(T n);
  int operator+(int n);
  int operator<<(int n);
  operator int();
  operator std::string();
};

Worker::~Worker() { std::puts("done"); }
int Worker::rework(int n) { return n + 1; }
int Worker::Part::rework(int n) { return n + 2; }
int Worker::operator+(int n) { return n; }
int Worker::operator<<(int n) { return n; }
Worker::operator int() { return 3; }
Worker::operator std::string() { return "Worker"; }
template <class T>
int Worker::turn(T n) {
  return static_cast<int>(n) + 1;
}
template <class T>
T again(T n) {
  return n + 1;
}
std::string tagged(int n) { return std::string(static_cast<std::size_t>(n), 'x'); }

}  // namespace outer::inner

namespace {
int hidden(int n) { return n + 5; }
}  // namespace

int rework(int n) { return n + 3; }

int main(int argc, char**) {
  using namespace outer::inner;
  Worker worker;
  auto more = [](int n) { return n + 9; };
  int sum = worker.rework(argc) + rework(argc) + rework(1) + Worker::Part().rework(1);
  sum += worker.turn(argc) + worker.turn(2.0) + worker.turn(3.0);
  sum += again(argc) + static_cast<int>(again(1.0) + again(2.0));
  sum += (worker + 1) + (worker << 2) + static_cast<int>(worker);
  sum += static_cast<int>(static_cast<std::string>(worker).size());
  return sum + hidden(argc) + static_cast<int>(tagged(argc).size()) + more(argc) > 0 ? 0 : 1;
}
