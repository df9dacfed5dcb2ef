// Says its arguments, one a line in angle brackets, then answers lines: "status N" ends it with
// that status, "signal N" by that signal, "spin" computes until a signal comes; anything else is
// said back. Ends with status 0 at the end of its input.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned long spins;

int main(int argc, char** argv) {
  char line[256];
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 1; i < argc; ++i) printf("<%s>\n", argv[i]);
  puts("ready");
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strncmp(line, "status ", 7) == 0) return atoi(line + 7);
    if (strncmp(line, "signal ", 7) == 0) raise(atoi(line + 7));
    if (strncmp(line, "spin", 4) == 0) {
      puts("spinning");
      for (;;) ++spins;
    }
    printf("heard: %s", line);
    fprintf(stderr, "complained\n");
  }
  return 0;
}
