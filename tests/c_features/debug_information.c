// Debug information is left out.
// flags: -g3
struct row { int a; long b; };
static struct row rows[] = {{1, 2}, {3, 4}};
long feature(void) { return rows[1].b * 10 + rows[0].a; }
