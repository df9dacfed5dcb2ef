// Calls a library that it was linked with, which has a thread of its own since before main().
void let_count(void);

int main(void) {
  let_count();
  return 7;
}
