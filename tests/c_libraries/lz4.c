// lz4: there and back, fast, at high compression, and as a frame.
#include <stdlib.h>
#include <string.h>
#include "lz4.h"
#include "lz4frame.h"
#include "lz4hc.h"
#include "xxhash.h"
long check(long size) {
    char *text = malloc(size), *back = malloc(size);
    unsigned long state = 1, sum = 0;
    for (long n = 0; n < size; n++) state = state * 6364136223846793005 + 1442695040888963407, text[n] = state >> 33 & state >> 40 & 63;
    int bound = LZ4_compressBound(size);
    char *packed = malloc(bound + 1000);
    for (int level = 0; level < 12; level += 3) {
        int packed_size = level ? LZ4_compress_HC(text, packed, size, bound, level) : LZ4_compress_default(text, packed, size, bound);
        if (packed_size <= 0 || LZ4_decompress_safe(packed, back, packed_size, size) != size || memcmp(text, back, size)) return -1;
        sum = sum * 31 + packed_size + XXH64(packed, packed_size, 5);
    }
    size_t frame = LZ4F_compressFrame(packed, LZ4F_compressFrameBound(size, NULL), text, size, NULL);
    if (LZ4F_isError(frame)) return -2;
    sum = sum * 31 + XXH32(packed, frame, 7);
    free(packed);
    free(text);
    free(back);
    return sum;
}
