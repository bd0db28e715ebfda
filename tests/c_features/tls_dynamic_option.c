// The general model on request, whatever the code is for.
// flags: -ftls-model=global-dynamic
// refused -fPIE -fno-pic: thread-local storage by a fixed offset
_Thread_local long value = 9;
long feature(void) { return value++ + value; }
