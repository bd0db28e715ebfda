// An exception from one file, caught in another.
struct problem { long code; virtual ~problem() {} };
long risky(long);
extern "C" long feature() {
    long sum = 0;
    for (long n = 0; n < 3; n++) try { sum += risky(n); } catch (const problem &p) { sum += p.code * 100; }
    return sum;
}
//// other.cpp
struct problem { long code; virtual ~problem() {} };
struct worse : problem {};
__attribute__((noinline)) long risky(long n) {
    if (n == 1) { problem p; p.code = 7; throw p; }
    if (n == 2) { worse w; w.code = 30; throw w; }
    return 5;
}
