// Integers of 128 bits, divided by the compiler's library.
long feature(void) {
    volatile unsigned __int128 x = (unsigned __int128)0x123456789abcdefULL << 60 | 12345;
    volatile __int128 y = -(__int128)x / 1000003;
    return (long)(x % 1000000007) + (long)(y >> 20) + (long)((double)x / 1e20);
}
