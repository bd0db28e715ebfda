// Types of objects at run time.
#include <cstring>
#include <typeinfo>
struct animal { virtual ~animal() {} };
struct dog : animal { long bones = 4; };
struct cat : animal {};
extern "C" long feature() {
    animal *volatile first = new dog, *volatile second = new cat;
    dog *found = dynamic_cast<dog *>(first), *none = dynamic_cast<dog *>(second);
    long sum = found->bones + (none == nullptr) * 10 + strlen(typeid(*first).name()) * 100 + (typeid(*second) == typeid(cat)) * 1000;
    delete first;
    delete second;
    return sum;
}
