// Arrays of objects, whose destructors run backwards and when a constructor throws.
static long order, made;
struct item { long n; item() : n(++made) { if (n == 9) throw n; } ~item() { order = order * 10 + n; } };
extern "C" long feature() {
    { item three[3]; }
    long first = order;
    order = 0;
    try { item *many = new item[8]; delete[] many; } catch (long n) { return first * 100000000 + order * 10 + n; }
    return -1;
}
