// Large frames are touched page by page.
// flags: -fstack-clash-protection
__attribute__((noinline)) static long large(int n) {
    volatile char frame[100000];
    for (int at = 0; at < 100000; at += 1000) frame[at] = at + n;
    return frame[5000] + frame[99000];
}
long feature(void) { return large(3); }
