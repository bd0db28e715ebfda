// The ends of a section that no file has are null.
extern long __start_nothing[] __attribute__((weak)), __stop_nothing[] __attribute__((weak));
long feature(void) { return __stop_nothing - __start_nothing + 5; }
