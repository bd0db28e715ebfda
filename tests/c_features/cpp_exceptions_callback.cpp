// An exception through a function of the C library.
#include <cstdlib>
static int less(const void *a, const void *b) {
    if (*(const int *)a == 13 || *(const int *)b == 13) throw 13L;
    return *(const int *)a - *(const int *)b;
}
extern "C" long feature() {
    int good[] = {3, 1, 2}, bad[] = {5, 13, 4, 6};
    try { qsort(good, 3, sizeof(int), less); qsort(bad, 4, sizeof(int), less); } catch (long n) { return n * 100 + good[0]; }
    return 0;
}
