// Thread-local objects with constructors and destructors.
#include <string>
#include <thread>
static long made, ended;
struct counted { std::string text; counted() : text("own") { made++; } ~counted() { ended++; } };
static thread_local counted own;
static void use(long *out) { own.text += " more"; *out = own.text.size(); }
extern "C" long feature() {
    long sizes[3];
    for (long &size : sizes) { std::thread thread(use, &size); thread.join(); }
    return made * 100 + ended * 10 + sizes[0] + sizes[1] + sizes[2];
}
