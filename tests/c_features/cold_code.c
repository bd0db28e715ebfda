// Functions that are split into a hot and a cold part.
#include <stdlib.h>
__attribute__((cold, noinline)) static long rare(long x) { return x * 1000; }
__attribute__((noinline)) static long usual(long x) {
    if (__builtin_expect(x > 100, 0)) return rare(x) + 1;
    return x + 2;
}
long feature(void) { return usual(5) + usual(200); }
