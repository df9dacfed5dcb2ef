#include "plugin/engines/qemu_plugin/spare_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <new>

namespace tailtrace {
namespace {

constexpr std::size_t kSpare_bytes = 8 << 20;
constinit std::atomic<void*> g_spare{nullptr};

bool is_limited() {
  rlimit limit;
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// Of operator new: it tries again, or fails where there is no handler.
void make_room() {
  if (!give_back_spare_memory()) std::set_new_handler(nullptr);
}

}  // namespace

void keep_spare_memory() {
  static const bool kIsLimited = is_limited();
  if (!kIsLimited || g_spare.load() != nullptr) return;
  void* spare =
      ::mmap(nullptr, kSpare_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (spare == MAP_FAILED) return;
  std::set_new_handler(make_room);
  void* none = nullptr;
  if (!g_spare.compare_exchange_strong(none, spare)) ::munmap(spare, kSpare_bytes);
}

bool give_back_spare_memory() {
  void* spare = g_spare.exchange(nullptr);
  return spare != nullptr && ::munmap(spare, kSpare_bytes) == 0;
}

}  // namespace tailtrace
