#include "tests/faults/memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> in_use_bytes{0}, peak_bytes{0};

void note_more(std::size_t size) {
  const std::size_t now = in_use_bytes.fetch_add(size) + size;
  std::size_t peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

#ifdef __SANITIZE_ADDRESS__

// What `new` is replaced by is the sanitizer's own; it tells of all that is allocated.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void*, std::size_t),
                                              void (*given_back)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* memory);
}

[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t size) { note_more(size); },
    [](const volatile void* memory) {
      // What was taken before the hooks were there was not counted.
      const std::size_t size = __sanitizer_get_allocated_size(memory);
      in_use_bytes -= std::min(size, in_use_bytes.load());
    });

#else

void* take(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  note_more(::malloc_usable_size(memory));
  return memory;
}

void give_back(void* memory) {
  if (memory != nullptr) in_use_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

#endif

}  // namespace

#ifndef __SANITIZE_ADDRESS__

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }

#endif

namespace tailtrace {

MemoryPeak::MemoryPeak() : before_(in_use_bytes) { peak_bytes = before_; }
std::size_t MemoryPeak::bytes() const { return peak_bytes - before_; }

}  // namespace tailtrace
