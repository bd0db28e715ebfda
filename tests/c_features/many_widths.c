// Addresses and distances of every width in data, made by the assembler.
extern long target[2];
extern char places[];
__asm__(
    ".data\n.balign 8\n.globl target, places\ntarget: .quad 77, 88\nplaces:\n.quad target\n.quad target - .\n.long target - .\n"
    ".long 0\n.quad target@GOT\n.quad _GLOBAL_OFFSET_TABLE_ - .\n.quad target@GOTOFF\n.text\n");
long feature(void) {
    long *quads = (long *)places;
    int distance = *(int *)(places + 16);
    long *by_distance = (long *)(places + 16 + distance);
    char *table = places + 32 + quads[4];
    long **slot = (long **)(table + quads[3]);
    return (quads[0] == (long)target) + ((char *)target == places + 8 + quads[1]) * 10 + by_distance[1] +
        ((long *)(table + quads[5]) == target) * 1000 + (*slot == target) * 10000;
}
