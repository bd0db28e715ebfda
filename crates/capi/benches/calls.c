/* What calls cost in C. Prints a line for each measurement: its name, and nanoseconds for one call, or milliseconds for one copy.
 * `calls.rs` builds and runs it, and prints the same for Rust beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "brolga.h"

enum { CALLS = 200000, ROUNDS = 15, NUMBERS = 10000000 };

static const char *const PROGRAM =
    "function next(x::Int64)::Int64\n"
    "1 ─ %1 = Base.slt_int(x, 0)::Bool\n"
    "└──      goto #3 if not %1\n"
    "2 ─      invoke Base.error(\"negative\"::String)::Union{}\n"
    "└──      unreachable\n"
    "3 ─ %5 = Base.add_int(x, 1)::Int64\n"
    "└──      return %5\n"
    "end\n";

static const char *const LOOP =
    "function %s(n::Int64)::Int64\n"
    "1 ─      goto #2\n"
    "2 ┄ %%2 = φ (#1 => 0, #3 => %%5)::Int64\n"
    "│   %%3 = Base.slt_int(%%2, n)::Bool\n"
    "└──      goto #4 if not %%3\n"
    "3 ─ %%5 = invoke Main.%s(%%2::Int64)::Int64\n"
    "└──      goto #2\n"
    "4 ─      return %%2\n"
    "end\n";

static void must(BrolgaError *error) {
    if (error != NULL) {
        fprintf(stderr, "error: %s\n", brolga_error_message(error));
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int64_t sum;

static int64_t host_next(void *data, int64_t x) {
    (void)data;
    return x + 1;
}

typedef struct {
    int64_t value;
    BrolgaError *error;
} Outcome;

static Outcome host_fallible(void *data, int64_t x) {
    (void)data;
    const Outcome outcome = {x + 1, NULL};
    return outcome;
}

static BrolgaError *host_values(void *data, const BrolgaValue *args, size_t count, BrolgaValue *result) {
    (void)data;
    (void)count;
    *result = brolga_int64(args[0].bits.int64 + 1);
    return NULL;
}

static void nothing(void *data) {
    (void)data;
}

/* The least time of some rounds, of one of `times` calls. */
#define MEASURE(name, times, unit, body)                                    \
    do {                                                                    \
        double least = 1e300;                                               \
        for (int round = 0; round < ROUNDS; round++) {                      \
            const double start = now();                                     \
            body;                                                           \
            const double took = (now() - start) / (times);                  \
            least = took < least ? took : least;                            \
        }                                                                   \
        printf("%s %.2f\n", name, least / (unit));                          \
    } while (0)

static void hosts(void) {
    BrolgaSession *session = NULL;
    BrolgaDylib *dylib = NULL;
    must(brolga_session_new(NULL, 0, &session));
    must(brolga_session_dylib(session, "main", &dylib));
    must(brolga_dylib_define_plain_host(dylib, "plain(x::Int64)::Int64", (BrolgaPlainFn)host_next, false, NULL, NULL));
    must(brolga_dylib_define_plain_host(dylib, "fallible(x::Int64)::Int64", (BrolgaPlainFn)host_fallible, true, NULL, NULL));
    must(brolga_dylib_define_host(dylib, "values(x::Int64)::Int64", host_values, NULL, NULL));
    const char *const names[] = {"plain", "fallible", "values"};
    for (int i = 0; i < 3; i++) {
        char text[1000], name[40];
        BrolgaFunction *function = NULL;
        BrolgaValue value;
        const BrolgaValue count[] = {brolga_int64(CALLS)};
        sprintf(name, "loop_%s", names[i]);
        sprintf(text, LOOP, name, names[i]);
        must(brolga_dylib_define(dylib, name, text, strlen(text), BROLGA_MODE_EAGER));
        must(brolga_dylib_function(dylib, name, &function));
        sprintf(name, "host_%s", names[i]);
        MEASURE(name, CALLS, 1, must(brolga_function_call(function, count, 1, &value)));
        brolga_function_free(function);
    }
    brolga_dylib_free(dylib);
    brolga_session_free(session);
}

int main(void) {
    BrolgaEngine *engine = NULL;
    BrolgaProgram *program = NULL;
    BrolgaUnit *unit = NULL;
    BrolgaFunction *next = NULL;
    BrolgaRuntime *runtime = NULL;
    must(brolga_engine_new(NULL, &engine));
    must(brolga_engine_runtime(engine, &runtime));
    must(brolga_program_read("calls.jlir", PROGRAM, strlen(PROGRAM), &program));
    must(brolga_engine_compile(engine, program, &unit));
    must(brolga_unit_function(unit, "next", &next));

    const uint32_t kinds[] = {BROLGA_KIND_INT64};
    BrolgaPlainFn address = NULL;
    must(brolga_function_address(next, kinds, 1, BROLGA_KIND_INT64, &address));
    int64_t (*const as_value)(int64_t) = (int64_t (*)(int64_t))address;
    must(brolga_function_code_address(next, kinds, 1, BROLGA_KIND_INT64, &address));
    uint32_t (*const as_code)(int64_t, int64_t *) = (uint32_t (*)(int64_t, int64_t *))address;

    MEASURE("call_value", CALLS, 1, for (int64_t i = 0; i < CALLS; i++) sum += as_value(i));
    MEASURE("call_code", CALLS, 1, for (int64_t i = 0, x = 0; i < CALLS; i++) sum += (int64_t)as_code(i, &x) + x);
    MEASURE("call_words", CALLS, 1, for (uint64_t i = 0, x = 0; i < CALLS; i++) {
        must(brolga_function_call_words(next, &i, &x));
        sum += (int64_t)x;
    });
    MEASURE("call_values", CALLS, 1, for (int64_t i = 0; i < CALLS; i++) {
        BrolgaValue value;
        const BrolgaValue args[] = {brolga_int64(i)};
        must(brolga_function_call(next, args, 1, &value));
        sum += value.bits.int64;
    });
    hosts();

    double *numbers = malloc(NUMBERS * sizeof(double)), *copy = malloc(NUMBERS * sizeof(double));
    for (size_t i = 0; i < NUMBERS; i++) {
        numbers[i] = copy[i] = (double)i;
    }
    BrolgaObject *vector = NULL;
    size_t length = 0;
    MEASURE("memcpy", 1, 1e6, (memcpy(copy, numbers, NUMBERS * sizeof(double)), sum += (int64_t)copy[sum % 7]));
    MEASURE("memcpy_new", 1, 1e6, {
        double *fresh = malloc(NUMBERS * sizeof(double));
        memcpy(fresh, numbers, NUMBERS * sizeof(double));
        sum += (int64_t)fresh[sum % 7];
        free(fresh);
    });
    MEASURE("copy_in", 1, 1e6, {
        must(brolga_object_numbers(runtime, BROLGA_KIND_FLOAT64, numbers, NUMBERS, &vector));
        brolga_object_free(vector);
    });
    must(brolga_object_numbers(runtime, BROLGA_KIND_FLOAT64, numbers, NUMBERS, &vector));
    MEASURE("copy_out", 1, 1e6, must(brolga_object_copy_numbers(vector, BROLGA_KIND_FLOAT64, copy, NUMBERS, &length)));
    brolga_object_free(vector);
    MEASURE("borrow", 100, 1e6, for (int i = 0; i < 100; i++) {
        must(brolga_object_borrow(runtime, BROLGA_KIND_FLOAT64, numbers, NUMBERS, nothing, NULL, &vector));
        brolga_object_free(vector);
    });
    free(numbers);
    free(copy);
    brolga_runtime_free(runtime);
    brolga_function_free(next);
    brolga_unit_free(unit);
    brolga_program_free(program);
    brolga_engine_free(engine);
    return sum == 0;
}
