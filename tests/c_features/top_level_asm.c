// A function, data, distances and sizes in assembly.
// flags: -fno-lto
extern long by_hand(long), numbers[3], size_of_numbers;
extern int distance_of_numbers;
__asm__(
    ".text\n.globl by_hand\n.type by_hand, @function\n"
    "by_hand: lea 7(%rdi), %rax\n ret\n.size by_hand, . - by_hand\n"
    ".data\n.globl numbers, size_of_numbers, distance_of_numbers\n.type numbers, @object\n.size numbers, 24\n"
    ".balign 8\nnumbers: .quad 1, 2, 3\n"
    "size_of_numbers: .quad numbers@SIZE\n"
    "distance_of_numbers: .long numbers - .\n.text\n");
long feature(void) {
    long *found = (long *)((char *)&distance_of_numbers + distance_of_numbers);
    return by_hand(10) + found[2] * 100 + size_of_numbers * 1000 + numbers[1];
}
