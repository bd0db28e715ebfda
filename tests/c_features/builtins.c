// Builtins that may be calls of the compiler's library.
long feature(void) {
    volatile unsigned long x = 0xf0f0f0f012345678;
    long sum = __builtin_popcountl(x) + __builtin_clzl(x) * 100 + __builtin_ctzl(x) * 10000 + __builtin_parityl(x);
    int sums, over = __builtin_add_overflow(2000000000, (volatile int){2000000000}, &sums);
    return sum + over + (long)(__builtin_bswap64(x) >> 40);
}
