// What a throw costs that is caught one frame up, in C++.
//
// g++ -O2 throw.cpp -o throw && ./throw
//
// Prints: nanoseconds for each throw, and for each call inside a `try` that does not throw.
#include <chrono>
#include <cstdio>

static volatile long sink;

__attribute__((noinline)) static long up(long n) {
    if (n % 2 == 0) throw n;
    return n;
}

static double run(long rounds, long odd) {
    auto began = std::chrono::steady_clock::now();
    long sum = 0;
    for (long n = 0; n < rounds; n++) {
        try {
            sum += up((n & ~1L) | odd);
        } catch (long) {
            sum += 1;
        }
    }
    sink = sum;
    std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - began;
    return time.count() / rounds;
}

int main() {
    run(10000, 0);
    std::printf("%.1f %.2f\n", run(1000000, 0), run(100000000, 1));
}
