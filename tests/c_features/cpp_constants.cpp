// Constants that the compiler makes, and text views.
// flags: -std=c++17
#include <array>
#include <string_view>
constexpr auto squares = [] { std::array<long, 20> all{}; for (long n = 0; n < 20; n++) all[n] = n * n; return all; }();
constexpr std::string_view names[] = {"alpha", "beta", "gamma"};
extern "C" long feature() {
    volatile int at = 7;
    return squares[at] * 100 + names[at - 5].size() + (names[1] < names[2]) * 10;
}
