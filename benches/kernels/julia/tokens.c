#include <stdint.h>
#include <string.h>
static int digit(uint8_t c) { return '0' <= c && c <= '9'; }
static int letter(uint8_t c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_'; }
static __attribute__((noinline)) int64_t scan(const uint8_t *s, int64_t n) {
    int64_t i = 0, h = 0;
    while (i < n) {
        uint8_t c = s[i];
        if (c == ' ') i++;
        else if (digit(c)) {
            int64_t v = 0;
            while (i < n && digit(s[i])) v = v * 10 + (s[i++] - '0');
            h = (h * 31 + v) & 1073741823;
        } else if (letter(c)) {
            int64_t k = 17;
            while (i < n && (letter(s[i]) || digit(s[i]))) k = (k * 33 + s[i++]) & 65535;
            h = (h * 37 + k) & 1073741823;
        } else { h = (h * 41 + c) & 1073741823; i++; }
    }
    return h;
}
double run(int64_t a, int64_t b) {
    const char *text = "alpha1 = beta_2 * (gamma + 12345) - delta4 / 67890 + eps * (x1 + y2 * 333) ; while index < length do index = index + 1 end";
    int64_t s = 0, n = strlen(text);
    for (int64_t r = 0; r < a; r++) {
        __asm__ volatile("" : "+r"(text));
        s = (s + scan((const uint8_t *)text, n)) & 1073741823;
    }
    return (double)s;
}
