// Storage at a fixed offset from the thread's block is for programs.
// refused -fPIC -fPIE -fno-pic: thread-local storage by a fixed offset
__thread long value __attribute__((tls_model("initial-exec"))) = 5;
long feature(void) { return value; }
