// A strong definition overrides a weak one, also for the file with the weak one.
__attribute__((weak)) long pick(void) { return 1; }
__attribute__((weak)) long data = 10;
long other(void);
long feature(void) { return pick() * 1000 + data + other(); }
//// other.c
long pick(void) { return 2; }
long data = 20;
long other(void) { return pick() * 100; }
