// Two names of one function.
static long real(long x) { return x + 8; }
long second(long) __attribute__((alias("real")));
extern long third(long) __attribute__((weak, alias("real")));
long feature(void) { return second(1) + third(2) + (second == real); }
