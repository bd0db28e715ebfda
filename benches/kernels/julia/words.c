#include <stdint.h>
#include <stdlib.h>
struct words { uint64_t *hashes; int64_t *counts, n, used; };
static void add(struct words *w, uint64_t h) {
    int64_t i = (int64_t)(h >> 7) & (w->n - 1);
    for (;;) {
        uint64_t k = w->hashes[i];
        if (k == h) { w->counts[i]++; return; }
        if (!k) { w->hashes[i] = h; w->counts[i] = 1; w->used++; return; }
        i = (i + 1) & (w->n - 1);
    }
}
double run(int64_t a, int64_t b) {
    uint8_t *text = malloc(a);
    int64_t x = 2, s = 0;
    for (int64_t i = 0; i < a; i++) {
        x = (x * 1103515245 + 12345) & 2147483647;
        int64_t k = (x >> 16) & 7;
        text[i] = k < 2 ? ' ' : 'a' + k;
    }
    for (int64_t r = 0; r < b; r++) {
        struct words w = { calloc(4096, 8), malloc(4096 * 8), 4096, 0 };
        uint64_t h = 0xcbf29ce484222325ull;
        int64_t n = 0;
        for (int64_t i = 0; i < a; i++) {
            uint8_t c = text[i];
            if (c == ' ' || n == 3) { add(&w, h | 1); h = 0xcbf29ce484222325ull; n = 0; }
            else { h = (h ^ c) * 0x100000001b3ull; n++; }
        }
        s += w.used;
        for (int64_t i = 0; i < 4096; i++) if (w.hashes[i]) s = (s * 3 + w.counts[i]) & 1073741823;
        free(w.hashes); free(w.counts);
    }
    free(text);
    return (double)s;
}
