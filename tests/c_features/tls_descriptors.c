// Descriptors of thread-local symbols.
// flags: -mtls-dialect=gnu2
// refused -fPIC: thread-local storage by descriptors
__thread long value = 5;
long feature(void) { return value; }
