// Two files that need each other's functions and data.
long odd(long);
extern const char *const name_of_odd;
long even(long n) { return n == 0 ? 1 : odd(n - 1); }
const char *const name_of_even = "even";
long feature(void) { return even(10) * 100 + odd(7) * 10 + name_of_odd[0]; }
//// other.c
long even(long);
extern const char *const name_of_even;
const char *const name_of_odd = "odd";
long odd(long n) { return n == 0 ? 0 : even(n - 1) + name_of_even[0] * 0; }
