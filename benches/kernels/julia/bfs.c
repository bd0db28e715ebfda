#include <stdint.h>
#include <stdlib.h>
struct graph { int64_t *first, *to; };
static int64_t distances(int64_t *d, int64_t *queue, const struct graph *g, int64_t n, int64_t from) {
    for (int64_t i = 0; i < n; i++) d[i] = -1;
    d[from] = 0;
    queue[0] = from;
    int64_t head = 0, tail = 1;
    while (head < tail) {
        int64_t u = queue[head++];
        for (int64_t k = g->first[u]; k < g->first[u + 1]; k++) {
            int64_t v = g->to[k];
            if (d[v] < 0) { d[v] = d[u] + 1; queue[tail++] = v; }
        }
    }
    return tail + 1;
}
double run(int64_t a, int64_t b) {
    struct graph g = { malloc((a + 1) * 8), malloc(a * 32) };
    int64_t x = 3, s = 0, *d = malloc(a * 8), *queue = malloc(a * 8);
    for (int64_t i = 0; i <= a; i++) g.first[i] = i * 4;
    for (int64_t k = 0; k < a * 4; k++) { x = (x * 1103515245 + 12345) & 2147483647; g.to[k] = x % a; }
    for (int64_t r = 0; r < b; r++) {
        s += distances(d, queue, &g, a, r);
        for (int64_t i = 0; i < a; i++) s += d[i];
    }
    free(g.first); free(g.to); free(d); free(queue);
    return (double)s;
}
