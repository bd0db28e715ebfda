// Threads, locks and conditions of the C++ library.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
extern "C" long feature() {
    std::mutex lock;
    std::condition_variable changed;
    long sum = 0;
    std::vector<std::thread> threads;
    for (long n = 1; n <= 4; n++)
        threads.emplace_back([&, n] { std::lock_guard<std::mutex> held(lock); sum += n; changed.notify_all(); });
    { std::unique_lock<std::mutex> held(lock); changed.wait(held, [&] { return sum == 10; }); }
    for (auto &thread : threads) thread.join();
    return sum;
}
