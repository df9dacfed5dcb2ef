// Its second thread alone runs a library's code.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static void* use(void* unused) {
  void* library = dlopen("libm.so.6", RTLD_NOW);
  double (*cube_root)(double) = library == 0 ? 0 : (double (*)(double))dlsym(library, "cbrt");
  if (cube_root == 0 || cube_root(27) < 2.9) _exit(1);
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, use, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  _exit(0);  // the library's own end would be this thread's
}
