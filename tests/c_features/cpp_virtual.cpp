// Tables of virtual functions.
struct shape { virtual long area() const = 0; virtual ~shape() {} long twice() const { return area() * 2; } };
struct square : shape { long side; square(long s) : side(s) {} long area() const override { return side * side; } };
struct pair : square { long other; pair(long s, long o) : square(s), other(o) {} long area() const override { return side * other; } };
extern "C" long feature() {
    shape *shapes[] = {new square(3), new pair(4, 5)};
    long sum = 0;
    for (shape *one : shapes) { sum = sum * 100 + one->twice(); delete one; }
    return sum;
}
