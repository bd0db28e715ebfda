// Calls through the table of addresses.
// flags: -fno-plt
#include <stdlib.h>
#include <string.h>
long feature(void) { char text[] = "12345"; return atol(text) + strlen(text); }
