// The greatest size and alignment of common symbols.
// flags: -fcommon
char block[4];
char *other(void);
long feature(void) { return block == other() && (unsigned long)block % 64 == 0; }
//// other.c
char block[4096] __attribute__((aligned(64)));
char *other(void) { for (int n = 0; n < 4096; n++) block[n] = 1; return block; }
