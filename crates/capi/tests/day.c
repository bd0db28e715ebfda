/* A day of an embedder: a server of rules with a library that it shares, tenants that do not see each other, code in C, and changes while it runs.
 *
 *     process (puts, labs) ◄─ host ◄─ library ◄─ facade ◄─ tenants `north`, `south`
 *
 * The argument is the object file of object.c.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "embedder.h"

/* What the session tells. */
static struct {
    atomic_int failures, events, ready, freed;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char last[512];
    int64_t shares[2];
} told = {0, 0, 0, 0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, "", {40, 50}};

static void reported(void *data, const BrolgaError *error) {
    (void)data;
    pthread_mutex_lock(&told.lock);
    told.failures++;
    snprintf(told.last, sizeof told.last, "%s", brolga_error_message(error));
    pthread_cond_broadcast(&told.changed);
    pthread_mutex_unlock(&told.lock);
}

static void observed(void *data, const BrolgaEvent *events, size_t count) {
    (void)data;
    for (size_t at = 0; at < count; at++) {
        CHECK(events[at].happened < BROLGA_HAPPENED_OTHER && events[at].number > 0);
        CHECK(strlen(events[at].dylib) > 0 && strlen(events[at].symbol) > 0);
        told.events++;
        told.ready += events[at].happened == BROLGA_HAPPENED_READY && strcmp(events[at].symbol, "price()") == 0;
    }
}

static void freed(void *data) {
    (void)data;
    told.freed++;
}

static BrolgaError *share(void *data, const BrolgaValue *args, size_t count, BrolgaValue *result) {
    (void)args;
    CHECK(count == 0);
    *result = brolga_int64(*(const int64_t *)data);
    return NULL;
}

static bool is_allowed(void *data, const char *name) {
    return strcmp(name, data) == 0;
}

static int64_t discount_of_today(void) { return 3; }

/* The rest of the rules comes from a store, when somebody needs it. */
static void from_store(void *data, const BrolgaDylib *dylib, BrolgaMissing *missing) {
    int64_t (*const discount)(void) = discount_of_today;
    const void *address;
    memcpy(&address, &discount, sizeof address);
    (void)dylib;
    CHECK(strcmp(data, "store") == 0);
    for (size_t at = 0; at < brolga_missing_count(missing); at++) {
        if (strcmp(brolga_missing_name(missing, at), "discount") == 0) {
            OK(brolga_missing_define(missing, "discount", address));
        }
    }
    brolga_missing_done(missing);
}

static BrolgaError *keep_promise(void *data, const BrolgaPromised *promised) {
    char *name = NULL;
    OK(brolga_dylib_name(brolga_promised_dylib(promised), &name));
    CHECK(strcmp(name, "library") == 0);
    brolga_text_free(name);
    const char *text = data;
    return brolga_promised_keep(promised, "rebate.jlir", text, strlen(text));
}

static BrolgaError *break_promise(void *data, const BrolgaPromised *promised) {
    static const char message[] = "the author is on holiday";
    (void)data, (void)promised;
    return brolga_error_new(message, sizeof message - 1);
}

/* The names of the link order. */
static void print_links(const BrolgaDylib *dylib) {
    BrolgaDylib *order[8];
    size_t count = 0;
    OK(brolga_dylib_links(dylib, order, 8, &count));
    CHECK(count <= 8);
    for (size_t at = 0; at < count; at++) {
        char *name = NULL;
        OK(brolga_dylib_name(order[at], &name));
        printf("%s%s", at > 0 ? ", " : "", name);
        brolga_text_free(name);
        brolga_dylib_free(order[at]);
    }
    printf("\n");
    OK(brolga_dylib_links(dylib, NULL, 0, &count));
}

static void print_symbols(const BrolgaDylib *dylib) {
    static const char *const progress[] = {"defined", "materializing", "resolved", "emitted", "ready", "failed"};
    BrolgaSymbols *symbols = NULL;
    BrolgaSymbol symbol;
    OK(brolga_dylib_symbols(dylib, &symbols));
    for (size_t at = 0; at < brolga_symbols_count(symbols); at++) {
        OK(brolga_symbols_get(symbols, at, &symbol));
        printf("  %s: %s%s%s%s", symbol.name, progress[symbol.progress], symbol.is_exported ? "" : ", hidden",
               symbol.is_weak ? ", weak" : "", symbol.is_absolute ? ", absolute" : "");
        for (size_t number = 0; brolga_symbols_user(symbols, at, number) != NULL; number++) {
            printf(", used by %s", brolga_symbols_user(symbols, at, number));
        }
        printf("\n");
    }
    FAILS(brolga_symbols_get(symbols, brolga_symbols_count(symbols), &symbol), BROLGA_CODE_ARGUMENT, "no symbol");
    brolga_symbols_free(symbols);
}

static BrolgaDefinitions *read_by(const BrolgaDylib *dylib, const char *text) {
    BrolgaDefinitions *definitions = NULL;
    OK(brolga_dylib_read(dylib, "rules.jlir", text, strlen(text), false, &definitions));
    return definitions;
}

static void define_and_free(BrolgaDefinitions *definitions) {
    OK(brolga_definitions_define(definitions));
    FAILS(brolga_definitions_define(definitions), BROLGA_CODE_ARGUMENT, "before");
    FAILS(brolga_definitions_set_weak(definitions), BROLGA_CODE_ARGUMENT, "before");
    brolga_definitions_free(definitions);
}

/* Symbols of the process, an object file, an archive of nothing, a library: what C brings. */
static void bring_c(const BrolgaDylib *host, const char *object) {
    static char allowed[] = "labs";
    size_t length = 0;
    char *bytes = contents(object, &length);
    OK(brolga_dylib_add_process_symbols(host, is_allowed, allowed, freed));
    const BrolgaObjectFile files[] = {{"object.o", bytes, length}};
    OK(brolga_dylib_add_objects(host, files, 1));
    free(bytes);
    BrolgaCSymbol *symbol = NULL;
    OK(brolga_dylib_c_symbol(host, "labs", &symbol));
    brolga_c_symbol_free(symbol);
    FAILS(brolga_dylib_c_symbol(host, "puts", &symbol), BROLGA_CODE_LOOKUP, "puts");
    FAILS(brolga_dylib_add_archive(host, "none.a", "no archive", 10), BROLGA_CODE_LOOKUP, "none.a");
    FAILS(brolga_dylib_add_library(host, "libbrolga_is_nowhere.so"), BROLGA_CODE_LOOKUP, "libbrolga_is_nowhere");
    OK(brolga_dylib_add_archive(host, "empty.a", "!<arch>\n", 8));
    OK(brolga_dylib_add_library(host, "libm.so.6"));
    OK(brolga_dylib_c_symbol(host, "cbrt", &symbol));
    brolga_c_symbol_free(symbol);
}

int main(int count, char **args) {
    CHECK(count == 2);
    BrolgaSession *session = opened(1);
    OK(brolga_session_report_failures(session, reported, NULL, freed));
    OK(brolga_session_observe(session, observed, NULL, freed));
    BrolgaDylib *host = made(session, "host"), *library = made(session, "library"), *facade = made(session, "facade");
    BrolgaDylib *north = made(session, "north"), *south = made(session, "south");

    /* Morning: C, the library, and a facade that shows one of its names. */
    bring_c(host, args[1]);
    define(host, "function twice(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, x)::Int64\n└──      return %1\nend\n");
    OK(brolga_dylib_link(library, host));
    OK(brolga_dylib_add_generator(library, from_store, "store", freed));
    define(library,
           "function price()::Int64\n"
           "1 ─ %1 = $(Expr(:foreigncall, :(:quadruple), Int64, svec(Int64), 0, :(:ccall), 5))::Int64\n"
           "│   %2 = $(Expr(:foreigncall, :(:discount), Int64, svec(), 0, :(:ccall)))::Int64\n"
           "│   %3 = Base.sub_int(%1, %2)::Int64\n"
           "└──      return %3\n"
           "end\n" NUMBER("cost", 11));
    const char *const shown[] = {"price"};
    OK(brolga_dylib_reexport(facade, library, BROLGA_EXPORTS_ONLY, shown, 1));
    OK(brolga_dylib_link(north, facade));
    OK(brolga_dylib_link(south, facade));
    CHECK(called(north, "price", 0, 0) == 17);
    FAILS(look_up(north, "cost"), BROLGA_CODE_LOOKUP, "cost");
    print_links(north);

    /* A tenant has a helper that nobody sees, and a default that may be overridden. */
    BrolgaDefinitions *helper = read_by(north, NUMBER("margin", 4));
    OK(brolga_definitions_set_hidden(helper));
    OK(brolga_definitions_set_mode(helper, BROLGA_MODE_LAZY));
    FAILS(brolga_definitions_set_mode(helper, 9), BROLGA_CODE_ARGUMENT, "mode 9");
    define_and_free(helper);
    BrolgaDefinitions *usual = read_by(north, NUMBER("tax", 19));
    OK(brolga_definitions_set_weak(usual));
    define_and_free(usual);
    define(north, NUMBER("tax", 7));
    define(north,
           "function offer()::Int64\n"
           "1 ─ %1 = invoke Main.price()::Int64\n"
           "│   %2 = invoke Main.margin()::Int64\n"
           "│   %3 = Base.add_int(%1, %2)::Int64\n"
           "│   %4 = invoke Main.tax()::Int64\n"
           "│   %5 = Base.add_int(%3, %4)::Int64\n"
           "└──      return %5\n"
           "end\n");
    CHECK(called(north, "offer", 0, 0) == 17 + 4 + 7);
    OK(brolga_dylib_link(south, north));
    FAILS(look_up(south, "margin"), BROLGA_CODE_LOOKUP, "margin");
    CHECK(called(south, "tax", 0, 0) == 7);
    OK(brolga_dylib_unlink(south, north));

    /* An alias calls the library's price under a price of its own. */
    OK(brolga_dylib_alias(south, "listed", library, "price"));
    define(south,
           "function price()::Int64\n"
           "1 ─ %1 = invoke Main.listed()::Int64\n"
           "│   %2 = Base.add_int(%1, 100)::Int64\n"
           "└──      return %2\n"
           "end\n");
    CHECK(called(south, "price", 0, 0) == 117 && called(south, "listed", 0, 0) == 17);
    FAILS(brolga_dylib_alias(south, "nothing", library, "no_such_rule"), BROLGA_CODE_LOOKUP, "");

    /* Noon: the order of links says whose price it is. */
    BrolgaDylib *buyer = made(session, "buyer");
    const BrolgaDylib *const one[] = {buyer, facade, south}, *const other[] = {buyer, south, facade};
    OK(brolga_dylib_set_links(buyer, one, 3));
    print_links(buyer);
    CHECK(called(buyer, "price", 0, 0) == 17);
    OK(brolga_dylib_set_links(buyer, other, 3));
    print_links(buyer);
    CHECK(called(buyer, "price", 0, 0) == 117);

    /* A rule of today goes in the evening; what uses it says so. */
    BrolgaTracker *today = NULL;
    BrolgaDylib *of_today = NULL;
    OK(brolga_dylib_tracker(library, BROLGA_ON_FREE_REMOVE, &today));
    OK(brolga_dylib_tracked_by(library, today, &of_today));
    define(of_today, NUMBER("bonus", 2));
    OK(brolga_dylib_link(south, library));
    define(south, CALLS("with_bonus", "bonus"));
    CHECK(called(south, "with_bonus", 0, 0) == 2);
    printf("library:\n");
    print_symbols(library);
    printf("north:\n");
    print_symbols(north);

    /* Functions that somebody writes when they are needed. */
    static char rebate[] = NUMBER("rebate", 6);
    const char *const headers[] = {"rebate()::Int64"}, *const never[] = {"never()::Int64"};
    OK(brolga_dylib_promise(library, headers, 1, keep_promise, rebate, freed));
    OK(brolga_dylib_promise(library, never, 1, break_promise, NULL, freed));
    FAILS(brolga_dylib_promise(library, headers, 0, keep_promise, NULL, NULL), BROLGA_CODE_ARGUMENT, "one function");
    CHECK(called(library, "rebate", 0, 0) == 6);
    BrolgaFunction *none = NULL;
    BrolgaError *broken = brolga_dylib_function(library, "never", &none);
    if (broken == NULL) {
        broken = brolga_function_call(none, NULL, 0, NULL);
        brolga_function_free(none);
    }
    CHECK(strstr(brolga_error_message(broken), "holiday") != NULL);
    brolga_error_free(broken);

    /* Opening and closing. */
    BrolgaDefinitions *life = read_by(
        south,
        "global state::Int64 = 0\n"
        "function begins()::Nothing\n1 ─      Core.setglobal!(Main, :state, 1)::Int64\n└──      return nothing\nend\n"
        "function ends()::Nothing\n1 ─      Core.setglobal!(Main, :state, 2)::Int64\n└──      return nothing\nend\n"
        "function state_now()::Int64\n1 ─ %1 = Main.state::Int64\n└──      return %1\nend\n");
    OK(brolga_definitions_add_initializer(life, "begins"));
    OK(brolga_definitions_add_finalizer(life, "ends"));
    define_and_free(life);
    CHECK(called(south, "state_now", 0, 0) == 0);
    OK(brolga_dylib_open(south));
    OK(brolga_dylib_update(south));
    CHECK(called(south, "state_now", 0, 0) == 1);
    OK(brolga_dylib_close(south));
    CHECK(called(south, "state_now", 0, 0) == 2);
    FAILS(brolga_dylib_close(south), BROLGA_CODE_LOOKUP, "open");

    /* The host's share is a function of C, and another one after lunch. */
    OK(brolga_dylib_define_host(host, "share()::Int64", share, &told.shares[0], freed));
    define(library, CALLS("shared", "share"));
    CHECK(called(library, "shared", 0, 0) == 40);
    char *notes = NULL;
    OK(brolga_dylib_redefine_host(host, "share()::Int64", share, &told.shares[1], freed, &notes));
    CHECK(strcmp(notes, "") == 0);
    brolga_text_free(notes);
    CHECK(called(library, "shared", 0, 0) == 50);

    /* Evening: the rule of today goes. */
    FAILS(brolga_tracker_remove(today, BROLGA_DEPENDANTS_DENY), BROLGA_CODE_LOOKUP, "with_bonus()");
    OK(brolga_tracker_remove(today, BROLGA_DEPENDANTS_TOMBSTONE));
    BrolgaFunction *with_bonus = NULL;
    OK(brolga_dylib_function(south, "with_bonus", &with_bonus));
    FAILS(brolga_function_call(with_bonus, NULL, 0, NULL), BROLGA_CODE_EXCEPTION, "bonus()");
    brolga_function_free(with_bonus);

    /* Work that nobody waits for fails, and the reporter hears of it. */
    const char *missing = CALLS_C("fails", "brolga_is_nowhere");
    BrolgaDefinitions *background = NULL;
    OK(brolga_dylib_read(south, "fails.jlir", missing, strlen(missing), false, &background));
    FAILS(brolga_definitions_set_start(background, 7), BROLGA_CODE_ARGUMENT, "priority 7");
    OK(brolga_definitions_set_start(background, BROLGA_PRIORITY_NORMAL));
    define_and_free(background);
    pthread_mutex_lock(&told.lock);
    while (told.failures == 0) {
        pthread_cond_wait(&told.changed, &told.lock);
    }
    CHECK(strstr(told.last, "fails()") != NULL);
    pthread_mutex_unlock(&told.lock);

    /* The end of the re-export; programs keep what they call. */
    OK(brolga_dylib_end_reexport(facade, library));
    FAILS(look_up(north, "price"), BROLGA_CODE_LOOKUP, "price");
    CHECK(called(north, "offer", 0, 0) == 28);
    FAILS(brolga_dylib_end_reexport(facade, library), BROLGA_CODE_LOOKUP, "");
    char *dump = NULL;
    OK(brolga_session_dump(session, &dump));
    CHECK(strstr(dump, "dylib `north`: `north`, `facade`") != NULL && strstr(dump, "price()") != NULL);
    brolga_text_free(dump);

    /* A dylib in use is closed by a decision. */
    const BrolgaDylib *const closed[] = {library};
    FAILS(brolga_session_close_dylibs(session, closed, 1, BROLGA_DEPENDANTS_DENY), BROLGA_CODE_LOOKUP, "");
    OK(brolga_session_close_dylibs(session, closed, 1, BROLGA_DEPENDANTS_KEEP));
    CHECK(called(north, "offer", 0, 0) == 28);
    CHECK(told.ready > 0 && told.events > 20);
    OK(brolga_session_observe(session, NULL, NULL, NULL));
    OK(brolga_session_report_failures(session, NULL, NULL, NULL));
    int failures = told.failures;
    OK(brolga_session_end(session));
    CHECK(told.failures == failures);
    BrolgaDylib *all[] = {host, library, facade, north, south, buyer, of_today};
    for (size_t at = 0; at < sizeof all / sizeof *all; at++) {
        brolga_dylib_free(all[at]);
    }
    brolga_tracker_free(today);
    brolga_session_free(session);
    printf("%d sets of data are free\n", told.freed);
    return 0;
}
