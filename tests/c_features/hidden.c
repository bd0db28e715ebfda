// A hidden symbol of another file.
__attribute__((visibility("hidden"))) long inner(long x);
__attribute__((visibility("hidden"))) extern long count;
long feature(void) { return inner(4) + count; }
//// other.c
__attribute__((visibility("hidden"))) long count = 30;
__attribute__((visibility("hidden"))) long inner(long x) { return ++count * x; }
