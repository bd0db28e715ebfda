// 24 MiB of zeros.
static char block[24 << 20];
long feature(void) {
    long sum = 0;
    for (long n = 0; n < sizeof block; n += 4096) sum += block[n]++;
    return sum + block[4096 * 5] + block[1];
}
