// Code and data in sections with names of their own.
__attribute__((section(".text.mine"), noinline)) long code(long x) { return x + 1; }
__attribute__((section(".data.mine"))) long data = 40;
__attribute__((section("my-rodata"))) const long constant = 500;
long feature(void) { return code(data++) + *(volatile const long *)&constant + data; }
