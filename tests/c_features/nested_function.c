// A function inside another one, without an address.
// gcc-only:
long feature(void) {
    long x = 3;
    long add(long y) { x += y; return x; }
    return add(4) + add(5);
}
