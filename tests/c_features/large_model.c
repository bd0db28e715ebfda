// Code that assumes nothing about distances.
// flags: -mcmodel=large
#include <string.h>
static long table[] = {3, 5, 7};
long global = 11;
__attribute__((noinline)) static long inner(long x) { return x * table[1] + strlen("four"); }
long feature(void) { return inner(global++) + global; }
