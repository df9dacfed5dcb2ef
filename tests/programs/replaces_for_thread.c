// One thread loads each of its libraries, and unloads it before it loads the next one; another,
// which waits meanwhile, calls into it, and then the first one does.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

typedef int Plug(int);

static int to_worker[2], to_loader[2];

static void* work(void* unused) {
  for (Plug* plug; read(to_worker[0], &plug, sizeof plug) == sizeof plug;) {
    int sum = plug(2);
    if (write(to_loader[1], &sum, sizeof sum) != sizeof sum) break;
  }
  return unused;
}

static int use(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  Plug* plug = library == 0 ? 0 : (Plug*)dlsym(library, "plug");
  int sum = -1;
  if (plug == 0 || write(to_worker[1], &plug, sizeof plug) != sizeof plug ||
      read(to_loader[0], &sum, sizeof sum) != sizeof sum)
    return -1;
  sum += plug(1);
  dlclose(library);
  return sum;
}

static int finish(int sum) { return sum + 1; }

int main(int argc, char** argv) {
  pthread_t worker;
  if (pipe(to_worker) != 0 || pipe(to_loader) != 0) return 1;
  if (pthread_create(&worker, NULL, work, NULL) != 0) return 1;
  int sum = 0;
  for (int i = 1; i < argc; ++i) sum += use(argv[i]);
  printf("%d\n", finish(sum));
  close(to_worker[1]);
  pthread_join(worker, NULL);
  return 0;
}
