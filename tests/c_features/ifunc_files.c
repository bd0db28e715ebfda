// A function of another file that is chosen at loading, and used by an initialiser.
long chosen(long x);
static long early;
__attribute__((constructor)) static void run(void) { early = chosen(1); }
long (*table[])(long) = {chosen};
long feature(void) { return chosen(10) + ((long (*volatile *)(long))table)[0](20) + early; }
//// other.c
static long real(long x) { return x * x; }
typedef long (*function)(long);
function choose(void) { return real; }
long chosen(long x) __attribute__((ifunc("choose")));
