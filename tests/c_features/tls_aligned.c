// A thread-local variable that is aligned beyond what the blocks of threads are.
// refused -fPIE -fno-pic: aligned to 256, in the block of each thread
__thread long aligned __attribute__((aligned(256))) = 2;
long *where(void) { return &aligned; }
long feature(void) { return *where() + ((unsigned long)where() % 256 == 0); }
