// Files of the C library, and its standard streams.
// refused -fno-pic: the data symbol `std
#include <stdio.h>
#include <string.h>
long feature(void) {
    FILE *file = tmpfile();
    fprintf(file, "%d %s\n", 17, "lines");
    rewind(file);
    char text[32];
    long number = 0;
    if (fscanf(file, "%ld %31s", &number, text) != 2) return -1;
    fclose(file);
    fflush(stdout);
    return number * 100 + strlen(text) + fileno(stdout) * 10000 + fileno(stderr) * 100000;
}
