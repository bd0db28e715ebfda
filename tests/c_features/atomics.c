// Atomic operations.
#include <stdatomic.h>
static atomic_long counter = 5;
static _Atomic(void *) pointer;
long feature(void) {
    atomic_fetch_add(&counter, 10);
    long expected = 15;
    int done = atomic_compare_exchange_strong(&counter, &expected, 100);
    atomic_store(&pointer, &counter);
    return atomic_load(&counter) + done + (atomic_load(&pointer) == &counter) * 1000;
}
