// Structs by value, small and large.
struct small { int a; float b; };
struct large { long values[6]; };
__attribute__((noinline)) static struct small change(struct small s) { s.a++; s.b *= 2; return s; }
__attribute__((noinline)) static struct large fill(struct large l, long x) { l.values[3] = x; return l; }
struct bits { unsigned a : 3, b : 7; int c : 5; };
long feature(void) {
    struct small s = change((struct small){4, 2.5f});
    struct large l = fill((struct large){{1, 2}}, 9);
    volatile struct bits b = {5, 100, -7};
    return s.a + (long)(s.b * 10) + l.values[1] + l.values[3] * 100 + b.a * 1000 + b.b + b.c;
}
