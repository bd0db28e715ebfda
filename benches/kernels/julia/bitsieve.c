#include <stdint.h>
#include <stdlib.h>
double run(int64_t a, int64_t b) {
    int64_t n = (a >> 6) + 1, s = 0;
    uint64_t *chunks = malloc(n * 8);
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < n; i++) chunks[i] = ~0ull;
        for (int64_t p = 2; p * p <= a; p++)
            if (chunks[p >> 6] >> (p & 63) & 1)
                for (int64_t m = p * p; m <= a; m += p) chunks[m >> 6] &= ~(1ull << (m & 63));
        for (int64_t i = 0; i < n; i++) s += __builtin_popcountll(chunks[i]);
    }
    free(chunks);
    return (double)s;
}
