// BLAKE3: digests of many lengths, plain, with a key and derived, by whatever instructions the processor has.
#include "blake3.h"
long check(long size) {
    static unsigned char text[1 << 16];
    unsigned long sum = 0;
    for (unsigned n = 0; n < sizeof text; n++) text[n] = n % 251;
    unsigned char key[BLAKE3_KEY_LEN] = "whats the Elvish word for friend", digest[100];
    for (long length = 0; length < size && length < sizeof text; length = length * 3 + 1) {
        blake3_hasher hasher;
        for (int kind = 0; kind < 3; kind++) {
            if (kind == 0) blake3_hasher_init(&hasher);
            if (kind == 1) blake3_hasher_init_keyed(&hasher, key);
            if (kind == 2) blake3_hasher_init_derive_key(&hasher, "a context of the test");
            blake3_hasher_update(&hasher, text, length);
            blake3_hasher_finalize_seek(&hasher, kind * 7, digest, sizeof digest);
            for (unsigned n = 0; n < sizeof digest; n++) sum = sum * 31 + digest[n];
        }
    }
    return sum;
}
