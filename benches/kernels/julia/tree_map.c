#include <stdint.h>
#include <stdlib.h>
struct node { int64_t key, count; struct node *left, *right; };
static struct node *make(int64_t key, int64_t count) {
    struct node *n = malloc(sizeof *n);
    n->key = key; n->count = count; n->left = n->right = 0;
    return n;
}
static int64_t insert(struct node *n, int64_t key) {
    for (;;) {
        if (key == n->key) return ++n->count;
        struct node **next = key < n->key ? &n->left : &n->right;
        if (!*next) { *next = make(key, 1); return 1; }
        n = *next;
    }
}
static int64_t walk(struct node *n, int64_t depth) {
    int64_t s = n->count * depth + n->key;
    if (n->left) s += walk(n->left, depth + 1);
    if (n->right) s += walk(n->right, depth + 1);
    return s & 1073741823;
}
static void drop(struct node *n) { if (n) { drop(n->left); drop(n->right); free(n); } }
double run(int64_t a, int64_t b) {
    int64_t s = 0, x = 3;
    for (int64_t r = 0; r < b; r++) {
        struct node *root = make(a >> 1, 0);
        for (int64_t i = 0; i < a; i++) {
            x = (x * 1103515245 + 12345) & 2147483647;
            s += insert(root, (x >> 8) % a);
        }
        s += walk(root, 1);
        drop(root);
    }
    return (double)s;
}
