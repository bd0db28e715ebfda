// Branch targets are marked.
// flags: -fcf-protection=full
static long one(long x) { return x + 1; }
long (*volatile pointer)(long) = one;
long feature(void) { return pointer(8); }
