// Calls that are jumps.
#include <string.h>
__attribute__((noinline)) static unsigned long last(const char *text) { return strlen(text); }
__attribute__((noinline)) static unsigned long next(const char *text) { return last(text + 1); }
static long count(long n, long sum) { return n == 0 ? sum : count(n - 1, sum + n); }
long feature(void) { return next("tail call") + count(1000, 0); }
