// Where a thread stood when a signal ended the program: qemu knows, and tells nobody.
//
// Threading: before the program has a second thread.
#pragma once

namespace tailtrace {

// From now on it is recorded, where qemu ends programs as 7.2 does.
void record_deaths();

}  // namespace tailtrace
