#include "tests/fuzz/fuzz_driver.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::uint64_t seconds = 2, runs = ~0ull, seed = 1;
  std::vector<std::string> files;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    auto number = [&](const char* name, std::uint64_t& value) {
      std::string prefix = std::string("--") + name + "=";
      if (arg.rfind(prefix, 0) != 0) return false;
      value = std::strtoull(arg.c_str() + prefix.size(), nullptr, 10);
      return true;
    };
    if (number("seconds", options.seconds) || number("runs", options.runs) ||
        number("seed", options.seed))
      continue;
    options.files.push_back(arg);
  }
  return options;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Bytes next(const std::vector<Bytes>& pool) {
    Bytes input = pool[below(pool.size())];
    for (std::uint64_t n = 1 + below(8); n != 0; --n) mutate(input, pool);
    return input;
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

 private:
  static constexpr std::size_t kMaxSize_bytes = 1 << 16;

  void mutate(Bytes& b, const std::vector<Bytes>& pool) {
    std::size_t at = b.empty() ? 0 : below(b.size());
    auto pos = b.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(7)) {
      case 0:
        if (!b.empty()) b[at] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (!b.empty()) b[at] = static_cast<std::uint8_t>(random_());
        break;
      case 2:
        b.resize(at);
        break;
      case 3:
        b.insert(pos, 1 + below(9), static_cast<std::uint8_t>(random_()));
        break;
      case 4:
        if (!b.empty()) b.erase(pos, pos + static_cast<std::ptrdiff_t>(1 + below(b.size() - at)));
        break;
      case 5: {  // a run of another input
        const Bytes& other = pool[below(pool.size())];
        if (other.empty()) break;
        std::size_t from = below(other.size()), size = 1 + below(other.size() - from);
        b.insert(pos, other.begin() + static_cast<std::ptrdiff_t>(from),
                 other.begin() + static_cast<std::ptrdiff_t>(from + size));
        break;
      }
      default: {  // an interesting number
        static constexpr std::uint64_t kNumbers[] = {
            0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, ~0ull, 1ull << 63, 1ull << 47};
        std::uint64_t value = kNumbers[below(std::size(kNumbers))];
        std::size_t width = std::size_t{1} << below(4);
        if (at + width <= b.size()) std::memcpy(b.data() + at, &value, width);
      }
    }
    if (b.size() > kMaxSize_bytes) b.resize(kMaxSize_bytes);
  }

  std::mt19937_64 random_;
};

// Kept when the target dies, removed when it does not.
class LastInput {
 public:
  LastInput() : path_("fuzz-input-" + std::to_string(::getpid())) {}
  ~LastInput() { ::unlink(path_.c_str()); }
  void save(const Bytes& input) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(input.data()),
               static_cast<std::streamsize>(input.size()));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

int fuzz_main(int argc, char** argv) {
  Options options = parse(argc, argv);
  std::vector<Bytes> pool = fuzz_seeds();
  for (const std::string& name : options.files) {
    Result<Bytes> bytes = read_file(name, 1 << 24);
    if (!bytes) {
      std::fprintf(stderr, "%s\n", bytes.error().to_string().c_str());
      return 2;
    }
    pool.push_back(std::move(*bytes));
  }
  if (pool.empty()) pool.emplace_back();
  LastInput last;
  std::fprintf(stderr, "an input that crashes is kept in %s (seed %llu)\n", last.path().c_str(),
               static_cast<unsigned long long>(options.seed));
  std::uint64_t done = 0;
  for (const Bytes& seed : pool) {
    last.save(seed);
    fuzz_one(seed);
    ++done;
  }
  Mutator mutator(options.seed);
  auto end = Clock::now() + std::chrono::seconds(options.seconds);
  while (done < options.runs && Clock::now() < end) {
    Bytes input = mutator.next(pool);
    last.save(input);
    fuzz_one(input);
    ++done;
  }
  std::printf("%llu inputs, no failure\n", static_cast<unsigned long long>(done));
  return 0;
}

}  // namespace tailtrace

int main(int argc, char** argv) { return tailtrace::fuzz_main(argc, argv); }
