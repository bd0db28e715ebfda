// A thread-local variable of the file and of another one.
extern __thread long far;
__thread long near = 5;
static __thread long own = 100;
long other(void);
long feature(void) { near += 2; own++; far += 10; return near + own + far + other(); }
//// other.c
__thread long far = 1000;
extern __thread long near;
long other(void) { return ++near * 10000; }
