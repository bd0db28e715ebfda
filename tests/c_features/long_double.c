// Floating point of 80 bits.
#include <math.h>
#include <stdio.h>
#include <string.h>
long feature(void) {
    volatile long double x = 1.0L / 3;
    char text[64];
    snprintf(text, sizeof text, "%.18Lf", x + sqrtl(2.0L));
    return (long)(x * 1e18L) + strlen(text) + text[7];
}
