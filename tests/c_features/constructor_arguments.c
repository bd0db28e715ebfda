// An initialiser gets the environment.
static long has_environment;
__attribute__((constructor)) static void run(int count, char **arguments, char **environment) {
    (void)count, (void)arguments;
    has_environment = environment != 0;
}
long feature(void) { return has_environment; }
