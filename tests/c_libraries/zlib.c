// zlib: there and back at each level, with checksums.
#include <stdlib.h>
#include <string.h>
#include "zlib.h"
long check(long size) {
    unsigned char *text = malloc(size), *back = malloc(size);
    unsigned long state = 1, sum = 0;
    for (long n = 0; n < size; n++) state = state * 6364136223846793005 + 1442695040888963407, text[n] = state >> 33 & state >> 40 & 63;
    for (int level = 0; level <= 9; level++) {
        uLongf packed_size = compressBound(size), back_size = size;
        unsigned char *packed = malloc(packed_size);
        if (compress2(packed, &packed_size, text, size, level) != Z_OK) return -1;
        memset(back, 0, size);
        if (uncompress(back, &back_size, packed, packed_size) != Z_OK) return -2;
        if (back_size != size || memcmp(text, back, size)) return -3;
        sum = sum * 31 + packed_size + crc32(0, packed, packed_size) + adler32(1, packed, packed_size);
        free(packed);
    }
    free(text);
    free(back);
    return sum;
}
