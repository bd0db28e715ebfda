// A handler of a signal.
#include <signal.h>
static volatile sig_atomic_t caught;
static void handle(int number) { caught = number; }
long feature(void) {
    struct sigaction action = {.sa_handler = handle}, before;
    sigaction(SIGUSR2, &action, &before);
    raise(SIGUSR2);
    sigaction(SIGUSR2, &before, 0);
    return caught;
}
