// Objects that are made at loading.
static long order;
struct made { long value; made(long x) : value(order = order * 10 + x) {} ~made() { order = -1; } };
static made first(1), second(2);
extern "C" long feature() { return first.value * 1000 + second.value; }
