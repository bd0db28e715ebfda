// Protected and internal symbols.
__attribute__((visibility("protected"))) long kept(long x) { return x + 2; }
__attribute__((visibility("internal"))) long inside(long x) { return x * 2; }
long (*volatile pointer)(long) = kept;
long feature(void) { return pointer(3) + inside(10); }
