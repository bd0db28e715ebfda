// Functions of two files that run at loading: by priority, then by file.
extern long state;
__attribute__((constructor(300))) static void early(void) { state = state * 10 + 1; }
__attribute__((constructor)) static void late(void) { state = state * 10 + 2; }
long feature(void) { return state; }
//// other.c
long state;
__attribute__((constructor(200))) static void earliest(void) { state = state * 10 + 3; }
__attribute__((constructor)) static void latest(void) { state = state * 10 + 4; }
