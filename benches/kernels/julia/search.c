#include <stdint.h>
#include <stdlib.h>
#include <stdbool.h>
static bool any_over(const int64_t *v, int64_t n, int64_t k) { for (int64_t i = 0; i < n; i++) if (v[i] > k) return true; return false; }
static bool all_under(const int64_t *v, int64_t n, int64_t k) { for (int64_t i = 0; i < n; i++) if (v[i] > k) return false; return true; }
static int64_t find(const int64_t *v, int64_t n, int64_t k) { for (int64_t i = 0; i < n; i++) if (v[i] == k) return i + 1; return 0; }
static int64_t count_over(const int64_t *v, int64_t n, int64_t k) { int64_t c = 0; for (int64_t i = 0; i < n; i++) c += v[i] > k; return c; }
static int64_t least(const int64_t *v, int64_t n) { int64_t m = v[0]; for (int64_t i = 1; i < n; i++) m = m < v[i] ? m : v[i]; return m; }
double run(int64_t a, int64_t b) {
    int64_t *v = malloc(a * 8), x = 13, s = 0;
    for (int64_t i = 0; i < a; i++) { x = (x * 1103515245 + 12345) & 2147483647; v[i] = x >> 8; }
    for (int64_t r = 1; r <= b; r++) {
        v[r % a] = 8388608 + r;
        if (any_over(v, a, 8388608 + r)) s += 1;
        if (all_under(v, a, 8388608 + r)) s += 2;
        s += find(v, a, 8388608 + r) + find(v, a, -r);
        s += count_over(v, a, r * 1000) + least(v, a) + r;
    }
    free(v);
    return (double)s;
}
