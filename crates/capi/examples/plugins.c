/* Plug-ins: dylibs that see a common one, a store of functions that are compiled when a plug-in needs them, and unloading under code that runs.
 *
 *     $ cargo build --release -p brolga-capi
 *     $ cc -Icrates/capi/include crates/capi/examples/plugins.c target/release/libbrolga_capi.a -lm -lpthread -ldl -o plugins
 *
 *     base ◄── linked ── greedy, modest ◄── linked ── shop
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "brolga.h"

static const char *const BASE =
    "function cost(article::Int64)::Int64\n"
    "1 ─ %1 = Base.mul_int(article, 10)::Int64\n"
    "└──      return %1\n"
    "end\n";

static const char *const GREEDY =
    "function price(article::Int64)::Int64\n"
    "1 ─ %1 = invoke Main.cost(article::Int64)::Int64\n"
    "│   %2 = Base.mul_int(%1, 3)::Int64\n"
    "└──      return %2\n"
    "end\n";

/* It has a helper of its own, and takes the rate from a store. */
static const char *const MODEST_HELPER =
    "function cost_of_two(article::Int64)::Int64\n"
    "1 ─ %1 = invoke Main.cost(article::Int64)::Int64\n"
    "│   %2 = Base.mul_int(%1, 2)::Int64\n"
    "└──      return %2\n"
    "end\n";

static const char *const MODEST =
    "function price(article::Int64)::Int64\n"
    "1 ─ %1 = invoke Main.cost_of_two(article::Int64)::Int64\n"
    "│   %2 = invoke Main.rate()::Int64\n"
    "│   %3 = Base.add_int(%1, %2)::Int64\n"
    "└──      return %3\n"
    "end\n";

static const char *const SHOP =
    "function total(article::Int64)::Int64\n"
    "1 ─ %1 = invoke Main.price(article::Int64)::Int64\n"
    "│   %2 = Base.add_int(%1, 1)::Int64\n"
    "└──      return %2\n"
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

/* The store: it writes the function when something needs it first. */
static BrolgaError *write_rate(void *data, const BrolgaPromised *promised) {
    char text[64];
    printf("the rate is read from the store\n");
    int length = snprintf(text, sizeof text, "function rate()::Int64\n1 ─      return %d\nend\n", *(int *)data);
    return brolga_promised_keep(promised, "rate.jlir", text, (size_t)length);
}

/* Hears of failures that nobody waits for. */
static void reported(void *data, const BrolgaError *error) {
    (void)data;
    printf("reported: %s\n", brolga_error_message(error));
}

/* The answer of a look-up, on a thread of the session. */
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int is_there;
    BrolgaError *error;
    BrolgaFunction *function;
};

static void answered(void *data, BrolgaError *error, BrolgaFunction *function) {
    struct answer *answer = data;
    pthread_mutex_lock(&answer->lock);
    answer->is_there = 1;
    answer->error = error;
    answer->function = function;
    pthread_cond_signal(&answer->changed);
    pthread_mutex_unlock(&answer->lock);
}

static BrolgaError *define(const BrolgaDylib *dylib, const char *text) {
    return brolga_dylib_define(dylib, "plugin.jlir", text, strlen(text), BROLGA_MODE_EAGER);
}

/* Prints the value of a function of a number. */
static int show(const char *what, const BrolgaDylib *dylib, const char *name) {
    BrolgaFunction *function = NULL;
    BrolgaValue value;
    const BrolgaValue args[] = {brolga_int64(7)};
    int is_wrong = failed(brolga_dylib_function(dylib, name, &function)) ||
                   failed(brolga_function_call(function, args, 1, &value));
    brolga_function_free(function);
    if (!is_wrong) {
        printf("%s: %lld\n", what, (long long)value.bits.int64);
    }
    return is_wrong;
}

int main(void) {
    int rate = 5;
    BrolgaSession *session = NULL;
    BrolgaDylib *base = NULL, *greedy = NULL, *modest = NULL, *shop = NULL;
    if (failed(brolga_session_new(NULL, 1, &session)) || failed(brolga_session_report_failures(session, reported, NULL, NULL)) ||
        failed(brolga_session_empty_dylib(session, "base", &base)) ||
        failed(brolga_session_empty_dylib(session, "greedy", &greedy)) ||
        failed(brolga_session_empty_dylib(session, "modest", &modest)) ||
        failed(brolga_session_empty_dylib(session, "shop", &shop))) {
        return 1;
    }

    /* The common part, and a promise in it. */
    const char *const promised[] = {"rate()::Int64"};
    if (failed(define(base, BASE)) || failed(brolga_dylib_promise(base, promised, 1, write_rate, &rate, NULL)) ||
        failed(brolga_dylib_link(greedy, base)) || failed(brolga_dylib_link(modest, base))) {
        return 1;
    }

    /* One plug-in can be unloaded: what is defined through its tracked handle goes together. The other one hides its helper. */
    BrolgaTracker *loaded = NULL;
    BrolgaDylib *plugin = NULL;
    BrolgaDefinitions *helper = NULL;
    if (failed(brolga_dylib_tracker(greedy, BROLGA_ON_FREE_KEEP, &loaded)) ||
        failed(brolga_dylib_tracked_by(greedy, loaded, &plugin)) || failed(define(plugin, GREEDY)) ||
        failed(brolga_dylib_read(modest, "helper.jlir", MODEST_HELPER, strlen(MODEST_HELPER), false, &helper)) ||
        failed(brolga_definitions_set_hidden(helper)) || failed(brolga_definitions_define(helper)) ||
        failed(define(modest, MODEST))) {
        return 1;
    }
    brolga_definitions_free(helper);

    /* The order of links says which `price` the shop means. An alias names the other one. */
    const BrolgaDylib *const order[] = {shop, greedy, modest};
    BrolgaFunction *none = NULL;
    if (failed(brolga_dylib_set_links(shop, order, 3)) || failed(define(shop, SHOP)) ||
        failed(brolga_dylib_alias(shop, "fair_price", modest, "price")) || show("total", shop, "total") ||
        show("fair price", shop, "fair_price")) {
        return 1;
    }
    tell(brolga_dylib_function(shop, "cost_of_two", &none));

    /* The plug-in is in use: unloading it is a decision. */
    BrolgaFunction *total = NULL;
    const BrolgaValue args[] = {brolga_int64(7)};
    if (failed(brolga_dylib_function(shop, "total", &total))) {
        return 1;
    }
    tell(brolga_tracker_remove(loaded, BROLGA_DEPENDANTS_DENY));
    if (failed(brolga_tracker_remove(loaded, BROLGA_DEPENDANTS_TOMBSTONE))) {
        return 1;
    }
    tell(brolga_function_call(total, args, 1, NULL));

    /* The shop is linked to what is there now, and defined again; a thread of the session compiles it, and answers. */
    struct answer answer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, NULL};
    BrolgaValue value;
    if (failed(brolga_dylib_unlink(shop, greedy)) ||
        failed(brolga_dylib_redefine(shop, "shop.jlir", SHOP, strlen(SHOP), NULL)) ||
        failed(brolga_dylib_request_then(shop, "total", answered, &answer))) {
        return 1;
    }
    pthread_mutex_lock(&answer.lock);
    while (!answer.is_there) {
        pthread_cond_wait(&answer.changed, &answer.lock);
    }
    pthread_mutex_unlock(&answer.lock);
    if (failed(answer.error) || failed(brolga_function_call(answer.function, args, 1, &value))) {
        return 1;
    }
    printf("total: %lld\n", (long long)value.bits.int64);

    /* What the shop has. */
    BrolgaSymbols *symbols = NULL;
    BrolgaSymbol symbol;
    if (failed(brolga_dylib_symbols(shop, &symbols))) {
        return 1;
    }
    for (size_t at = 0; at < brolga_symbols_count(symbols); at++) {
        if (failed(brolga_symbols_get(symbols, at, &symbol))) {
            return 1;
        }
        printf("%s%s\n", symbol.name, symbol.progress == BROLGA_PROGRESS_READY ? " is ready" : "");
    }
    brolga_symbols_free(symbols);

    brolga_function_free(total);
    brolga_function_free(answer.function);
    brolga_tracker_free(loaded);
    brolga_dylib_free(plugin);
    brolga_dylib_free(base);
    brolga_dylib_free(greedy);
    brolga_dylib_free(modest);
    brolga_dylib_free(shop);
    if (failed(brolga_session_end(session))) {
        return 1;
    }
    brolga_session_free(session);
    return 0;
}
