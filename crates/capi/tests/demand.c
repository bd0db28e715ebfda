/* What C makes when it is needed: K12 and K13 of docs/conformance-orc.md, and what functions of C may wait for. The argument says which.
 */
#include <stdatomic.h>
#include <time.h>

#include "embedder.h"

/* What a materializer of K12 has seen. */
struct materialized {
    atomic_int made, again, freed;
};

static void materialized_freed(void *data) {
    struct materialized *seen = data;
    seen->freed++;
}

static void materialize_again(void *data, const BrolgaDylib *dylib, BrolgaResponsibility *own) {
    struct materialized *seen = data;
    (void)dylib;
    seen->again++;
    CHECK(brolga_responsibility_count(own) == 1 && strcmp(brolga_responsibility_name(own, 0), "later") == 0);
    OK(brolga_responsibility_resolve(own, "later", address_of(eight)));
    OK(brolga_responsibility_emit(own));
}

static void materialize(void *data, const BrolgaDylib *dylib, BrolgaResponsibility *own) {
    struct materialized *seen = data;
    BrolgaResponsibility *part = NULL;
    bool requested = false;
    char *name = NULL;
    seen->made++;
    OK(brolga_dylib_name(dylib, &name));
    CHECK(strcmp(name, "main") == 0);
    brolga_text_free(name);
    CHECK(brolga_responsibility_count(own) == 4);
    CHECK(brolga_responsibility_name(own, 4) == NULL);
    OK(brolga_responsibility_is_requested(own, "target", &requested));
    CHECK(requested);
    OK(brolga_responsibility_is_requested(own, "later", &requested));
    CHECK(!requested);
    FAILS(brolga_responsibility_is_requested(own, "strange", &requested), BROLGA_CODE_ARGUMENT, "`strange`");
    FAILS(brolga_responsibility_resolve(own, "strange", address_of(seven)), BROLGA_CODE_ARGUMENT, "`strange`");
    FAILS(brolga_responsibility_resolve(own, "target", NULL), BROLGA_CODE_ARGUMENT, "address");
    /* One is made when it is needed, two are the responsibility of somebody else, of which one fails. */
    const char *const later[] = {"later"}, *const parts[] = {"part", "bad"}, *const bad[] = {"bad"};
    OK(brolga_responsibility_hand_back(own, later, 1, materialize_again, seen, materialized_freed));
    OK(brolga_responsibility_delegate(own, parts, 2, &part));
    BrolgaResponsibility *broken = NULL;
    OK(brolga_responsibility_delegate(part, bad, 1, &broken));
    static const char message[] = "no such thing";
    brolga_responsibility_fail(broken, brolga_error_new(message, sizeof message - 1));
    OK(brolga_responsibility_resolve(part, "part", address_of(eight)));
    OK(brolga_responsibility_emit(part));
    FAILS(brolga_responsibility_resolve(own, "part", address_of(eight)), BROLGA_CODE_ARGUMENT, "`part`");
    /* What is left needs the part, and a symbol of another dylib. */
    OK(brolga_responsibility_resolve(own, "target", address_of(seven)));
    OK(brolga_responsibility_need(own, "part"));
    OK(brolga_responsibility_need(own, "dependency"));
    OK(brolga_responsibility_emit(own));
}

static void careless(void *data, const BrolgaDylib *dylib, BrolgaResponsibility *own) {
    (void)data, (void)dylib;
    FAILS(brolga_responsibility_emit(own), BROLGA_CODE_LOOKUP, "careless");
}

/* K12 MaterializationResponsibility: C makes symbols when they are needed, and says what they need. */
static void k12(void) {
    struct materialized seen = {0, 0, 0};
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main"), *base = made(session, "base");
    OK(brolga_dylib_link(main, base));
    BrolgaTracker *tracker = NULL;
    BrolgaDylib *through = tracked(base, BROLGA_ON_FREE_KEEP, &tracker);
    OK(brolga_dylib_define_c_symbol(through, "dependency", address_of(eight)));
    const char *const names[] = {"target", "later", "part", "bad"};
    OK(brolga_dylib_promise_c_symbols(main, names, 4, materialize, &seen, materialized_freed));
    define(main, CALLS_C("calls", "target"));
    CHECK(seen.made == 0);
    CHECK(called(main, "calls", 0, 0) == 7);
    CHECK(seen.made == 1 && seen.again == 0 && seen.freed == 1);
    BrolgaCSymbol *symbol = NULL;
    OK(brolga_dylib_c_symbol(main, "part", &symbol));
    brolga_c_symbol_free(symbol);
    OK(brolga_dylib_c_symbol(main, "later", &symbol));
    CHECK(brolga_c_symbol_address(symbol) == address_of(eight) && seen.again == 1 && seen.freed == 2);
    brolga_c_symbol_free(symbol);
    FAILS(brolga_dylib_c_symbol(main, "bad", &symbol), BROLGA_CODE_LOOKUP, "no such thing");
    /* The dependency is in use. */
    FAILS(brolga_tracker_remove(tracker, BROLGA_DEPENDANTS_DENY), BROLGA_CODE_LOOKUP, "target");
    OK(brolga_tracker_remove(tracker, BROLGA_DEPENDANTS_CASCADE));
    FAILS(brolga_dylib_c_symbol(main, "target", &symbol), BROLGA_CODE_LOOKUP, "target");
    /* A symbol without an address fails. */
    const char *const one[] = {"careless"};
    OK(brolga_dylib_promise_c_symbols(main, one, 1, careless, NULL, NULL));
    FAILS(brolga_dylib_c_symbol(main, "careless", &symbol), BROLGA_CODE_LOOKUP, "careless");
    FAILS(brolga_dylib_promise_c_symbols(main, one, 0, careless, &seen, materialized_freed), BROLGA_CODE_ARGUMENT, "one");
    CHECK(seen.freed == 3);
    /* Nobody needed it: it is freed all the same. */
    const char *const unused[] = {"unused"};
    OK(brolga_dylib_promise_c_symbols(main, unused, 1, careless, &seen, materialized_freed));
    OK(brolga_dylib_remove(main, "unused"));
    CHECK(seen.freed == 4);
    brolga_dylib_free(through);
    brolga_tracker_free(tracker);
    brolga_dylib_free(main);
    brolga_dylib_free(base);
    brolga_session_free(session);
}

/* What a generator of K13 keeps. */
struct kept {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    BrolgaMissing *missing;
};

static void keep(void *data, const BrolgaDylib *dylib, BrolgaMissing *missing) {
    struct kept *kept = data;
    (void)dylib;
    pthread_mutex_lock(&kept->lock);
    CHECK(kept->missing == NULL);
    kept->missing = missing;
    pthread_cond_broadcast(&kept->changed);
    pthread_mutex_unlock(&kept->lock);
}

static BrolgaMissing *taken(struct kept *kept) {
    pthread_mutex_lock(&kept->lock);
    while (kept->missing == NULL) {
        pthread_cond_wait(&kept->changed, &kept->lock);
    }
    BrolgaMissing *missing = kept->missing;
    kept->missing = NULL;
    pthread_mutex_unlock(&kept->lock);
    return missing;
}

/* Answers twice: with an address, and with an error. */
static void *answering(void *data) {
    BrolgaMissing *missing = taken(data);
    CHECK(brolga_missing_count(missing) == 1 && strcmp(brolga_missing_name(missing, 0), "number") == 0);
    OK(brolga_missing_define(missing, "number", address_of(seven)));
    brolga_missing_done(missing);
    brolga_missing_fail(taken(data), NULL);
    return NULL;
}

/* K13 SuspendedLookup: a generator answers later, and other look-ups do not wait. */
static void k13(void) {
    for (size_t threads = 0; threads < 2; threads++) {
        struct kept kept = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};
        BrolgaSession *session = opened(threads);
        BrolgaDylib *main = made(session, "main"), *slow = made(session, "slow");
        OK(brolga_dylib_add_generator(slow, keep, &kept, NULL));
        OK(brolga_dylib_link(main, slow));
        const char *text = CALLS_C("calls", "number");
        BrolgaDefinitions *late = NULL;
        struct answer answer = UNANSWERED;
        OK(brolga_dylib_read(main, "calls.jlir", text, strlen(text), true, &late));
        OK(brolga_definitions_define(late));
        brolga_definitions_free(late);
        define(main, NUMBER("f", 1));
        OK(brolga_dylib_request_then(main, "calls", answered, &answer));
        BrolgaMissing *missing = taken(&kept);
        CHECK(answer.count == 0);
        CHECK(called(main, "f", 0, 0) == 1);
        CHECK(brolga_missing_count(missing) == 1 && strcmp(brolga_missing_name(missing, 0), "number") == 0);
        OK(brolga_missing_define(missing, "number", address_of(seven)));
        brolga_missing_done(missing);
        await(&answer);
        CHECK(answer.error == NULL);
        BrolgaValue value;
        OK(brolga_function_call(answer.function, NULL, 0, &value));
        CHECK(value.bits.int64 == 7);
        brolga_function_free(answer.function);
        /* A thread that waits is continued by another one. */
        OK(brolga_dylib_remove(slow, "number"));
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, answering, &kept) == 0);
        BrolgaCSymbol *symbol = NULL;
        OK(brolga_dylib_c_symbol(main, "number", &symbol));
        brolga_c_symbol_free(symbol);
        FAILS(brolga_dylib_c_symbol(main, "other", &symbol), BROLGA_CODE_LOOKUP, "a generator has failed");
        CHECK(pthread_join(thread, NULL) == 0);
        brolga_dylib_free(main);
        brolga_dylib_free(slow);
        OK(brolga_session_end(session));
        brolga_session_free(session);
    }
}

static void *answering_once(void *data) {
    const struct timespec pause = {0, 20 * 1000 * 1000};
    BrolgaMissing *missing = taken(data);
    nanosleep(&pause, NULL);
    /* It is refused if the session has ended. */
    brolga_error_free(brolga_missing_define(missing, "number", address_of(seven)));
    brolga_missing_done(missing);
    return NULL;
}

/* A look-up by callback that is suspended when its session ends, or when C has no handle of the session any more, is answered once. */
static void k13_ends(void) {
    for (size_t threads = 0; threads < 2; threads++) {
        for (int ends = 0; ends < 2; ends++) {
            struct kept kept = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};
            struct answer answer = UNANSWERED;
            BrolgaSession *session = opened(threads);
            BrolgaDylib *main = made(session, "main");
            BrolgaDefinitions *late = NULL;
            const char *text = CALLS_C("calls", "number");
            pthread_t thread;
            OK(brolga_dylib_add_generator(main, keep, &kept, NULL));
            OK(brolga_dylib_read(main, "calls.jlir", text, strlen(text), true, &late));
            OK(brolga_definitions_define(late));
            brolga_definitions_free(late);
            OK(brolga_dylib_request_then(main, "calls", answered, &answer));
            brolga_dylib_free(main);
            if (ends) {
                CHECK(pthread_create(&thread, NULL, answering_once, &kept) == 0);
                OK(brolga_session_end(session));
                brolga_session_free(session);
            } else {
                brolga_session_free(session);
                CHECK(pthread_create(&thread, NULL, answering_once, &kept) == 0);
            }
            await(&answer);
            CHECK(pthread_join(thread, NULL) == 0);
            if (answer.error == NULL) {
                BrolgaValue value;
                OK(brolga_function_call(answer.function, NULL, 0, &value));
                CHECK(value.bits.int64 == 7);
            }
            CHECK(ends || answer.error == NULL);
            brolga_error_free(answer.error);
            brolga_function_free(answer.function);
        }
    }
}

/* A run time that another thread collects, while this one is in a function of C. */
static void *collecting(void *data) {
    OK(brolga_runtime_collect(data));
    return NULL;
}

static void collect_elsewhere(BrolgaRuntime *runtime) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, collecting, runtime) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static BrolgaRuntime *collected;

static atomic_int waited;

static void generate_slowly(void *data, const BrolgaDylib *dylib, BrolgaMissing *missing) {
    (void)data, (void)dylib;
    waited++;
    collect_elsewhere(collected);
    for (size_t at = 0; at < brolga_missing_count(missing); at++) {
        if (strcmp(brolga_missing_name(missing, at), "number") == 0) {
            OK(brolga_missing_define(missing, "number", address_of(seven)));
        }
    }
    brolga_missing_done(missing);
}

static void materialize_slowly(void *data, const BrolgaDylib *dylib, BrolgaResponsibility *own) {
    (void)data, (void)dylib;
    waited++;
    collect_elsewhere(collected);
    OK(brolga_responsibility_resolve(own, "made", address_of(eight)));
    OK(brolga_responsibility_emit(own));
}

static BrolgaError *promised_slowly(void *data, const BrolgaPromised *promised) {
    const char *text = NUMBER("promised", 3);
    (void)data;
    waited++;
    collect_elsewhere(collected);
    return brolga_promised_keep(promised, "promised.jlir", text, strlen(text));
}

static bool accept_slowly(void *data, const char *name) {
    (void)data, (void)name;
    waited++;
    collect_elsewhere(collected);
    return true;
}

static void observe_slowly(void *data, const BrolgaEvent *events, size_t count) {
    (void)data, (void)events, (void)count;
    waited++;
    collect_elsewhere(collected);
}

static void answer_slowly(void *data, BrolgaError *error, BrolgaFunction *function) {
    waited++;
    collect_elsewhere(collected);
    answered(data, error, function);
}

/* Functions of C may wait for a thread that collects, from whatever they are called: a look-up, or a program in the middle of its work. */
static void waits(void) {
    for (size_t threads = 0; threads < 2; threads++) {
        BrolgaSession *session = opened(threads);
        BrolgaDylib *main = made(session, "main"), *base = made(session, "base");
        BrolgaDefinitions *late = NULL;
        const char *const made_by_c[] = {"made"}, *const headers[] = {"promised()::Int64"};
        const char *text = CALLS_C("a", "number") CALLS_C("b", "made") CALLS("c", "promised") CALLS_C("d", "getpid")
            "function all()::Int64\n"
            "1 ─ %1 = invoke Main.a()::Int64\n"
            "│   %2 = invoke Main.b()::Int64\n"
            "│   %3 = invoke Main.c()::Int64\n"
            "│   %4 = Base.add_int(%1, %2)::Int64\n"
            "│   %5 = Base.add_int(%3, %4)::Int64\n"
            "│   %6 = invoke Main.d()::Int64\n"
            "└──      return %5\n"
            "end\n";
        OK(brolga_session_runtime(session, &collected));
        OK(brolga_dylib_link(main, base));
        OK(brolga_dylib_promise(base, headers, 1, promised_slowly, NULL, NULL));
        OK(brolga_dylib_read(main, "all.jlir", text, strlen(text), true, &late));
        OK(brolga_definitions_set_mode(late, BROLGA_MODE_LAZY));
        OK(brolga_definitions_define(late));
        brolga_definitions_free(late);
        OK(brolga_dylib_add_generator(base, generate_slowly, NULL, NULL));
        OK(brolga_dylib_promise_c_symbols(base, made_by_c, 1, materialize_slowly, NULL, NULL));
        OK(brolga_dylib_add_process_symbols(base, accept_slowly, NULL, NULL));
        OK(brolga_session_observe(session, observe_slowly, NULL, NULL));
        waited = 0;
        CHECK(called(main, "all", 0, 0) == 7 + 8 + 3);
        CHECK(waited > 5);
        struct answer answer = UNANSWERED;
        OK(brolga_dylib_request_then(main, "b", answer_slowly, &answer));
        await(&answer);
        brolga_function_free(answer.function);
        brolga_dylib_free(main);
        brolga_dylib_free(base);
        OK(brolga_session_end(session));
        brolga_session_free(session);
        brolga_runtime_free(collected);
    }
}

int main(int count, char **args) {
    CHECK(count == 3);
    if (strcmp(args[1], "k12") == 0) {
        k12();
    } else if (strcmp(args[1], "k13") == 0) {
        k13();
        k13_ends();
    } else {
        CHECK(strcmp(args[1], "waits") == 0);
        waits();
    }
    return 0;
}
