// Distances of labels in a table.
long feature(void) {
    static const int distances[] = {&&first - &&first, &&second - &&first, &&third - &&first};
    volatile int at = 0;
    long x = 1;
    goto *(&&first + distances[at]);
first: x += 5; at = 2; goto *(&&first + distances[at]);
second: return x;
third: x *= 7; at = 1; goto *(&&first + distances[at]);
}
