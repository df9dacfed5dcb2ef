#include "tests/guest/truth.h"

#include <cassert>
#include <cstring>
#include <fstream>
#include <set>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

const char* const kLog = "/sys/kernel/debug/fakepmu/truth";
constexpr unsigned kTidShift = 48;  // above the addresses, which repeat their last bit
constexpr std::size_t kMaxLog_bytes = 64u << 20;

}  // namespace

void reset_truth() {
  std::ofstream log(kLog);
  log << "reset";
  log.close();
  assert(log);
}

template <class See>
void each_in_log(See see) {
  Result<Bytes> log = read_file(kLog, kMaxLog_bytes);
  assert(log);
  std::uint64_t entry;
  for (std::size_t at = 0; at + sizeof entry <= log->size(); at += sizeof entry) {
    std::memcpy(&entry, log->data() + at, sizeof entry);
    const auto address = static_cast<std::int64_t>(entry << (64 - kTidShift)) >> (64 - kTidShift);
    see(static_cast<std::int32_t>(entry >> kTidShift), {static_cast<std::uint64_t>(address)});
  }
}

std::vector<Address> read_truth(std::int32_t tid) {
  std::vector<Address> executed;
  std::int32_t last = 0;
  each_in_log([&](std::int32_t of, Address address) {
    if (tid != 0 && of != tid) return;
    const bool repeated = !executed.empty() && last == of && executed.back() == address;
    if (!repeated) executed.push_back(address);
    last = of;
  });
  return executed;
}

std::vector<std::int32_t> traced_threads() {
  std::set<std::int32_t> threads;
  each_in_log([&](std::int32_t of, Address) { threads.insert(of); });
  return {threads.begin(), threads.end()};
}

ModuleParameter::ModuleParameter(const std::string& name, const std::string& value)
    : path_("/sys/module/fakepmu/parameters/" + name) {
  std::getline(std::ifstream(path_), before_);
  std::ofstream file(path_);
  file << value;
  file.close();
  assert(file);
}

ModuleParameter::~ModuleParameter() { std::ofstream(path_) << before_; }

}  // namespace tailtrace
