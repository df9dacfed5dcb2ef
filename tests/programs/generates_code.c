// Generates functions, and tells perf of them as just-in-time compilers do, in a perf map, and all
// but `by_map` in a jitdump, too, in the folder that argv[1] names. `by_dump` is moved, and `later`
// is made in its place. Prints its number, and a line for each function: NAME ADDRESS
// SIZE CALLS. Ends by abort() when there is an argv[2].
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int (*Function)(int);

static const char kByMap[] = "by_map";
static const char kByDump[] = "jit::by_dump(int)";
static const char kLater[] = "later \33[31mred";

static FILE *map, *dump;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put4(uint32_t n) { fwrite(&n, sizeof n, 1, dump); }
static void put8(uint64_t n) { fwrite(&n, sizeof n, 1, dump); }

static void begin_dump(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%d.dump", folder, getpid());
  dump = fopen(path, "w+");
  put4(0x4a695444), put4(1), put4(40), put4(EM_X86_64), put4(0), put4((uint32_t)getpid());
  put8(now_ns()), put8(0);
  fflush(dump);
  // By this, readers of the memory map find it.
  mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
}

static void begin_record(uint32_t kind, uint32_t payload_bytes) {
  put4(kind), put4(16 + payload_bytes), put8(now_ns());
  put4((uint32_t)getpid()), put4((uint32_t)getpid());
}

static void dump_load(const char* name, unsigned char* at, uint64_t size_bytes, uint64_t index) {
  begin_record(0, 40 + (uint32_t)strlen(name) + 1 + (uint32_t)size_bytes);
  put8((uintptr_t)at), put8((uintptr_t)at), put8(size_bytes), put8(index);
  fwrite(name, strlen(name) + 1, 1, dump);
  fwrite(at, size_bytes, 1, dump);
  fflush(dump);
}

static void dump_move(unsigned char* from, unsigned char* to, uint64_t size_bytes, uint64_t index) {
  begin_record(1, 48);
  put8((uintptr_t)to), put8((uintptr_t)from), put8((uintptr_t)to), put8(size_bytes), put8(index);
  fflush(dump);
}

static void tell_map(const char* name, unsigned char* at, uint64_t size_bytes) {
  fprintf(map, "%lx %lx %s\n", (unsigned long)(uintptr_t)at, (unsigned long)size_bytes, name);
  fflush(map);
}

// again: add eax, edi; dec edi; jnz again; ret, behind mov eax, N
static const unsigned char kLoop[] = {0xb8, 7, 0, 0, 0, 0x01, 0xf8, 0xff, 0xcf, 0x75, 0xfa, 0xc3};
// lea eax, [rdi + rdi]; ret
static const unsigned char kTwice[] = {0x8d, 0x04, 0x3f, 0xc3};

static int call(Function f, int times) {
  int sum = 0;
  for (int i = 1; i <= times; ++i) sum += f(i);
  return sum;
}

int main(int argc, char** argv) {
  unsigned char* page =
      mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char *one = page + 64, *two = page + 128, *three = page + 4096;
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  map = fopen(path, "w");
  begin_dump(argc > 1 ? argv[1] : ".");
  fprintf(map, "nonsense\n");

  memcpy(one, kLoop, sizeof kLoop);
  tell_map(kByMap, one, sizeof kLoop);
  memcpy(two, kLoop, sizeof kLoop);
  dump_load(kByDump, two, sizeof kLoop, 17);
  tell_map(kByDump, two, sizeof kLoop);
  int sum = call((Function)one, 3) + call((Function)two, 2);

  memcpy(three, two, sizeof kLoop);
  dump_move(two, three, sizeof kLoop, 17);
  tell_map(kByDump, three, sizeof kLoop);
  sum += call((Function)three, 4);

  memcpy(two, kTwice, sizeof kTwice);
  dump_load(kLater, two, sizeof kTwice, 18);
  tell_map(kLater, two, sizeof kTwice);
  sum += call((Function)two, 5);
  printf("pid %d\n", getpid());
  printf("by_map %p %zu 3\n", (void*)one, sizeof kLoop);
  printf("by_dump %p %zu 4\n", (void*)three, sizeof kLoop);
  printf("later %p %zu 5\n", (void*)two, sizeof kTwice);
  fflush(stdout);
  if (argc > 2) abort();
  return sum == 0;
}
