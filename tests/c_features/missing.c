// A function and a variable that nobody has.
// unresolved: nobody_has_this
// not-linked:
long nobody_has_this(long);
long feature(void) { return nobody_has_this(5); }
