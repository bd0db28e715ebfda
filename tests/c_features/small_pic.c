// The small form of position-independent code.
// flags: -fpic
long global = 4;
long feature(void) { return global++ + global; }
