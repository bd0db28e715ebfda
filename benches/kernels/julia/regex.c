#include <stdint.h>
#include <stdlib.h>
#include <stdbool.h>
static bool here(const uint8_t *p, int64_t m, int64_t i, const uint8_t *s, int64_t n, int64_t j) {
    while (i < m) {
        if (i + 1 < m && p[i + 1] == '*') {
            uint8_t c = p[i];
            for (;;) {
                if (here(p, m, i + 2, s, n, j)) return true;
                if (j >= n || (s[j] != c && c != '.')) return false;
                j++;
            }
        }
        if (j >= n || (p[i] != s[j] && p[i] != '.')) return false;
        i++; j++;
    }
    return true;
}
double run(int64_t a, int64_t b) {
    const uint8_t *p = (const uint8_t *)"a.b*c.*d";
    uint8_t *s = malloc(a);
    int64_t x = 21, n = 0;
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < a; i++) { x = (x * 1103515245 + 12345) & 2147483647; s[i] = 'a' + ((x >> 16) & 3); }
        for (int64_t j = 0; j < a; j++) if (here(p, 8, 0, s, a, j)) n += j + 1;
    }
    free(s);
    return (double)n;
}
