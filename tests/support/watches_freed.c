/* Preloaded into qemu-x86_64: looks for a while whether anybody writes to the memory that a thread
 * which ends has just given back, and says so, a line each. It is that of its jump cache in qemu
 * 7.2, 4096 pointers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { kCache_bytes = 4096 * sizeof(void*), kPadding_bytes = 64, kMark = 0xaa };

static int is_written(const unsigned char* memory) {
  for (int i = 0; i < kCache_bytes; ++i)
    if (memory[i] != kMark) return 1;
  return 0;
}

void g_free(void* memory) {
  void (*real)(void*) = (void (*)(void*))dlsym(RTLD_NEXT, "g_free");
  const size_t size = malloc_usable_size(memory);
  if (strcmp(program_invocation_short_name, "qemu-x86_64") == 0 && size >= kCache_bytes &&
      size < kCache_bytes + kPadding_bytes) {
    const struct timespec long_enough = {0, 20000000};  // for ten ticks of ticks_in_threads
    memset(memory, kMark, kCache_bytes);
    nanosleep(&long_enough, NULL);
    fprintf(stderr, "memory given back: %s\n", is_written(memory) ? "written to" : "untouched");
  }
  real(memory);
}
