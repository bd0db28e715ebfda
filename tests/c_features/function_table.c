// A table of functions, static and global.
static long one(long x) { return x + 1; }
long two(long x) { return x * 2; }
static long three(long x) { return x - 3; }
static long (*table[])(long) = {one, two, three, two};
long feature(void) {
    long x = 5;
    for (volatile int n = 0; n < 4; n++) x = table[n](x);
    return x;
}
