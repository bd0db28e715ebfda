// An entry of `.init_array` by hand.
static long state = 1;
static void run(void) { state *= 6; }
__attribute__((section(".init_array"), used)) static void (*const entry)(void) = run;
__attribute__((section(".init_array.00150"), used)) static void (*const early)(void) = run;
long feature(void) { return state; }
