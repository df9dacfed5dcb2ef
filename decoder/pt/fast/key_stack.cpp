#include "decoder/pt/fast/key_stack.h"

#include <algorithm>

#include "decoder/pt/return_stack.h"

namespace tailtrace::pt {

void KeyStack::settle() {
  // As many as the processor's stack has, and where the flow stands between two blocks.
  constexpr std::size_t kReachable = ReturnStack::kCapacity + 1;
  std::size_t kept = std::min(top_ - 1, kReachable);
  std::move(entries_.begin() + static_cast<std::ptrdiff_t>(top_ - kept),
            entries_.begin() + static_cast<std::ptrdiff_t>(top_), entries_.begin() + 1);
  top_ = kept + 1;
}

}  // namespace tailtrace::pt
