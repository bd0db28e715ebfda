#include <stdint.h>
#include <stdlib.h>
static double energy(const double *xs, const double *ys, int64_t n) {
    double e = 0;
    for (int64_t i = 0; i < n - 1; i++)
        for (int64_t j = i + 1; j < n; j++) {
            double dx = xs[i] - xs[j], dy = ys[i] - ys[j];
            e += 1.0 / (dx * dx + dy * dy + 0.25);
        }
    return e;
}
double run(int64_t a, int64_t b) {
    double *xs = malloc(a * 8), *ys = malloc(a * 8), s = 0;
    int64_t x = 1;
    for (int64_t i = 0; i < a; i++) {
        x = (x * 1103515245 + 12345) & 2147483647;
        xs[i] = (double)(x % 1000) * 0.01;
        ys[i] = (double)((x >> 12) % 1000) * 0.01;
    }
    for (int64_t r = 1; r <= b; r++) { xs[0] = (double)r; s += energy(xs, ys, a); }
    free(xs); free(ys);
    return s;
}
