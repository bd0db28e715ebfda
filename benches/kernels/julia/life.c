#include <stdint.h>
#include <stdlib.h>
double run(int64_t a, int64_t b) {
    uint8_t *p = malloc(a * a), *q = malloc(a * a);
    int64_t x = 5, s = 0;
    for (int64_t i = 0; i < a * a; i++) { x = (x * 1103515245 + 12345) & 2147483647; p[i] = (x >> 16) & 1; q[i] = 0; }
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 1; i < a - 1; i++)
            for (int64_t j = 1; j < a - 1; j++) {
                int64_t k = i * a + j;
                uint8_t n = p[k - a - 1] + p[k - a] + p[k - a + 1] + p[k - 1] + p[k + 1] + p[k + a - 1] + p[k + a] + p[k + a + 1];
                if (n == 3 || (n == 2 && p[k] == 1)) q[k] = 1; else q[k] = 0;
            }
        uint8_t *t = p; p = q; q = t;
    }
    for (int64_t i = 0; i < a * a; i++) s += p[i];
    free(p); free(q);
    return (double)s;
}
