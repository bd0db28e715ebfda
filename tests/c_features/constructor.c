// A function that runs at loading.
static long state;
__attribute__((constructor)) static void run(void) { state = 5; }
long feature(void) { return state; }
