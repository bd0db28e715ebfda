#include <stdint.h>
#include <stdlib.h>
double run(int64_t a, int64_t b) {
    double *v = malloc(a * 8), *w = malloc((a + 1) * 8), *u = malloc((a + 2) * 8), s = 0;
    int64_t x = 23;
    for (int64_t i = 0; i < a; i++) { x = (x * 1103515245 + 12345) & 2147483647; v[i] = (double)(x >> 8) / 65536.0; }
    w[a] = 0;
    for (int64_t r = 1; r <= b; r++) {
        double plus = (double)(r & 7);
        for (int64_t i = 0; i < a; i++) w[i] = v[i] * 0.5 + plus;
        int64_t j = 0;
        for (int64_t i = 0; i < a + 1; i++) { u[j] = w[i]; if (w[i] > 32.0) j++; }
        for (int64_t i = 0; i < j; i++) s += u[i];
    }
    free(v); free(w); free(u);
    return s;
}
