// Variables of functions that keep their values.
static long next(void) { static long n = 10; static long calls; return n++ * 10 + ++calls; }
long feature(void) { return next() + next() * 1000; }
