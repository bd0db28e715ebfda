// Each thread has its own.
#include <pthread.h>
static __thread long own = 7;
static void *run(void *start) {
    own += *(long *)start;
    for (int n = 0; n < 1000; n++) own++;
    *(long *)start = own;
    return 0;
}
long feature(void) {
    long values[4] = {10, 20, 30, 40}, sum = 0;
    pthread_t threads[4];
    for (int n = 0; n < 4; n++) pthread_create(&threads[n], 0, run, &values[n]);
    for (int n = 0; n < 4; n++) pthread_join(threads[n], 0), sum += values[n];
    return sum + own;
}
