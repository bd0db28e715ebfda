#include <stdint.h>
#include <stdlib.h>
static int64_t shared(const int64_t *p, const int64_t *q, int64_t a) {
    int64_t i = 0, j = 0, n = 0;
    while (i < a && j < a) {
        int64_t x = p[i], y = q[j];
        if (x == y) { n++; i++; j++; }
        else if (x < y) i++;
        else j++;
    }
    return n;
}
double run(int64_t a, int64_t b) {
    int64_t *p = malloc(a * 8), *q = malloc(a * 8), x = 9, u = 0, v = 0, s = 0;
    for (int64_t i = 0; i < a; i++) {
        x = (x * 1103515245 + 12345) & 2147483647;
        u += 1 + ((x >> 16) & 3);
        v += 1 + ((x >> 20) & 3);
        p[i] = u; q[i] = v;
    }
    for (int64_t r = 0; r < b; r++) {
        *(volatile int64_t *)&p[r] += 0;
        s += shared(p, q, a);
    }
    free(p); free(q);
    return (double)s;
}
