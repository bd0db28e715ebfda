/* Calls the functions of an image by their own names: see library.rs. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

/* Shows the error that was kept, if there is one. */
static void show(void) {
    BrolgaError *error = brolga_exports_take_error();
    if (error != NULL) {
        const char *exception = brolga_error_exception(error);
        printf("%s (%s)\n", brolga_error_message(error), exception != NULL ? exception : "no exception");
    } else {
        printf("no error\n");
    }
    brolga_error_free(error);
}

static void *elsewhere(void *number) {
    *(int64_t *)number = fib(15);
    /* Errors are those of a thread. */
    inverse(0);
    return brolga_exports_take_error();
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "broken") == 0) {
        printf("fib: %lld\n", (long long)fib(5));
        show();
        return 0;
    }
    if (argc == 4) {
        /* The image is damaged, and mended after the first call. An entry does not read it again. */
        printf("fib: %lld\n", (long long)fib(5));
        show();
        if (rename(argv[3], argv[2]) != 0) {
            return 2;
        }
        printf("fib: %lld\n", (long long)fib(5));
        show();
        BrolgaError *still = numbers_open(NULL);
        printf("opened: %d, fib: %lld\n", still == NULL, (long long)fib(5));
        return 0;
    }
    if (argc == 3) {
        /* The file is another one than was loaded. */
        FILE *file;
        if (remove(argv[2]) != 0 || (file = fopen(argv[2], "wb")) == NULL) {
            return 2;
        }
        for (int i = 0; i < 4096; i++) {
            fputc(i & 0xff, file);
        }
        fclose(file);
        printf("fib: %lld\n", (long long)fib(5));
        show();
        return 0;
    }
    BrolgaError *error = numbers_open(NULL);
    if (error != NULL) {
        printf("%s\n", brolga_error_message(error));
        return 1;
    }
    printf("fib(20) = %lld\n", (long long)fib(20));
    int64_t word = 1000000;
    double (*through)(int8_t, float, bool, uint16_t, double, uint32_t, void *, int32_t, uint8_t, int64_t) = mix;
    printf("mix = %.3f\n", through(-3, 0.25f, true, 65535, 0.125, 7, &word, -2000000, 255, 1));
    printf("half_f(3.0) = %.2f\n", half_f(3.0));
    printf("same: %d %d\n", same(true), same(false));
    long long first = (long long)bump(), second = (long long)bump();
    printf("bump: %lld %lld\n", first, second);
    quiet(1);
    printf("kept(17) = %lld\n", (long long)kept(17));
    show();
    printf("inverse(0) = %d\n", inverse(0));
    /* The first error stays. */
    fib(INT64_MAX);
    printf("inverse(10) = %d\n", inverse(10));
    show();
    show();
    int64_t number = 0;
    void *kept_there = NULL;
    pthread_t thread;
    if (pthread_create(&thread, NULL, elsewhere, &number) != 0 || pthread_join(thread, &kept_there) != 0) {
        return 2;
    }
    printf("elsewhere: %lld\n", (long long)number);
    show();
    printf("%s\n", brolga_error_exception(kept_there));
    brolga_error_free(kept_there);
    fib(INT64_MAX);
    error = brolga_exports_take_error();
    printf("%s\n", brolga_error_exception(error));
    brolga_error_free(error);
    return 0;
}
