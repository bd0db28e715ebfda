// Everything is hidden but what is not.
// flags: -fvisibility=hidden
long inner(long x) { return x * 4; }
long table[2] = {6, 7};
__attribute__((visibility("default"))) long feature(void) { return inner(table[1]); }
