// One variable of two files, without an initial value.
// flags: -fcommon
long shared;
long other(void);
long feature(void) { shared = 5; return other() + shared; }
//// other.c
long shared;
long other(void) { return shared++ * 10; }
