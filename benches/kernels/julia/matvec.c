#include <stdint.h>
#include <stdlib.h>
double run(int64_t a, int64_t b) {
    double *m = malloc(a * a * 8), *x = malloc(a * 8), *y = malloc(a * 8), s = 0;
    for (int64_t j = 0; j < a; j++) {
        x[j] = (double)((j + 1) % 17);
        for (int64_t i = 0; i < a; i++) m[j * a + i] = (double)(((i + 1) * 31 + (j + 1) * 17) % 101);
    }
    for (int64_t r = 1; r <= b; r++) {
        for (int64_t i = 0; i < a; i++) y[i] = 0;
        for (int64_t j = 0; j < a; j++)
            for (int64_t i = 0; i < a; i++) y[i] += m[j * a + i] * x[j];
        for (int64_t j = 0; j < a; j++) {
            double t = 0;
            for (int64_t i = 0; i < a; i++) t += m[j * a + i] * y[i];
            x[j] = t / 1.0e7;
        }
        s += x[r % a];
    }
    free(m); free(x); free(y);
    return s;
}
