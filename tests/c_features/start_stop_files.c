// Entries of one section in two files.
__attribute__((section("entries"), used)) static long first = 1;
__attribute__((section("entries"), used)) static long second = 20;
extern long __start_entries[], __stop_entries[];
long other(void);
long feature(void) {
    long sum = 0;
    for (long *one = __start_entries; one < __stop_entries; one++) sum += *one;
    return sum + other();
}
//// other.c
__attribute__((section("entries"), used)) static long third = 300;
extern long __start_entries[], __stop_entries[];
long other(void) { return (__stop_entries - __start_entries) * 1000; }
