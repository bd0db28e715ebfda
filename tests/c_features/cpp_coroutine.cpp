// A coroutine.
// flags: -std=c++20
#include <coroutine>
struct numbers {
    struct promise_type {
        long current = 0;
        numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(long n) { current = n; return {}; }
        void return_void() {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
};
static numbers squares(long count) { for (long n = 1; n <= count; n++) co_yield n * n; }
extern "C" long feature() {
    numbers all = squares(5);
    long sum = 0;
    for (all.handle.resume(); !all.handle.done(); all.handle.resume()) sum = sum * 10 + all.handle.promise().current;
    all.handle.destroy();
    return sum;
}
