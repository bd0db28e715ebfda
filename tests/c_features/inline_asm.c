// Assembly in a function.
long feature(void) {
    long x = 5, y;
    __asm__ volatile("lea (%1, %1, 2), %0\n\tadd $4, %0" : "=r"(y) : "r"(x) : "cc");
    return y;
}
