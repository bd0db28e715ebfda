#include <stdint.h>
#include <stdlib.h>
static int64_t total(const int64_t *v, int64_t n) { int64_t s = 0; for (int64_t i = 0; i < n; i++) s += v[i]; return s; }
__attribute__((optimize("associative-math", "no-signed-zeros", "no-trapping-math")))
static double dot(const double *v, const double *w, int64_t n) { double s = 0; for (int64_t i = 0; i < n; i++) s += v[i] * w[i]; return s; }
static int64_t squares(const int64_t *v, int64_t n) { int64_t s = 0; for (int64_t i = 0; i < n; i++) s += v[i] * v[i]; return s; }
static int64_t triangle(int64_t n) { int64_t s = 0; for (int64_t i = 1; i <= n; i++) s += i; return s; }
double run(int64_t a, int64_t b) {
    int64_t *v = malloc(a * 8), s = 0;
    double *f = malloc(a * 8), t = 0;
    for (int64_t i = 0; i < a; i++) { v[i] = (i + 1) % 100; f[i] = (double)((i + 1) % 16); }
    for (int64_t r = 1; r <= b; r++) {
        v[r % a] = r & 127;
        s += total(v, a) + squares(v, a) + (triangle(a) & 65535);
        t += dot(f, f, a);
    }
    free(v); free(f);
    return (double)(s & 1073741823) + t;
}
