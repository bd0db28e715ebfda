// An object that is made at the first call, once for all threads.
#include <string>
static long made;
struct slow { std::string text; slow() : text("made") { made++; } };
__attribute__((noinline)) static slow &get() { static slow one; return one; }
extern "C" long feature() { return get().text.size() + get().text[1] + made * 1000; }
