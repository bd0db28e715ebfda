// Of two weak definitions there is one.
__attribute__((weak)) long *counter(void) { static long n; return &n; }
long other(void);
long feature(void) { *counter() += 3; return other() + *counter(); }
//// other.c
__attribute__((weak)) long *counter(void) { static long n; return &n; }
long other(void) { return *counter() += 100; }
