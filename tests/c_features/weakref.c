// A weak reference by another name.
extern long target(long);
static long alias(long) __attribute__((weakref("target")));
static long gone(long) __attribute__((weakref("nobody_has_this")));
long feature(void) { return (alias ? alias(4) : 1) + (gone ? 100 : 200); }
//// other.c
long target(long x) { return x * 3; }
