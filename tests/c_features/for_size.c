// Code for size.
// flags: -Os
#include <string.h>
long feature(void) { char text[40]; memset(text, 'a', 39); text[39] = 0; return strlen(text) + text[7]; }
