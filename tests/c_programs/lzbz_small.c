/* lz4 and bzip2 there and back, of bytes that the program makes: no files and no clock, so that the interpreter runs it. */
#include "lz4.c"
#define BZ_NO_STDIO
#include <stdio.h>
#include <stdlib.h>
#include "blocksort.c"
#include "huffman.c"
#include "crctable.c"
#include "randtable.c"
#include "compress.c"
#include "decompress.c"
#include "bzlib.c"
#define SIZE 20000
void bz_internal_error(int e) { printf("bz %d\n", e); }
static char buf[SIZE], out[2 * SIZE + 1000], back[SIZE];
static unsigned hash(const unsigned char *p, long n) { unsigned h = 1; for (long i = 0; i < n; i++) h = (h << 5 | h >> 27) ^ p[i]; return h; }
int main(void) {
  unsigned r = 1, bm = sizeof out, bk = sizeof back;
  for (int i = 0; i < SIZE; i++) { r = r * 1103515245 + 12345; buf[i] = (r >> 28) < 12 && i > 999 ? buf[i - 1 - (r >> 16) % 999] : r >> 24; }
  int m = LZ4_compress_default(buf, out, SIZE, sizeof out), k = LZ4_decompress_safe(out, back, m, sizeof back);
  printf("lz4 %d (%08x) -> %d %s\n", m, hash((unsigned char *)out, m), k, memcmp(buf, back, SIZE) ? "BAD" : "same");
  int c = BZ2_bzBuffToBuffCompress(out, &bm, buf, SIZE, 1, 0, 0), d = BZ2_bzBuffToBuffDecompress(back, &bk, out, bm, 0, 0);
  printf("bz2 %d %d %u (%08x) -> %u %s\n", c, d, bm, hash((unsigned char *)out, bm), bk, memcmp(buf, back, SIZE) ? "BAD" : "same");
  return 0; }
