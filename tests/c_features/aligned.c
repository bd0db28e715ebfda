// Data that is aligned to a cache line and to a page.
long line __attribute__((aligned(64))) = 1;
static char page[4096] __attribute__((aligned(4096)));
long feature(void) {
    page[5] = 3;
    return (unsigned long)&line % 64 + (unsigned long)page % 4096 + page[5] + line;
}
