// A function that runs at unloading does nothing before.
static long state = 4;
__attribute__((destructor)) static void run(void) { state = 5; }
__attribute__((destructor(300))) static void last(void) { state = 6; }
long feature(void) { return state; }
