#include "plugin/engines/qemu_plugin/module_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "plugin/engines/qemu/session_format.h"

namespace tailtrace {
namespace {

constexpr std::size_t kFirst_bytes = 64 << 10;

std::string own_maps() {
  std::string text;
  int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char chunk[4096];
  for (ssize_t n; (n = ::read(fd, chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(n));
  ::close(fd);
  return text;
}

}  // namespace

void ModuleMap::see(std::uint64_t pc, std::uint64_t guest_base, const std::string& folder) {
  if (folder != folder_) begin(folder);
  if (knows(pc)) return;
  read_maps(guest_base);
  // Memory that the kernel does not list, as its own page of system calls.
  if (!knows(pc)) known_[pc & ~std::uint64_t{4095}] = (pc | 4095) + 1;
}

bool ModuleMap::knows(std::uint64_t pc) const {
  auto after = known_.upper_bound(pc);
  return after != known_.begin() && pc < std::prev(after)->second;
}

// A forked process goes on in a folder of its own, with what its parent had mapped.
void ModuleMap::begin(const std::string& folder) {
  if (file_.data() != nullptr) ::munmap(file_.data(), file_.size_bytes());
  file_ = {};
  folder_ = folder;
  if (!file_.create(folder + "/" + kMapsName, kMaxText_bytes, kFirst_bytes)) return;
  std::string text;
  text.swap(text_);
  add(text);
}

void ModuleMap::read_maps(std::uint64_t guest_base) {
  known_.clear();
  std::string maps = own_maps();
  for (std::size_t at = 0, end; (end = maps.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string line = maps.substr(at, end + 1 - at);
    std::uint64_t first = 0, last = 0;
    int rest = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 "%n", &first, &last, &rest) != 2) continue;
    if (first < guest_base) continue;
    known_[first - guest_base] = last - guest_base;
    if (line.find('/') == std::string::npos) continue;
    char range[40];
    std::snprintf(range, sizeof range, "%" PRIx64 "-%" PRIx64, first - guest_base,
                  last - guest_base);
    line.replace(0, static_cast<std::size_t>(rest), range);
    if (text_.find(line) == std::string::npos) add(line);
  }
}

void ModuleMap::add(const std::string& line) {
  std::size_t end = text_.size() + line.size();
  if (file_.data() == nullptr || end >= kMaxText_bytes || !file_.grow_to(end)) return;
  std::memcpy(file_.data() + text_.size(), line.data(), line.size());
  text_ += line;
}

}  // namespace tailtrace
