// No unwind tables.
// flags: -fno-asynchronous-unwind-tables -fno-unwind-tables
__attribute__((noinline)) static long inner(long x) { return x * 3; }
long feature(void) { return inner(5); }
