// A definition with a value overrides one without.
// flags: -fcommon
long shared;
long feature(void) { return shared; }
//// other.c
long shared = 77;
