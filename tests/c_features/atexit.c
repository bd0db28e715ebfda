// A function to be called at the end of the process or of the unit.
#include <stdlib.h>
static long ended;
static void end(void) { ended++; }
long feature(void) { return atexit(end) * 100 + ended + 5; }
