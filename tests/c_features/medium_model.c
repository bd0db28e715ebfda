// Large data by full addresses.
// flags: -mcmodel=medium
static long large[20000];
static long small = 3;
long other[20000] = {1, 2, 3};
long feature(void) { large[19999] = small++; return large[19999] * 100 + other[2] + small; }
