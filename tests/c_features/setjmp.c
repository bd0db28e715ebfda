// A jump out of nested calls.
#include <setjmp.h>
static jmp_buf place;
__attribute__((noinline)) static void deep(int n) {
    if (n == 0) longjmp(place, 6);
    deep(n - 1);
}
long feature(void) {
    volatile long tries = 0;
    int came = setjmp(place);
    tries++;
    if (came == 0) deep(20);
    return came * 10 + tries;
}
