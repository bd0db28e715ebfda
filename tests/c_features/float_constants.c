// Constants of floating point, scalar and in vectors.
typedef double four __attribute__((vector_size(32)));
__attribute__((noinline)) four scale(four x) { return x * (four){1.5, 2.5, 3.5, 4.5} + 0.25; }
long feature(void) {
    volatile float f = 1.25f;
    four x = scale((four){1, 2, 3, 4});
    return (long)(x[0] + x[1] * 10 + x[2] * 100 + x[3] * 1000 + f * 7 - -f);
}
