// Descriptors of thread-local symbols.
// flags: -mtls-dialect=gnu2
// refused -fPIC: thread-local storage by descriptors
// refused -fPIE -fno-pic: thread-local storage by a fixed offset
__thread long value = 5;
long feature(void) { return value; }
