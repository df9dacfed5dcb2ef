#include "tests/faults/memory.h"

#include <malloc.h>

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

}  // namespace

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }

namespace tailtrace {

MemoryPeak::MemoryPeak() : before_(in_use_bytes) { peak_bytes = before_; }
std::size_t MemoryPeak::bytes() const { return peak_bytes - before_; }

}  // namespace tailtrace
