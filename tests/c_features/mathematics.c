// Functions of the C mathematics library.
#include <math.h>
long feature(void) {
    volatile double x = 1.5;
    return (long)(sin(x) * 1e6) + (long)(pow(x, 10) * 1e3) + (long)lround(exp(x)) + (long)(atan2(x, 2) * 1e5);
}
