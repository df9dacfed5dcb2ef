// Has a function whose name would clear a terminal that obeys it.
__asm__(
    ".pushsection .text\n"
    ".type \"evil\033[2J\", @function\n"
    "\"evil\033[2J\":\n"
    "  nop\n"
    "  ret\n"
    ".size \"evil\033[2J\", . - \"evil\033[2J\"\n"
    ".popsection\n");

int main(void) {
  __asm__ volatile("sub $128, %%rsp; call \"evil\033[2J\"; add $128, %%rsp" ::: "memory", "cc");
  return 0;
}
