// Complex numbers, multiplied and divided by the compiler's library.
#include <complex.h>
long feature(void) {
    volatile double complex x = 3 + 4 * I, y = 1 - 2 * I;
    double complex z = x * y / (x + y);
    return (long)(creal(z) * 1000) + (long)(cimag(z) * 100) + (long)cabs(x);
}
