// Virtual bases, with thunks and tables for construction.
struct base { long x = 1; virtual long get() { return x; } virtual ~base() {} };
struct left : virtual base { long l = 2; long get() override { return x + l; } };
struct right : virtual base { long r = 3; virtual long other() { return r; } };
struct both : left, right { long get() override { return left::get() * 10 + r; } long other() override { return get() + 1000; } };
extern "C" long feature() {
    both *made = new both;
    base *as_base = made;
    right *as_right = made;
    long sum = as_base->get() * 10000 + as_right->other();
    delete as_base;
    return sum;
}
