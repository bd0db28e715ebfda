#include <stdint.h>
#include <stdlib.h>
struct sparse { int64_t *rows, *cols; double *vals; };
static void mul(double *y, struct sparse *m, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double t = 0;
        for (int64_t k = m->rows[i]; k < m->rows[i + 1]; k++) t += m->vals[k] * x[m->cols[k]];
        y[i] = t;
    }
}
double run(int64_t a, int64_t b) {
    struct sparse m = { malloc((a + 1) * 8), malloc(a * 64), malloc(a * 64) };
    int64_t r = 5;
    for (int64_t i = 0; i <= a; i++) m.rows[i] = i * 8;
    for (int64_t k = 0; k < a * 8; k++) {
        r = (r * 1103515245 + 12345) & 2147483647;
        m.cols[k] = r % a; m.vals[k] = (double)(r % 13) * 0.02;
    }
    double *x = malloc(a * 8), *y = malloc(a * 8), s = 0;
    for (int64_t i = 0; i < a; i++) x[i] = 1;
    for (int64_t i = 0; i < b; i++) { mul(y, &m, x, a); mul(x, &m, y, a); }
    for (int64_t i = 0; i < a; i++) s += x[i];
    free(m.rows); free(m.cols); free(m.vals); free(x); free(y);
    return s;
}
