#include <stdint.h>
#include <stdlib.h>
double run(int64_t a, int64_t b) {
    int64_t *d = malloc(a * a * 8), s = 0, x = 1;
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < a * a; i++) { x = (x * 1103515245 + 12345) & 2147483647; d[i] = x >> 12; }
        for (int64_t k = 0; k < a; k++)
            for (int64_t i = 0; i < a; i++) {
                int64_t t = d[i * a + k];
                for (int64_t j = 0; j < a; j++) {
                    int64_t u = t + d[k * a + j];
                    d[i * a + j] = d[i * a + j] < u ? d[i * a + j] : u;
                }
            }
        for (int64_t i = 0; i < a * a; i++) s += d[i];
    }
    free(d);
    return (double)s;
}
