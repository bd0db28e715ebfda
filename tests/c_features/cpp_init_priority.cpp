// Objects that are made in the order of their priorities.
static long order;
struct made { made(long x) { order = order * 10 + x; } };
__attribute__((init_priority(2000))) made late(2);
__attribute__((init_priority(1000))) made early(1);
made last(3);
extern "C" long feature() { return order; }
