// Registers that not every processor has, AVX-512's, hold what they were given. Exits with 0 then,
// and where there are none.
__attribute__((target("avx512f"))) static int keeps(void) {
  unsigned mask = 0x5a5a, low = 0x12345678, mask_then = 0, low_then = 0, high_then = 0;
  __asm__ volatile(
      "kmovw %3, %%k1\n\t"
      "kmovw %3, %%k7\n\t"
      "vpbroadcastd %4, %%zmm16\n\t"
      "vpbroadcastd %4, %%zmm31\n\t"
      "nop\n\t"
      "nop\n\t"
      "kandw %%k1, %%k7, %%k7\n\t"
      "vpandd %%zmm16, %%zmm31, %%zmm31\n\t"
      "nop\n\t"
      "kmovw %%k7, %0\n\t"
      "vmovd %%xmm31, %1\n\t"
      "vextracti32x4 $3, %%zmm31, %%xmm31\n\t"
      "vmovd %%xmm31, %2\n\t"
      : "=&r"(mask_then), "=&r"(low_then), "=&r"(high_then)
      : "r"(mask), "r"(low)
      : "xmm16", "xmm31", "k1", "k7");
  return mask_then == mask && low_then == low && high_then == low;
}

int main(void) {
  if (!__builtin_cpu_supports("avx512f")) return 0;
  return keeps() ? 0 : 1;
}
