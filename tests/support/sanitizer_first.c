/* Has a sanitizer begin before all else: it does with the first memory that is asked for, and looks
   then for what may not be there, which takes a lock of the C library for the text that says so. A
   library (p11-kit, which GDB and LLDB load) whose constructor asks first, with that lock held,
   leaves it locked for ever. */
#include <stdlib.h>

__attribute__((constructor)) static void begin(void) { free(malloc(1)); }
