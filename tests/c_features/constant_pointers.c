// Constants with addresses, which are read-only after loading.
static const long values[] = {4, 5, 6};
static const long *const pointers[] = {&values[2], values, &values[1]};
struct node { const struct node *next; long value; };
static const struct node third = {0, 3}, second = {&third, 20}, first = {&second, 100};
const struct node *const list = &first;
long feature(void) {
    long sum = 0;
    for (const struct node *at = list; at; at = at->next) sum += at->value;
    for (volatile int n = 0; n < 3; n++) sum = sum * 3 + *pointers[n];
    return sum;
}
