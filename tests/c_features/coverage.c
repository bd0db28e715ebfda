// Coverage, whose library is not there.
// flags: --coverage -fprofile-dir=/tmp
// unresolved: __gcov
long feature(void) { return 6; }
