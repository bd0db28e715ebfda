#include <stdint.h>
#include <stdlib.h>
static int64_t encode(uint8_t *bytes, int64_t at, int64_t n) {
    while (n > 127) { bytes[at++] = (uint8_t)((n & 127) | 128); n >>= 7; }
    bytes[at] = (uint8_t)n;
    return at + 1;
}
__attribute__((noinline)) static int64_t total(const uint8_t *bytes, int64_t stop) {
    int64_t at = 0, s = 0;
    while (at < stop) {
        int64_t n = 0, shift = 0, c;
        do { c = bytes[at++]; n |= (c & 127) << (shift & 63); shift += 7; } while (c >= 128);
        s += n;
    }
    return s;
}
double run(int64_t a, int64_t b) {
    uint8_t *bytes = malloc(a * 4);
    int64_t x = 5, at = 0, s = 0;
    for (int64_t i = 0; i < a; i++) {
        x = (x * 1103515245 + 12345) & 2147483647;
        at = encode(bytes, at, x >> 10);
    }
    for (int64_t r = 0; r < b; r++) {
        __asm__ volatile("" ::: "memory");
        s += total(bytes, at) & 1073741823;
    }
    free(bytes);
    return (double)s;
}
