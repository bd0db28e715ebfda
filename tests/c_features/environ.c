// Variables of the C library: the environment, and options.
// refused -fno-pic: the data symbol `
#include <unistd.h>
#include <getopt.h>
extern char **environ;
long feature(void) {
    long count = 0;
    for (char **one = environ; *one; one++) count++;
    opterr = 0;
    char *arguments[] = {"name", "-a", "-b", "value", 0};
    optind = 1;
    long seen = 0;
    for (int option; (option = getopt(4, arguments, "ab:")) != -1;) seen = seen * 1000 + option + (optarg && optarg[0] == 'v');
    return seen + (count > 0) + optind;
}
