// Thread-local variables that only the file sees: one look-up for all.
// refused -fPIE -fno-pic: where there is no room
static __thread int first = 3;
static __thread long second = 5;
static __thread char text[] = "thread";
static __thread long zero[300];
long *sum(int which) { return &zero[which]; }
long feature(void) {
    *sum(7) += first++ + second++;
    return *sum(7) + first * second + text[2] + zero[299];
}
