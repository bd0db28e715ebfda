#include <stdint.h>
#include <stdlib.h>
#include <stdbool.h>
struct entry { double key; int64_t id; };
static bool less(double sign, struct entry x, struct entry y) {
    return sign * x.key < sign * y.key || (x.key == y.key && x.id < y.id);
}
static void sort(struct entry *v, struct entry *t, int64_t lo, int64_t hi, double sign) {
    if (hi - lo < 12) {
        for (int64_t i = lo + 1; i <= hi; i++) {
            struct entry x = v[i];
            int64_t j = i;
            while (j > lo && less(sign, x, v[j - 1])) { v[j] = v[j - 1]; j--; }
            v[j] = x;
        }
        return;
    }
    int64_t m = lo + ((hi - lo) >> 1);
    sort(v, t, lo, m, sign);
    sort(v, t, m + 1, hi, sign);
    for (int64_t i = lo; i <= m; i++) t[i] = v[i];
    int64_t i = lo, j = m + 1, k = lo;
    while (i <= m && j <= hi) {
        if (less(sign, v[j], t[i])) v[k] = v[j++]; else v[k] = t[i++];
        k++;
    }
    while (i <= m) v[k++] = t[i++];
}
double run(int64_t a, int64_t b) {
    struct entry *v = malloc(a * 16), *t = malloc(a * 16);
    double s = 0;
    int64_t x = 42;
    for (int64_t r = 1; r <= b; r++) {
        for (int64_t i = 0; i < a; i++) {
            x = (x * 1103515245 + 12345) & 2147483647;
            v[i].key = (double)(x % 1000) / 8.0; v[i].id = i + 1;
        }
        sort(v, t, 0, a - 1, r % 2 == 0 ? 1.0 : -1.0);
        for (int64_t i = 0; i < a; i++) s = s * 0.5 + v[i].key + (double)v[i].id;
    }
    free(v); free(t);
    return s;
}
