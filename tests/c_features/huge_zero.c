// Zeros beyond what one unit may have.
// flags: -mcmodel=large
// refused -fPIC -fPIE -fno-pic: bytes
// not-linked:
char block[8L << 30];
long feature(void) { return block[5]; }
