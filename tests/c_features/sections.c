// A section for each function and each variable.
// flags: -ffunction-sections -fdata-sections
static long a = 1, b = 2;
const long c[] = {3, 4};
long zero;
__attribute__((noinline)) static long first(void) { return a++ + c[1]; }
__attribute__((noinline)) long second(void) { return b++ + zero++ + first(); }
long feature(void) { return second() * 100 + second(); }
