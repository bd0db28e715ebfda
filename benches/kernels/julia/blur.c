#include <stdint.h>
#include <stdlib.h>
static void blur(const uint8_t *p, uint8_t *q, int64_t w, int64_t h) {
    for (int64_t y = 1; y < h - 1; y++)
        for (int64_t x = 1; x < w - 1; x++) {
            int64_t i = y * w + x;
            int64_t s = p[i - w - 1] + 2 * p[i - w] + p[i - w + 1];
            s += 2 * p[i - 1] + 4 * p[i] + 2 * p[i + 1];
            s += p[i + w - 1] + 2 * p[i + w] + p[i + w + 1];
            q[i] = (uint8_t)(s >> 4);
        }
}
double run(int64_t a, int64_t b) {
    uint8_t *p = malloc(a * a), *q = malloc(a * a);
    int64_t r = 9, s = 0;
    for (int64_t i = 0; i < a * a; i++) { r = (r * 1103515245 + 12345) & 2147483647; q[i] = p[i] = (uint8_t)(r >> 12); }
    for (int64_t k = 0; k < b; k++) { blur(p, q, a, a); blur(q, p, a, a); }
    for (int64_t i = 0; i < a * a; i++) s += p[i];
    free(p); free(q);
    return (double)s;
}
