// A thread-local object of another file, which is made when it is first used.
struct counted { long n; counted(); };
extern thread_local counted far;
extern thread_local long plain;
extern "C" long feature() { far.n += 3; plain += 5; return far.n * 100 + plain; }
//// other.cpp
struct counted { long n; counted(); };
counted::counted() : n(20) {}
thread_local counted far;
thread_local long plain = 2;
