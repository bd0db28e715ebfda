// A symbol that is a number.
extern long stored;
__asm__(".globl answer\n.set answer, 42\n.local hidden_answer\n.set hidden_answer, 0x123456789\n"
        ".data\n.balign 8\n.globl stored\nstored: .quad hidden_answer + 1\n.text\n");
long other(void);
long feature(void) { return stored + other(); }
//// other.c
extern char answer[];
unsigned long *pointer = (unsigned long *)answer;
long other(void) { return (long)pointer * 3; }
