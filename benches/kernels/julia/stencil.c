#include <stdint.h>
#include <stdlib.h>
static void step(const double *u, double *v, int64_t w, int64_t h) {
    for (int64_t y = 1; y < h - 1; y++)
        for (int64_t x = 1; x < w - 1; x++) {
            int64_t i = y * w + x;
            v[i] = u[i] + 0.125 * ((u[i - 1] + u[i + 1]) + (u[i - w] + u[i + w]) - 4.0 * u[i]);
        }
}
double run(int64_t a, int64_t b) {
    double *u = malloc(a * a * 8), *v = malloc(a * a * 8), s = 0;
    for (int64_t i = 0; i < a * a; i++) u[i] = v[i] = (double)((i + 1) * 7919 % 1000);
    for (int64_t r = 0; r < b; r++) { step(u, v, a, a); step(v, u, a, a); }
    for (int64_t i = 0; i < a * a; i++) s += u[i];
    free(u); free(v);
    return s;
}
