// A weak definition without another one.
__attribute__((weak)) long pick(void) { return 11; }
long feature(void) { return pick(); }
