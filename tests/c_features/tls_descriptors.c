// Descriptors of thread-local symbols: of the file, of another one, and of the file's block. The calls preserve registers, which hold numbers and vectors here.
// flags: -mtls-dialect=gnu2
#include <pthread.h>
extern __thread long far;
__thread long value = 5;
static __thread long one = 1, two = 2, block[40];
double scale(double by);
static long own(long n) { one += n; two += one; return one * 100 + two; }
static long mixed(long a, long b, double c, double d) {
    for (int n = 0; n < 40; n++) {
        a += value++ * n, b ^= far++ + a, c += d * n, d -= c / 64;
        block[n] += a;
    }
    return a + b + (long)(scale(c) + scale(d)) + block[39];
}
static void *run(void *sum) { *(long *)sum = mixed(1, 2, 3.5, 4.25) + own(3); return 0; }
long feature(void) {
    pthread_t thread;
    long sum, other;
    pthread_create(&thread, 0, run, &other);
    pthread_join(thread, 0);
    sum = mixed(5, 6, 7.125, 8.5) + own(10) + own(20);
    return sum + other * 3;
}
//// other.c
__thread long far = 1000;
static __thread double factor = 1.5;
double scale(double by) { return factor * by; }
