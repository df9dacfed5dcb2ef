#include "decoder/pt/fast/large_array.h"

#include <sys/mman.h>

#include <cstddef>

namespace tailtrace::pt {
namespace {

constexpr std::size_t kLargePage_bytes = 2u << 20;

}  // namespace

MappedMemory::MappedMemory(std::size_t size_bytes, PageSize pages)
    : size_bytes_((size_bytes + kLargePage_bytes - 1) / kLargePage_bytes * kLargePage_bytes) {
  data_ = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  is_mapped_ = data_ != MAP_FAILED;
  if (!is_mapped_) {
    data_ = new std::byte[size_bytes]();
    return;
  }
  const std::size_t small_bytes = pages == PageSize::kSmallFirst ? kLargePage_bytes : 0;
  if (pages == PageSize::kSmall || size_bytes < small_bytes + kLargePage_bytes) return;
  ::madvise(static_cast<char*>(data_) + small_bytes, size_bytes_ - small_bytes, MADV_HUGEPAGE);
}

MappedMemory::~MappedMemory() {
  if (is_mapped_ && data_ != nullptr)
    ::munmap(data_, size_bytes_);
  else
    delete[] static_cast<std::byte*>(data_);
}

}  // namespace tailtrace::pt
