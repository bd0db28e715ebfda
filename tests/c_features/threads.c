// Threads, a lock and once.
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static long sum, begun;
static void begin(void) { begun++; }
static void *run(void *by) {
    pthread_once(&once, begin);
    for (int n = 0; n < 1000; n++) {
        pthread_mutex_lock(&lock);
        sum += (long)by;
        pthread_mutex_unlock(&lock);
    }
    return by;
}
long feature(void) {
    pthread_t threads[3];
    for (long n = 0; n < 3; n++) pthread_create(&threads[n], 0, run, (void *)(n + 1));
    void *result, *all = 0;
    for (int n = 0; n < 3; n++) pthread_join(threads[n], &result), all = (char *)all + (long)result;
    return sum + begun * 100000 + (long)all;
}
