#include <stdint.h>
#include <stdlib.h>
double run(int64_t a, int64_t b) {
    int64_t w = a + 1, x = 7, s = 0;
    uint8_t *p = malloc(a), *q = malloc(a);
    int64_t *t = malloc(w * w * 8);
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < a; i++) {
            x = (x * 1103515245 + 12345) & 2147483647; p[i] = (uint8_t)(x >> 16) & 3;
            x = (x * 1103515245 + 12345) & 2147483647; q[i] = (uint8_t)(x >> 16) & 3;
        }
        for (int64_t i = 0; i < w; i++) t[i] = t[i * w] = 0;
        for (int64_t i = 0; i < a; i++)
            for (int64_t j = 0; j < a; j++) {
                if (p[i] == q[j]) t[(i + 1) * w + j + 1] = t[i * w + j] + 1;
                else {
                    int64_t u = t[i * w + j + 1], v = t[(i + 1) * w + j];
                    t[(i + 1) * w + j + 1] = u < v ? v : u;
                }
            }
        s += t[w * w - 1];
    }
    free(p); free(q); free(t);
    return (double)s;
}
