#include <stdint.h>
#include <stdlib.h>
struct queue { int64_t *items, count; };
static void push(struct queue *q, int64_t x) {
    int64_t i = ++q->count;
    while (i > 1) {
        int64_t p = i >> 1, y = q->items[p - 1];
        if (y <= x) break;
        q->items[i - 1] = y;
        i = p;
    }
    q->items[i - 1] = x;
}
static int64_t pop(struct queue *q) {
    int64_t top = q->items[0], x = q->items[q->count - 1], n = --q->count, i = 1;
    while (2 * i <= n) {
        int64_t c = 2 * i;
        if (c < n && q->items[c] < q->items[c - 1]) c++;
        int64_t y = q->items[c - 1];
        if (x <= y) break;
        q->items[i - 1] = y;
        i = c;
    }
    q->items[i - 1] = x;
    return top;
}
double run(int64_t a, int64_t b) {
    struct queue q = { malloc((a + 1) * 8), 0 };
    int64_t x = 1, s = 0;
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < a; i++) { x = (x * 1103515245 + 12345) & 2147483647; push(&q, x); }
        for (int64_t i = 0; i < a; i++) s = (s * 3 + pop(&q)) & 1073741823;
    }
    free(q.items);
    return (double)s;
}
