// A list of arguments that is handed to the C library.
#include <stdarg.h>
#include <stdio.h>
static int format(char *text, unsigned long size, const char *how, ...) {
    va_list list;
    va_start(list, how);
    int length = vsnprintf(text, size, how, list);
    va_end(list);
    return length;
}
long feature(void) {
    char text[100];
    long length = format(text, sizeof text, "%s %d %.2f %c %ld", "text", 42, 2.71828, 'x', -7L);
    return length * 1000 + text[3] + text[12];
}
