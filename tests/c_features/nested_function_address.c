// The address of a function inside another one is code on the stack.
// gcc-only:
// refused -fPIC -fPIE -fno-pic: an executable stack
static long twice(long (*one)(long)) { return one(1) + one(2); }
long feature(void) {
    volatile long x = 3;
    long add(long y) { return x += y; }
    return twice(add);
}
