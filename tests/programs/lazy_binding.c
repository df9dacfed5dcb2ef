// Functions of a shared library called through the procedure linkage table: bound at their first
// call.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void* a, const void* b) { return strcmp(a, b); }

int main(void) {
  char words[4][8] = {"pear", "apple", "fig", "plum"};
  qsort(words, 4, sizeof words[0], compare);
  char text[64] = "";
  for (int i = 0; i < 4; ++i) {
    words[i][0] = (char)toupper(words[i][0]);
    strcat(text, words[i]);
  }
  puts(text);
  return atoi("0");
}
