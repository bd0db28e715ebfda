#include <stdint.h>
#include <stdlib.h>
struct point { double x, y; };
struct sum { double x, y; int64_t n; };
static int64_t nearest(struct point p, const struct point *c, int64_t n) {
    int64_t best = 0;
    double least = 1.0e300;
    for (int64_t k = 0; k < n; k++) {
        double dx = p.x - c[k].x, dy = p.y - c[k].y, d = dx * dx + dy * dy;
        if (d < least) { least = d; best = k; }
    }
    return best;
}
double run(int64_t a, int64_t b) {
    struct point *points = malloc(a * 16), centres[8];
    struct sum sums[8];
    int64_t x = 77;
    double t = 0;
    for (int64_t i = 0; i < a; i++) {
        x = (x * 1103515245 + 12345) & 2147483647; points[i].x = (double)(x >> 11) / 1024.0;
        x = (x * 1103515245 + 12345) & 2147483647; points[i].y = (double)(x >> 11) / 1024.0;
    }
    for (int k = 0; k < 8; k++) { centres[k] = points[k]; sums[k] = (struct sum){ 0, 0, 0 }; }
    for (int64_t r = 0; r < b; r++) {
        for (int64_t i = 0; i < a; i++) {
            struct sum *s = &sums[nearest(points[i], centres, 8)];
            s->x += points[i].x; s->y += points[i].y; s->n++;
        }
        for (int k = 0; k < 8; k++) {
            struct sum *s = &sums[k];
            if (s->n > 0) { centres[k].x = s->x / (double)s->n; centres[k].y = s->y / (double)s->n; }
            *s = (struct sum){ 0, 0, 0 };
        }
    }
    for (int k = 0; k < 8; k++) t += centres[k].x * 3.0 + centres[k].y;
    free(points);
    return t;
}
