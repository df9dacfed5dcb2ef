// Loads a library, calls into it, and unloads it; twice.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  double sum = 0;
  for (int i = 0; i < 2; ++i) {
    void* library = dlopen("libm.so.6", RTLD_NOW);
    if (library == 0) return 1;
    double (*cube_root)(double) = (double (*)(double))dlsym(library, "cbrt");
    if (cube_root == 0) return 1;
    sum += cube_root(27);
    dlclose(library);
  }
  printf("%.0f\n", sum);
  return 0;
}
