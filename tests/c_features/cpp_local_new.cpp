// A class with its own allocation.
#include <cstdlib>
#include <new>
static long allocated;
struct own { long x; static void *operator new(std::size_t n) { allocated += n; return std::malloc(n); } static void operator delete(void *p) { allocated -= 1; std::free(p); } };
extern "C" long feature() { own *one = new own{5}; long x = one->x; delete one; return x * 100 + allocated; }
