// Greets the people named in its arguments, and copies each name into a place that is too small
// for some: the return address is overwritten, and with it what a debugger finds callers by.
#include <stdio.h>

struct Greeting {
  char name[8];
};

static void copy(char* to, const char* from) {
  while ((*to++ = *from++) != '\0') continue;
}

static void fill_in(const char* name) {
  struct Greeting greeting;
  puts(name);
  copy(greeting.name, name);
}

static void greet(const char* name) { fill_in(name); }

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) greet(argv[i]);
  return 0;
}
