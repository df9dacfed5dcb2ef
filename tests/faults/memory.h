// What was allocated by `new` in this program: to see that memory follows what files hold and not
// what they say.
//
// Threading: any thread may ask; of one measurement there is one at a time.
#pragma once

#include <cstddef>

namespace tailtrace {

// As long as one lives, the largest amount in use at once is noted, beyond what was in use before.
class MemoryPeak {
 public:
  MemoryPeak();
  std::size_t bytes() const;

 private:
  std::size_t before_;
};

}  // namespace tailtrace
