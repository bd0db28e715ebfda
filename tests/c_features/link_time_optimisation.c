// Code for the compiler itself.
// flags: -flto
// refused -fPIC -fPIE -fno-pic: link-time optimisation
long feature(void) { return 6; }
