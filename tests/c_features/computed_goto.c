// Addresses of labels in a table.
long feature(void) {
    static const unsigned char code[] = {0, 1, 1, 2, 0, 3};
    static const void *const labels[] = {&&add, &&twice, &&less, &&end};
    const unsigned char *at = code;
    long x = 1;
    goto *labels[*at++];
add: x += 10; goto *labels[*at++];
twice: x *= 2; goto *labels[*at++];
less: x -= 3; goto *labels[*at++];
end: return x;
}
