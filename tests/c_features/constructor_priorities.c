// Functions that run at loading, in the order of their priorities.
static long state;
__attribute__((constructor)) static void last(void) { state = state * 10 + 3; }
__attribute__((constructor(202))) static void second(void) { state = state * 10 + 2; }
__attribute__((constructor(101))) static void first(void) { state = state * 10 + 1; }
__attribute__((constructor(65000))) static void third(void) { state = state * 10 + 7; }
long feature(void) { return state; }
