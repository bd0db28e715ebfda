// The programs of `benches/heap/main.rs` by C's `malloc` and `free`: trees, list, table.
//
// cc -O2 heap.c -o heap && ./heap trees 18
//
// Prints: `result`, nanoseconds of processor time for each allocation, milliseconds in all. A tree is freed while it is counted.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Pair {
    struct Pair *a, *b;
} Pair;

static Pair *pair(Pair *a, Pair *b) {
    Pair *made = malloc(sizeof(Pair));
    if (!made) abort();
    made->a = a;
    made->b = b;
    return made;
}

static Pair *build(long depth) {
    if (depth == 0) return pair(NULL, NULL);
    Pair *a = build(depth - 1);
    return pair(a, build(depth - 1));
}

static long drop(Pair *tree) {
    long nodes = tree->a ? 1 + drop(tree->a) + drop(tree->b) : 1;
    free(tree);
    return nodes;
}

static long trees(long most) {
    Pair *kept = build(most);
    long nodes = 0;
    for (long depth = 4; depth <= most; depth += 2)
        for (long round = 0; round < 1L << (most - depth + 4); round++) nodes += drop(build(depth));
    return nodes + drop(kept);
}

static long list(long rounds) {
    Pair *head = pair(NULL, NULL), *tail = head;
    for (long step = 0; step < rounds; step++) {
        tail = tail->a = pair(NULL, NULL);
        if (step >= 100000) {
            Pair *next = head->a;
            free(head);
            head = next;
        }
    }
    while (head) {
        Pair *next = head->a;
        free(head);
        head = next;
    }
    return rounds + 1;
}

static long table(long rounds) {
    Pair **slots = calloc(1 << 18, sizeof(Pair *));
    uint64_t state = 1;
    for (long round = 0; round < rounds; round++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Pair **slot = &slots[state & ((1 << 18) - 1)];
        free(*slot);
        *slot = pair(NULL, NULL);
    }
    for (long slot = 0; slot < 1 << 18; slot++) free(slots[slot]);
    free(slots);
    return rounds;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    long size = atol(words[2]);
    long (*run)(long) = !strcmp(words[1], "trees") ? trees : !strcmp(words[1], "list") ? list : table;
    clock_t began = clock();
    long made = run(size);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    printf("result %.2f %.0f\n", seconds * 1e9 / made, seconds * 1e3);
}
