// Storage at a fixed distance from the pointer of the thread, on request.
__thread long value __attribute__((tls_model("initial-exec"))) = 5;
long feature(void) { return value; }
