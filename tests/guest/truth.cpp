#include "tests/guest/truth.h"

#include <cassert>
#include <fstream>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

const char* const kLog = "/sys/kernel/debug/fakepmu/truth";
constexpr unsigned kTidShift = 48;  // above addresses of user code
constexpr std::size_t kMaxLog_bytes = 64u << 20;

}  // namespace

void reset_truth() {
  std::ofstream log(kLog);
  log << "reset";
  log.close();
  assert(log);
}

std::vector<Address> read_truth(std::int32_t tid) {
  std::ifstream log(kLog, std::ios::binary);
  std::vector<Address> executed;
  std::uint64_t address;
  while (log.read(reinterpret_cast<char*>(&address), sizeof address)) {
    const auto of = static_cast<std::int32_t>(address >> kTidShift);
    if (tid == 0 || of == tid) executed.push_back({address & ((1ull << kTidShift) - 1)});
    assert(executed.size() < kMaxLog_bytes / sizeof address);
  }
  return executed;
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
