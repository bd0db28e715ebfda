#include <stdint.h>
#include <stdlib.h>
static void mul(uint32_t *z, const uint32_t *x, const uint32_t *y, int64_t n) {
    for (int64_t i = 0; i < 2 * n; i++) z[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t carry = 0;
        for (int64_t j = 0; j < n; j++) {
            uint64_t t = (uint64_t)x[i] * y[j] + z[i + j] + carry;
            z[i + j] = (uint32_t)t;
            carry = t >> 32;
        }
        z[i + n] = (uint32_t)carry;
    }
}
double run(int64_t a, int64_t b) {
    uint32_t *x = malloc(a * 4), *y = malloc(a * 4), *z = malloc(a * 8), h = 0;
    int64_t r = 11;
    for (int64_t i = 0; i < a; i++) {
        r = (r * 1103515245 + 12345) & 2147483647;
        x[i] = (uint32_t)r; y[i] = (uint32_t)(r * 3);
    }
    for (int64_t k = 0; k < b; k++) {
        mul(z, x, y, a);
        for (int64_t i = 0; i < a; i++) x[i] ^= z[i + (a >> 1)];
        h ^= z[a - 1];
    }
    free(x); free(y); free(z);
    return (double)h;
}
