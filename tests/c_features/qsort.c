// A function of the C library that calls back.
#include <stdlib.h>
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
long feature(void) {
    int numbers[] = {9, 3, 7, 1, 8, 2, 6, 4, 5};
    qsort(numbers, 9, sizeof *numbers, less);
    int key = 7, *found = bsearch(&key, numbers, 9, sizeof *numbers, less);
    long sum = 0;
    for (int n = 0; n < 9; n++) sum = sum * 10 + numbers[n];
    return sum + (found - numbers);
}
