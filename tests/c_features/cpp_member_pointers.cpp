// Pointers to members, virtual and not.
struct thing { long a = 3; virtual long get(long x) { return a + x; } long plain(long x) { return a * x; } virtual ~thing() {} };
struct derived : thing { long get(long x) override { return a - x; } };
static long (thing::*const table[])(long) = {&thing::get, &thing::plain};
extern "C" long feature() {
    derived d;
    thing *volatile t = &d;
    long thing::*member = &thing::a;
    t->*member = 50;
    return (t->*table[0])(8) * 1000 + (t->*table[1])(2);
}
