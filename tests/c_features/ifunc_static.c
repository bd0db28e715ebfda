// A static function that is chosen at loading, called and by address.
static long one(long x) { return x + 1; }
typedef long (*function)(long);
static function choose(void) { return one; }
static long chosen(long x) __attribute__((ifunc("choose")));
static long (*volatile pointer)(long) = chosen;
long feature(void) { return chosen(5) * 100 + pointer(7); }
