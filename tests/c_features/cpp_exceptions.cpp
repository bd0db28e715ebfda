// Exceptions: caught by type, with destructors on the way.
#include <stdexcept>
#include <string>
static long destroyed;
struct guard { ~guard() { destroyed++; } };
__attribute__((noinline)) static long risky(long n) {
    guard one;
    if (n == 1) throw 42;
    if (n == 2) throw std::runtime_error("text of the error");
    if (n == 3) throw "characters";
    return n;
}
static long attempt(long n) {
    guard two;
    try { return risky(n); }
    catch (int value) { return value; }
    catch (const std::exception &error) { return std::string(error.what()).size(); }
    catch (...) { return -5; }
}
extern "C" long feature() {
    long sum = 0;
    for (long n = 0; n < 5; n++) sum = sum * 50 + attempt(n);
    return sum * 100 + destroyed;
}
