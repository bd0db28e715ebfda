// A weak reference with a definition in another file.
extern long present(void) __attribute__((weak));
long feature(void) { return present ? present() : 7; }
//// other.c
long present(void) { return 9; }
