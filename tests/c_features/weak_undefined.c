// A weak symbol without a definition is null, for calls, in data and as data.
extern long missing(void) __attribute__((weak));
extern long nothing __attribute__((weak));
long (*volatile table[])(void) = {missing};
long feature(void) { return (missing ? missing() : 7) + (table[0] ? 100 : 20) + (&nothing ? 1000 : 300); }
