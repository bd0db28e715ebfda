// The address of a function of the C library is the same everywhere in the unit.
#include <stdlib.h>
long (*stored)(const char *) = atol;
long other(long (*)(const char *));
long feature(void) { return (stored == atol) + other(atol) * 10 + stored("300"); }
//// other.c
#include <stdlib.h>
long other(long (*given)(const char *)) { return given == atol; }
