#include <stdint.h>
#include <stdlib.h>
struct table { uint8_t *slots; int64_t *keys, *vals, n, count; };
static uint64_t hashed(int64_t x) {
    uint64_t a = x;
    a = ~a + (a << 21); a ^= a >> 24; a = a + (a << 3) + (a << 8); a ^= a >> 14;
    a = a + (a << 2) + (a << 4); a ^= a >> 28;
    return a + (a << 31);
}
static struct table table(int64_t n) {
    struct table t = { calloc(n, 1), malloc(n * 8), malloc(n * 8), n, 0 };
    return t;
}
static int64_t find(struct table *t, int64_t key) {
    int64_t i = (int64_t)hashed(key) & (t->n - 1);
    for (;;) {
        if (!t->slots[i]) return -i - 1;
        if (t->keys[i] == key) return i;
        i = (i + 1) & (t->n - 1);
    }
}
static void drop(struct table *t) { free(t->slots); free(t->keys); free(t->vals); }
static void rehash(struct table *t) {
    struct table big = table(t->n * 2);
    for (int64_t i = 0; i < t->n; i++)
        if (t->slots[i]) {
            int64_t j = -find(&big, t->keys[i]) - 1;
            big.slots[j] = 0x80; big.keys[j] = t->keys[i]; big.vals[j] = t->vals[i];
        }
    big.count = t->count;
    drop(t);
    *t = big;
}
static void put(struct table *t, int64_t key, int64_t val) {
    int64_t i = find(t, key);
    if (i >= 0) { t->vals[i] = val; return; }
    i = -i - 1;
    t->slots[i] = 0x80; t->keys[i] = key; t->vals[i] = val;
    if (++t->count * 3 > t->n * 2) rehash(t);
}
double run(int64_t a, int64_t b) {
    int64_t s = 0;
    for (int64_t r = 1; r <= b; r++) {
        struct table t = table(16);
        int64_t x = r;
        for (int64_t i = 1; i <= a; i++) {
            x = (x * 1103515245 + 12345) & 2147483647;
            int64_t k = x % a, j = find(&t, k);
            put(&t, k, (j >= 0 ? t.vals[j] : 0) + i);
        }
        for (int64_t k = 0; k < a; k++) {
            int64_t j = find(&t, k);
            if (j >= 0) s = (s * 31 + t.vals[j]) & 1073741823;
        }
        s += t.count;
        drop(&t);
    }
    return (double)s;
}
