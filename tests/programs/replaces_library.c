// Loads each of its libraries, calls into it, and unloads it before it loads the next one. Goes on
// without any.
#include <dlfcn.h>
#include <stdio.h>

static int use(const char* path, int rounds) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == 0) return -1;
  int (*plug)(int) = (int (*)(int))dlsym(library, "plug");
  int sum = plug == 0 ? -1 : plug(rounds);
  dlclose(library);
  return sum;
}

static int finish(int sum) { return sum + 1; }

int main(int argc, char** argv) {
  int sum = 0;
  for (int i = 1; i < argc; ++i) sum += use(argv[i], i);
  printf("%d\n", finish(sum));
  return 0;
}
