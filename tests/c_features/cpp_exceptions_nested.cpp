// Exceptions that are thrown again, kept, and thrown while another one is caught.
#include <exception>
#include <stdexcept>
static std::exception_ptr kept;
static long inner() {
    try { throw 3; }
    catch (...) {
        kept = std::current_exception();
        try { throw std::logic_error("second"); } catch (std::logic_error &) { throw; }
    }
}
extern "C" long feature() {
    long sum = 0;
    try { inner(); } catch (const std::logic_error &error) { sum += error.what()[0]; } catch (...) { sum = -1; }
    try { std::rethrow_exception(kept); } catch (int n) { sum += n * 1000; }
    kept = nullptr;
    try { try { throw std::runtime_error("in"); } catch (...) { std::throw_with_nested(std::logic_error("out")); } }
    catch (const std::exception &out) {
        try { std::rethrow_if_nested(out); } catch (const std::exception &in) { sum += in.what()[1] * 10000; }
    }
    return sum;
}
