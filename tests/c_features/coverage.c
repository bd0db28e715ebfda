// Coverage, whose library is not there.
// gcc-only:
// flags: --coverage -fprofile-dir=/tmp
// unresolved: __gcov
long feature(void) { return 6; }
