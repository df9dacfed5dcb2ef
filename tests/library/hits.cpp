// Four places and a fifth: who holds the debug registers, and who gives way. Compiled against the
// installed library, see CMakeLists.txt.
#include <cstdio>
#include <tailtrace/tailtrace.hpp>

static volatile long variables[5];

int main() {
  using namespace tailtrace_api;
  try {
    Watch watch(0);
    auto place_of = [](int number) {
      Place place;
      place.address = reinterpret_cast<std::uint64_t>(&variables[number]);
      place.on = TT_WRITE;
      place.width = sizeof variables[0];
      place.name = "variable " + std::to_string(number);
      place.flexible = number == 0;
      return place;
    };
    for (int number = 0; number < 4; ++number) watch.add(place_of(number));
    for (volatile long& variable : variables) variable = 1;
    // There is no register left: the flexible place gives its own away and waits.
    const int fifth = watch.add(place_of(4));
    for (volatile long& variable : variables) variable = 2;
    for (int place = 0; place < 5; ++place)
      std::printf("variable %d: %llu writes%s\n", place,
                  static_cast<unsigned long long>(watch.count(place)),
                  watch.waits(place) ? ", waits for a register" : "");
    const bool is_right = watch.waits(0) && watch.count(0) == 1 && watch.count(3) == 2 &&
                          watch.count(fifth) == 1 && watch.hits(3).back().number == 1;
    // A sixth place that nobody gives way to.
    Place sixth = place_of(0);
    sixth.flexible = false;
    try {
      watch.add(sixth);
    } catch (const Failure& failure) {
      std::printf("error: %s\n", failure.what());
      return is_right && failure.why().find("variable 4") != std::string::npos ? 0 : 1;
    }
    return 1;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return failure.code();
  }
}
