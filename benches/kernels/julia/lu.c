#include <stdint.h>
#include <stdlib.h>
#include <math.h>
#define M(i, j) m[(j) * n + (i)]
static double lu(double *m, int64_t n) {
    double d = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t p = k;
        for (int64_t i = k + 1; i < n; i++) if (fabs(M(i, k)) > fabs(M(p, k))) p = i;
        if (p != k) {
            for (int64_t j = 0; j < n; j++) { double t = M(k, j); M(k, j) = M(p, j); M(p, j) = t; }
            d = -d;
        }
        d *= M(k, k) / 16.0;
        for (int64_t i = k + 1; i < n; i++) M(i, k) /= M(k, k);
        for (int64_t j = k + 1; j < n; j++)
            for (int64_t i = k + 1; i < n; i++) M(i, j) -= M(i, k) * M(k, j);
    }
    return d;
}
double run(int64_t n, int64_t b) {
    double *m = malloc(n * n * 8), s = 0;
    int64_t x = 3;
    for (int64_t r = 0; r < b; r++) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < n; i++) { x = (x * 1103515245 + 12345) & 2147483647; M(i, j) = (double)((x >> 8) % 1000) / 100.0; }
        s += lu(m, n);
    }
    free(m);
    return s;
}
