#include <stdint.h>
#include <stdlib.h>
static int64_t execute(const int64_t *code, int64_t *regs) {
    int64_t pc = 0, steps = 0;
    for (;;) {
        int64_t op = code[pc], x = code[pc + 1], y = code[pc + 2];
        pc += 3;
        steps++;
        if (op == 0) regs[x] += regs[y];
        else if (op == 1) regs[x] -= regs[y];
        else if (op == 2) regs[x] = y;
        else if (op == 3) regs[x] = regs[y];
        else if (op == 4) regs[x] = (regs[x] * regs[y]) & 1073741823;
        else if (op == 5) { if (regs[x] > 0) pc = y; }
        else if (op == 6) regs[x] ^= regs[y];
        else return steps;
    }
}
static int64_t emit(int64_t *code, int64_t at, int64_t op, int64_t x, int64_t y) {
    code[at] = op; code[at + 1] = x; code[at + 2] = y;
    return at + 3;
}
double run(int64_t a, int64_t b) {
    int64_t *code = malloc(64 * 8), *regs = malloc(9 * 8), s = 0;
    int64_t at = emit(code, 0, 2, 1, a);
    at = emit(code, at, 2, 2, 1);
    at = emit(code, at, 2, 3, 7);
    at = emit(code, at, 2, 4, 3);
    int64_t top = at;
    at = emit(code, at, 4, 3, 4);
    at = emit(code, at, 0, 3, 1);
    at = emit(code, at, 6, 5, 3);
    at = emit(code, at, 3, 6, 5);
    at = emit(code, at, 1, 1, 2);
    at = emit(code, at, 5, 1, top);
    at = emit(code, at, 9, 1, 1);
    for (int64_t r = 1; r <= b; r++) {
        for (int64_t i = 1; i <= 8; i++) regs[i] = r;
        s += execute(code, regs) + regs[5];
    }
    free(code); free(regs);
    return (double)s;
}
