/* An object file that the tests link into a session: it has a function, data, and a call of a function that a program defines. */
long sum(long x, long y) { return x + y; }

long calls_made;

extern long twice(long x);

long quadruple(long x) {
    calls_made++;
    return twice(twice(x));
}
