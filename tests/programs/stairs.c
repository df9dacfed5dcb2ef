// Lines to step over, backwards and forwards; every line is named by its comment.
#pragma GCC optimize("O0")  // each line an instruction or more of its own

int top(int x) {
  return x + 1;  // in top
}

int middle(int x) {
  int a = top(x);  // first call of top
  int b = top(a);  // second call of top
  return a + b;    // middle returns
}

int main(void) {
  int x = 1;
  x = middle(x);  // first call of middle
  x = middle(x);  // second call of middle
  x = x + 1;      // at the end
  return x != 14;
}
