// A function that two files define.
// refused -fPIC -fPIE -fno-pic: the symbol `twice`, which another member defines
// not-linked:
long twice(long x) { return x; }
long feature(void) { return twice(1); }
//// other.c
long twice(long x) { return x * 2; }
