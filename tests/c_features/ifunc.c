// A function that is chosen at loading.
static long fast(long x) { return x * 2; }
static long slow(long x) { return x * 3; }
static volatile int is_fast = 1;
typedef long (*function)(long);
static function choose(void) { return is_fast ? fast : slow; }
long chosen(long x) __attribute__((ifunc("choose")));
long feature(void) { return chosen(21); }
