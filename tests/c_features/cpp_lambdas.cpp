// Functions as values.
#include <functional>
#include <vector>
extern "C" long feature() {
    long base = 3;
    std::vector<std::function<long(long)>> all;
    all.push_back([](long x) { return x + 1; });
    all.push_back([base](long x) { return x * base; });
    all.push_back([&base](long x) { return base += x; });
    long x = 5;
    for (auto &one : all) x = one(x);
    long (*plain)(long) = [](long y) { return y - 2; };
    return plain(x) * 100 + base;
}
