// A sanitizer whose library is not there.
// flags: -fsanitize=undefined
// unresolved: __ubsan_handle
long feature(void) { volatile int x = 2000000000; return x + x > 0; }
