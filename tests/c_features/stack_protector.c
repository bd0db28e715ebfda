// Frames are protected by a word of the thread.
// flags: -fstack-protector-strong
#include <string.h>
__attribute__((noinline)) static long copy(const char *text) {
    char own[32];
    strcpy(own, text);
    return strlen(own) + own[1];
}
long feature(void) { return copy("protected"); }
