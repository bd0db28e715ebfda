#include <stdint.h>
#include <stdlib.h>
static int64_t root(int64_t *parent, int64_t i) {
    while (parent[i] != i) { parent[i] = parent[parent[i]]; i = parent[i]; }
    return i;
}
double run(int64_t a, int64_t b) {
    int64_t *parent = malloc(a * 8), s = 0, x = 4;
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < a; i++) parent[i] = i;
        int64_t n = a;
        for (int64_t k = 0; k < a; k++) {
            x = (x * 1103515245 + 12345) & 2147483647;
            int64_t u = root(parent, x % a), v = root(parent, (x >> 8) % a);
            if (u != v) { parent[u] = v; n--; }
        }
        s += n;
    }
    free(parent);
    return (double)s;
}
