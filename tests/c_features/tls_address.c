// An initial value that is an address.
// refused -fPIE -fno-pic: thread-local storage by a fixed offset
static long target = 31;
__thread long *pointer = &target;
__thread long aligned __attribute__((aligned(128))) = 2;
long feature(void) { return *pointer + aligned + ((unsigned long)&aligned % 128 == 0); }
