// The error number of the C library.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
long feature(void) {
    errno = 0;
    FILE *none = fopen("/nowhere/at/all", "r");
    long first = errno;
    strtol("99999999999999999999999", 0, 10);
    return first * 1000 + errno + (none != 0);
}
