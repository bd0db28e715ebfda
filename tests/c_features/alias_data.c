// Two names of one variable.
long first = 3;
extern long second __attribute__((alias("first")));
static const long table[4] = {1, 2, 3, 4};
extern const long other[4] __attribute__((alias("table")));
long feature(void) { first = 20; return *(volatile long *)&second + other[2]; }
