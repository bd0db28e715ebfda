// Code for the compiler itself.
// gcc-only:
// flags: -flto
// refused -fPIC -fPIE -fno-pic: link-time optimisation
long feature(void) { return 6; }
