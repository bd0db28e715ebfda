// An initial value that is an address.
static long target = 31;
__thread long *pointer = &target;
__thread long aligned __attribute__((aligned(32))) = 2;
long feature(void) { return *pointer + aligned + ((unsigned long)&aligned % 32 == 0); }
