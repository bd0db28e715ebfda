// A symbol with a version.
// not-linked:
// value: 4
long versioned_1(long x) { return x + 1; }
__asm__(".symver versioned_1, versioned@VERSION_1");
long feature(void) { return versioned_1(3); }
