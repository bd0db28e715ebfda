// Loops that the compiler turns into vectors.
// flags: -O3
static float a[1000], b[1000];
long feature(void) {
    for (int n = 0; n < 1000; n++) a[n] = n, b[n] = 1000 - n;
    float sum = 0;
    for (int n = 0; n < 1000; n++) sum += a[n] * 0.5f + b[n];
    return (long)sum;
}
