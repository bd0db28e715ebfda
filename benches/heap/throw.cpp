// What a throw costs that is caught so many frames further up, in C++.
//
// g++ -O2 throw.cpp -o throw && ./throw
//
// Prints: `result`, nanoseconds for each throw from 1, 2, 4 and 10 frames below its handler, and for each call that does not throw inside
// and outside of a `try`.
#include <cstdio>
#include <ctime>
#include <initializer_list>

static volatile long sink;

__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls"))) static long up(long n, long frames, long what) {
    if (frames > 0) return up(n, frames - 1, what) + 1;
    if (n % 2 == 0) throw what;
    return n;
}

static double since(clock_t began, long rounds) { return (double)(clock() - began) / CLOCKS_PER_SEC * 1e9 / rounds; }

static double guarded(long rounds, long frames, long odd) {
    clock_t began = clock();
    long sum = 0;
    for (long n = 0; n < rounds; n++) {
        try {
            sum += up(2 * n | odd, frames, 7);
        } catch (long) {
            sum += 1;
        }
    }
    sink = sum;
    return since(began, rounds);
}

static double bare(long rounds, long frames, long odd) {
    clock_t began = clock();
    long sum = 0;
    for (long n = 0; n < rounds; n++) sum += up(2 * n | odd, frames, 7);
    sink = sum;
    return since(began, rounds);
}

int main() {
    std::printf("result");
    guarded(10000, 0, 0);
    for (long frames : {0, 1, 3, 9}) std::printf(" %.1f", guarded(300000, frames, 0));
    bare(1000000, 0, 1);
    std::printf(" %.2f", guarded(100000000, 0, 1));
    std::printf(" %.2f\n", bare(100000000, 0, 1));
}
