// A table of strings.
#include <string.h>
static const char *const names[] = {"zero", "one", "two", "three", "four", "five"};
long feature(void) {
    long sum = 0;
    for (unsigned long n = 0; n < sizeof names / sizeof *names; n++) sum = sum * 7 + strlen(names[n]) + names[n][1];
    return sum;
}
