// The older form of functions that run at loading.
// value: 7
static long state;
static void run(void) { state = 7; }
__attribute__((section(".ctors"), used)) static void (*const entry)(void) = run;
long feature(void) { return state; }
