#include <stdint.h>
#include <stdlib.h>
double run(int64_t a, int64_t b) {
    uint8_t *v = malloc(a), *w = malloc(a);
    int64_t counts[256], x = 19, s = 0;
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < a; i++) { x = (x * 1103515245 + 12345) & 2147483647; v[i] = (uint8_t)(x >> 16); }
        for (int64_t i = 0; i < 256; i++) counts[i] = 0;
        for (int64_t i = 0; i < a; i++) counts[v[i]]++;
        int64_t at = 0;
        for (int64_t i = 0; i < 256; i++) { int64_t n = counts[i]; counts[i] = at; at += n; }
        for (int64_t i = 0; i < a; i++) w[counts[v[i]]++] = v[i];
        for (int64_t i = 0; i < a; i += 16) s = (s * 31 + w[i]) & 1073741823;
    }
    free(v); free(w);
    return (double)s;
}
