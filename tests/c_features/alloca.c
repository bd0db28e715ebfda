// Memory of the stack whose size is known when it runs.
#include <alloca.h>
#include <string.h>
__attribute__((noinline)) static long use(long n) {
    long array[n];
    char *more = alloca(n * 3);
    memset(more, 2, n * 3);
    for (long at = 0; at < n; at++) array[at] = at * more[at];
    return array[n - 1];
}
long feature(void) { return use(10) + use(100); }
