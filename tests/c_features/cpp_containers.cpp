// Containers and algorithms of the C++ library.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
extern "C" long feature() {
    std::map<std::string, long> ages{{"one", 1}, {"two", 2}};
    ages["a name that is longer than what fits into the object"] += 40;
    std::unordered_map<long, std::unique_ptr<std::string>> more;
    for (long n = 0; n < 50; n++) more[n * 17] = std::make_unique<std::string>(n, 'x');
    std::vector<long> numbers(100);
    std::iota(numbers.begin(), numbers.end(), 1);
    std::sort(numbers.begin(), numbers.end(), [](long a, long b) { return a % 10 < b % 10 || (a % 10 == b % 10 && a < b); });
    long sum = 0;
    for (auto &[name, age] : ages) sum = sum * 10 + name.size() + age;
    try { numbers.at(500) = 1; } catch (const std::out_of_range &) { sum += 1000000; }
    return sum + numbers[3] + more[17 * 9]->size();
}
