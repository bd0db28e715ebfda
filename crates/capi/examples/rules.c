/* A rule engine: a session, functions of the host, redefinition, and limits.
 *
 *     $ cargo build --release -p brolga-capi
 *     $ cc -Icrates/capi/include crates/capi/examples/rules.c target/release/libbrolga_capi.a -lm -lpthread -ldl -o rules
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "brolga.h"

static const char *const RULE =
    "function total(article::Int64, pieces::Int64)::Float64\n"
    "1 ─ %1 = invoke Main.price(article::Int64)::Float64\n"
    "│   %2 = Base.sitofp(Float64, pieces)::Float64\n"
    "│   %3 = Base.mul_float(%1, %2)::Float64\n"
    "└──      return %3\n"
    "end\n"
    "function greeting(name::String)::String\n"
    "1 ─ %1 = invoke Main.upper(name::String)::String\n"
    "└──      return %1\n"
    "end\n";

static const char *const DEARER =
    "function total(article::Int64, pieces::Int64)::Float64\n"
    "1 ─ %1 = invoke Main.price(article::Int64)::Float64\n"
    "│   %2 = Base.sitofp(Float64, pieces)::Float64\n"
    "│   %3 = Base.mul_float(%1, %2)::Float64\n"
    "│   %4 = Base.add_float(%3, 1.0)::Float64\n"
    "└──      return %4\n"
    "end\n";

/* A list as long as somebody says, and a loop without end. */
static const char *const HOSTILE =
    "mutable struct Link\n"
    "    next::Any\n"
    "end\n"
    "function hoard(n::Int64)::Any\n"
    "1 ─      goto #2\n"
    "2 ┄ %2 = φ (#1 => nothing, #3 => %5)::Any\n"
    "│   %3 = φ (#1 => 0, #3 => %6)::Int64\n"
    "│   %4 = Base.slt_int(%3, n)::Bool\n"
    "└──      goto #4 if not %4\n"
    "3 ─ %5 = %new(Link, %2)::Link\n"
    "│   %6 = Base.add_int(%3, 1)::Int64\n"
    "└──      goto #2\n"
    "4 ─      return %2\n"
    "end\n"
    "function spin()::Nothing\n"
    "1 ─      goto #2\n"
    "2 ┄      goto #2\n"
    "end\n";

static int failed(BrolgaError *error) {
    if (error == NULL) {
        return 0;
    }
    fprintf(stderr, "error %u: %s\n", (unsigned)brolga_error_code(error), brolga_error_message(error));
    brolga_error_free(error);
    return 1;
}

static void tell(BrolgaError *error) {
    printf("%s\n", brolga_error_message(error));
    brolga_error_free(error);
}

/* The host's functions. The data of the first is a table of prices. */

static BrolgaError *price(void *data, const BrolgaValue *args, size_t count, BrolgaValue *result) {
    const double *prices = data;
    if (count != 1 || args[0].bits.int64 < 0 || args[0].bits.int64 > 2) {
        static const char message[] = "no such article";
        return brolga_error_new(message, sizeof message - 1);
    }
    *result = brolga_float64(prices[args[0].bits.int64]);
    return NULL;
}

static BrolgaError *upper(void *data, const BrolgaValue *args, size_t count, BrolgaValue *result) {
    char text[64];
    size_t length = 0;
    BrolgaObject *made = NULL;
    (void)count;
    BrolgaError *error = brolga_object_copy_string(args[0].bits.object, text, sizeof text, &length);
    if (error != NULL) {
        return error;
    }
    length = length < sizeof text ? length : sizeof text;
    for (size_t at = 0; at < length; at++) {
        if (text[at] >= 'a' && text[at] <= 'z') {
            text[at] = (char)(text[at] - 'a' + 'A');
        }
    }
    error = brolga_object_string(data, text, length, &made);
    if (error == NULL) {
        *result = brolga_object(made);
    }
    return error;
}

static void freed(void *data) {
    printf("the table of prices is free\n");
    free(data);
}

/* Raises an interrupt until the thread that runs has noticed: a request before its call is void. */
struct watch {
    BrolgaInterrupt *interrupt;
    pthread_mutex_t lock;
    int done;
};

static void *watching(void *data) {
    struct watch *watch = data;
    const struct timespec pause = {0, 5 * 1000 * 1000};
    for (;;) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&watch->lock);
        int done = watch->done;
        pthread_mutex_unlock(&watch->lock);
        if (done) {
            return NULL;
        }
        brolga_interrupt_raise(watch->interrupt);
    }
}

int main(void) {
    BrolgaOptions *options = brolga_options_new();
    BrolgaSession *session = NULL;
    BrolgaRuntime *runtime = NULL;
    BrolgaDylib *host = NULL, *rules = NULL;
    if (failed(brolga_options_set_heap_limit(options, 8 << 20)) || failed(brolga_options_set_fuel(options, true)) ||
        failed(brolga_session_new(options, 0, &session)) ||
        failed(brolga_session_runtime(session, &runtime)) || failed(brolga_session_dylib(session, "host", &host)) ||
        failed(brolga_session_dylib(session, "rules", &rules)) || failed(brolga_dylib_link(rules, host))) {
        return 1;
    }
    brolga_options_free(options);

    double *prices = malloc(3 * sizeof *prices);
    if (prices == NULL) {
        return 1;
    }
    prices[0] = 1.5, prices[1] = 20.0, prices[2] = 0.25;
    if (failed(brolga_dylib_define_host(host, "price(article::Int64)::Float64", price, prices, freed)) ||
        failed(brolga_dylib_define_host(host, "upper(text::String)::String", upper, runtime, NULL)) ||
        failed(brolga_dylib_define(rules, "rule.jlir", RULE, strlen(RULE), BROLGA_MODE_EAGER))) {
        return 1;
    }

    BrolgaFunction *total = NULL, *greeting = NULL;
    BrolgaValue value;
    if (failed(brolga_dylib_function(rules, "total", &total)) ||
        failed(brolga_dylib_function(rules, "greeting", &greeting))) {
        return 1;
    }
    const BrolgaValue order[] = {brolga_int64(1), brolga_int64(3)};
    if (failed(brolga_function_call(total, order, 2, &value))) {
        return 1;
    }
    printf("3 of article 1: %.2f\n", value.bits.float64);
    const BrolgaValue unknown[] = {brolga_int64(7), brolga_int64(3)};
    tell(brolga_function_call(total, unknown, 2, &value));

    BrolgaObject *name = NULL;
    if (failed(brolga_object_string(runtime, "ada", 3, &name))) {
        return 1;
    }
    const BrolgaValue whom[] = {brolga_object(name)};
    if (failed(brolga_function_call(greeting, whom, 1, &value))) {
        return 1;
    }
    char text[8];
    size_t length = 0;
    if (failed(brolga_object_copy_string(value.bits.object, text, sizeof text, &length))) {
        return 1;
    }
    printf("%.*s\n", (int)length, text);
    brolga_object_free(value.bits.object);
    brolga_object_free(name);

    /* The function that C has stays the same, and reaches the new definition. */
    if (failed(brolga_dylib_redefine(rules, "dearer.jlir", DEARER, strlen(DEARER), NULL)) ||
        failed(brolga_function_call(total, order, 2, &value))) {
        return 1;
    }
    printf("3 of article 1: %.2f\n", value.bits.float64);

    /* Limits: memory by the option, time by an interrupt from another thread. */
    BrolgaFunction *hoard = NULL, *spin = NULL;
    struct watch watch = {NULL, PTHREAD_MUTEX_INITIALIZER, 0};
    pthread_t watcher;
    if (failed(brolga_dylib_define(rules, "hostile.jlir", HOSTILE, strlen(HOSTILE), BROLGA_MODE_LAZY)) ||
        failed(brolga_dylib_function(rules, "hoard", &hoard)) || failed(brolga_dylib_function(rules, "spin", &spin))) {
        return 1;
    }
    const BrolgaValue many[] = {brolga_int64(1000 * 1000 * 1000)};
    tell(brolga_function_call(hoard, many, 1, NULL));
    if (failed(brolga_interrupt_new(runtime, &watch.interrupt)) ||
        pthread_create(&watcher, NULL, watching, &watch) != 0) {
        return 1;
    }
    tell(brolga_function_call(spin, NULL, 0, NULL));
    pthread_mutex_lock(&watch.lock);
    watch.done = 1;
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watcher, NULL);
    brolga_interrupt_free(watch.interrupt);

    /* An end that the program cannot catch: at a time, by fuel, or when another thread asks for it. */
    BrolgaLimits *limits = brolga_limits_new();
    if (failed(brolga_limits_set_timeout(limits, 2 * 1000 * 1000))) {
        return 1;
    }
    tell(brolga_function_call_limited(spin, limits, NULL, 0, NULL));
    if (failed(brolga_limits_set_timeout(limits, 0)) || failed(brolga_limits_set_fuel(limits, 1000))) {
        return 1;
    }
    tell(brolga_function_call_limited(spin, limits, NULL, 0, NULL));
    brolga_limits_cancel(limits);
    tell(brolga_function_call_limited(total, limits, order, 2, &value));
    brolga_limits_free(limits);

    /* The session works on. */
    if (failed(brolga_function_call(total, order, 2, &value))) {
        return 1;
    }
    printf("3 of article 1: %.2f\n", value.bits.float64);

    brolga_function_free(total);
    brolga_function_free(greeting);
    brolga_function_free(hoard);
    brolga_function_free(spin);
    brolga_dylib_free(host);
    brolga_dylib_free(rules);
    if (failed(brolga_session_end(session))) {
        return 1;
    }
    brolga_session_free(session);
    brolga_runtime_free(runtime);
    return 0;
}
