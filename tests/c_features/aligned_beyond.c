// Data that is aligned beyond a page.
// refused -fPIC -fPIE -fno-pic: aligned to 65536 bytes
char block[65536] __attribute__((aligned(65536))) = {1};
long feature(void) { return (unsigned long)block % 65536 + block[0]; }
