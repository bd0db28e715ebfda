#include <stdint.h>
#include <stdlib.h>
#include <math.h>
static void fft(double *re, double *im, int64_t n) {
    int64_t j = 0;
    for (int64_t i = 1; i < n; i++) {
        int64_t bit = n >> 1;
        while (j & bit) { j ^= bit; bit >>= 1; }
        j ^= bit;
        if (i < j) { double t = re[i]; re[i] = re[j]; re[j] = t; t = im[i]; im[i] = im[j]; im[j] = t; }
    }
    double c = -1, s = 0;
    for (int64_t h = 1; h < n; h *= 2) {
        for (int64_t k = 0; k < n; k += 2 * h) {
            double wr = 1, wi = 0;
            for (int64_t q = k; q < k + h; q++) {
                double xr = re[q + h] * wr - im[q + h] * wi, xi = re[q + h] * wi + im[q + h] * wr;
                re[q + h] = re[q] - xr; im[q + h] = im[q] - xi;
                re[q] = re[q] + xr; im[q] = im[q] + xi;
                double t = wr * c - wi * s;
                wi = wr * s + wi * c;
                wr = t;
            }
        }
        double t = sqrt((1.0 + c) / 2.0);
        s = h == 1 ? 1.0 : s / (2.0 * t);
        c = h == 1 ? 0.0 : t;
    }
}
double run(int64_t a, int64_t b) {
    int64_t n = (int64_t)1 << a;
    double *re = malloc(n * 8), *im = malloc(n * 8), s = 0;
    for (int64_t r = 1; r <= b; r++) {
        for (int64_t i = 1; i <= n; i++) { re[i - 1] = (double)((i * 7919 + r) % 97) / 97.0; im[i - 1] = 0; }
        fft(re, im, n);
        s += re[1] + im[1] + re[(n >> 1) - 1];
    }
    free(re); free(im);
    return s;
}
