// The general model on request, whatever the code is for.
// flags: -ftls-model=global-dynamic
_Thread_local long value = 9;
long feature(void) { return value++ + value; }
