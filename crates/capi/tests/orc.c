/* What LLVM's OrcCAPITest asserts of definitions and look-ups, K01 to K11 of docs/conformance-orc.md, of this C API. The argument says which row; the second one is an object file.
 * demand.c has the rest.
 */
#include <stdatomic.h>

#include "embedder.h"

static const char *object_file;

/* K01 SymbolStringPoolUniquing: a name is its text, wherever that is. */
static void k01(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main");
    char first[] = "seven", second[] = "seven";
    OK(brolga_dylib_define_c_symbol(main, first, address_of(seven)));
    memset(first, 'x', sizeof first - 1);
    BrolgaCSymbol *symbol = NULL;
    OK(brolga_dylib_c_symbol(main, second, &symbol));
    CHECK(brolga_c_symbol_address(symbol) == address_of(seven));
    brolga_c_symbol_free(symbol);
    define(main, NUMBER("f", 1));
    const char *const names[] = {"f", "f()", "f"};
    BrolgaFunction *functions[3];
    void *addresses[3];
    OK(brolga_dylib_functions(main, names, 3, functions));
    for (int at = 0; at < 3; at++) {
        OK(brolga_function_c_address(functions[at], &addresses[at]));
        CHECK(addresses[at] == addresses[0]);
        brolga_function_free(functions[at]);
    }
    brolga_dylib_free(main);
    brolga_session_free(session);
}

/* K02 JITDylibLookup: a dylib is found by its name. */
static void k02(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *found = NULL;
    FAILS(brolga_session_find_dylib(session, "main", &found), BROLGA_CODE_LOOKUP, "`main`");
    CHECK(found == NULL);
    BrolgaDylib *main = made(session, "main");
    OK(brolga_session_find_dylib(session, "main", &found));
    char *name = NULL;
    OK(brolga_dylib_name(found, &name));
    CHECK(strcmp(name, "main") == 0);
    brolga_text_free(name);
    define(main, NUMBER("f", 1));
    CHECK(called(found, "f", 0, 0) == 1);
    FAILS(brolga_session_empty_dylib(session, "main", &found), BROLGA_CODE_LOOKUP, "main");
    const BrolgaDylib *const closed[] = {found};
    OK(brolga_session_close_dylibs(session, closed, 1, BROLGA_DEPENDANTS_KEEP));
    BrolgaDylib *none = NULL;
    FAILS(brolga_session_find_dylib(session, "main", &none), BROLGA_CODE_LOOKUP, "`main`");
    FAILS(look_up(main, "f"), BROLGA_CODE_LOOKUP, "closed");
    brolga_dylib_free(found);
    brolga_dylib_free(main);
    brolga_session_free(session);
}

/* K03 MaterializationUnitCreation: an absolute symbol has the address that it was given. */
static void k03(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main");
    OK(brolga_dylib_define_c_symbol(main, "number", address_of(seven)));
    FAILS(brolga_dylib_define_c_symbol(main, "number", address_of(eight)), BROLGA_CODE_LOOKUP, "number");
    FAILS(brolga_dylib_define_c_symbol(main, "other", NULL), BROLGA_CODE_ARGUMENT, "address");
    BrolgaCSymbol *symbol = NULL;
    OK(brolga_dylib_c_symbol(main, "number", &symbol));
    CHECK(brolga_c_symbol_address(symbol) == address_of(seven));
    brolga_c_symbol_free(symbol);
    define(main, CALLS_C("calls", "number"));
    CHECK(called(main, "calls", 0, 0) == 7);
    char *notes = NULL;
    OK(brolga_dylib_redefine_c_symbol(main, "number", address_of(eight), &notes));
    CHECK(strcmp(notes, "") == 0);
    brolga_text_free(notes);
    CHECK(called(main, "calls", 0, 0) == 8);
    BrolgaSession *closed = NULL;
    BrolgaDylib *shut = NULL;
    OK(brolga_session_new(NULL, 0, &closed));
    OK(brolga_session_empty_dylib(closed, "main", &shut));
    FAILS(brolga_dylib_define_c_symbol(shut, "number", address_of(seven)), BROLGA_CODE_LOOKUP, "define_c_symbol");
    brolga_dylib_free(shut);
    brolga_session_free(closed);
    brolga_dylib_free(main);
    brolga_session_free(session);
}

/* Looks for something else in the middle of an answer. */
static void answered_looks(void *data, BrolgaError *error, BrolgaFunction *function) {
    BrolgaDylib *main = NULL;
    struct answer *answer = data;
    OK(brolga_session_find_dylib(answer->session, "main", &main));
    CHECK(called(main, "h", 0, 0) == 1);
    brolga_dylib_free(main);
    answered(data, error, function);
}

/* K04 ExecutionSessionLookup_Success: a look-up by callback finds what a look-up that waits does. */
static void k04(void) {
    for (size_t threads = 0; threads < 3; threads++) {
        BrolgaSession *session = opened(threads);
        BrolgaDylib *main = made(session, "main");
        define(main, NUMBER("f", 1) CALLS("g", "f") CALLS("h", "f"));
        struct answer answer = UNANSWERED;
        answer.session = session;
        OK(brolga_dylib_request_then(main, "g", answered_looks, &answer));
        if (threads == 0) {
            CHECK(answer.count == 1);
        }
        await(&answer);
        CHECK(answer.error == NULL);
        BrolgaValue value;
        OK(brolga_function_call(answer.function, NULL, 0, &value));
        CHECK(value.bits.int64 == 1);
        brolga_function_free(answer.function);
        /* What is ready is answered at once. */
        struct answer again = UNANSWERED;
        OK(brolga_dylib_request_then(main, "g()", answered, &again));
        await(&again);
        brolga_function_free(again.function);
        /* A request is waited for, once. */
        BrolgaRequest *request = NULL;
        BrolgaFunction *function = NULL;
        OK(brolga_dylib_request(main, "f", &request));
        OK(brolga_request_wait(request, &function));
        CHECK(brolga_request_is_done(request));
        FAILS(brolga_request_wait(request, &function), BROLGA_CODE_ARGUMENT, "waited for before");
        brolga_function_free(function);
        brolga_request_free(request);
        OK(brolga_dylib_request(main, "f", &request));
        brolga_request_free(request);
        brolga_dylib_free(main);
        OK(brolga_session_end(session));
        brolga_session_free(session);
    }
}

/* K05 ExecutionSessionLookup_Failure: what is not there is an error of the answer. */
static void k05(void) {
    for (size_t threads = 0; threads < 3; threads++) {
        BrolgaSession *session = opened(threads);
        BrolgaDylib *main = made(session, "main");
        struct answer answer = UNANSWERED;
        OK(brolga_dylib_request_then(main, "missing", answered, &answer));
        await(&answer);
        CHECK(answer.function == NULL);
        FAILS(answer.error, BROLGA_CODE_LOOKUP, "missing");
        FAILS(look_up(main, "missing"), BROLGA_CODE_LOOKUP, "missing");
        const char *const names[] = {"f", "missing", "other"};
        BrolgaFunction *functions[3] = {NULL, NULL, NULL};
        define(main, NUMBER("f", 1));
        FAILS(brolga_dylib_functions(main, names, 3, functions), BROLGA_CODE_LOOKUP, "other");
        CHECK(functions[0] == NULL);
        BrolgaRequest *request = NULL;
        OK(brolga_dylib_request(main, "missing", &request));
        FAILS(brolga_request_wait(request, &functions[0]), BROLGA_CODE_LOOKUP, "missing");
        brolga_request_free(request);
        BrolgaCSymbol *symbol = NULL;
        FAILS(brolga_dylib_c_symbol(main, "brolga_is_nowhere", &symbol), BROLGA_CODE_LOOKUP, "brolga_is_nowhere");
        CHECK(symbol == NULL);
        brolga_dylib_free(main);
        brolga_session_free(session);
    }
}

/* How often a function of C was called with its data, and freed. */
struct calls {
    atomic_int made, freed;
};

static void freed(void *data) {
    struct calls *calls = data;
    calls->freed++;
}

/* Knows `number`, and the function `late`. */
static void generate(void *data, const BrolgaDylib *dylib, BrolgaMissing *missing) {
    struct calls *calls = data;
    calls->made++;
    for (size_t at = 0; at < brolga_missing_count(missing); at++) {
        const char *name = brolga_missing_name(missing, at);
        if (strcmp(name, "number") == 0) {
            OK(brolga_missing_define(missing, name, address_of(seven)));
        } else if (strcmp(name, "late()") == 0) {
            define(dylib, NUMBER("late", 9));
        } else if (strcmp(name, "broken") == 0) {
            static const char message[] = "the store is closed";
            brolga_missing_fail(missing, brolga_error_new(message, sizeof message - 1));
            return;
        }
    }
    CHECK(brolga_missing_name(missing, brolga_missing_count(missing)) == NULL);
    brolga_missing_done(missing);
}

/* K06 DefinitionGenerators: a function of C defines what a look-up misses. */
static void k06(void) {
    struct calls calls = {0, 0};
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main"), *user = made(session, "user");
    OK(brolga_dylib_link(user, main));
    OK(brolga_dylib_add_generator(main, generate, &calls, freed));
    BrolgaCSymbol *symbol = NULL;
    OK(brolga_dylib_c_symbol(user, "number", &symbol));
    CHECK(brolga_c_symbol_address(symbol) == address_of(seven));
    brolga_c_symbol_free(symbol);
    CHECK(calls.made == 1);
    /* It is defined now: nobody is asked. */
    define(user, CALLS_C("calls", "number"));
    CHECK(called(user, "calls", 0, 0) == 7 && calls.made == 1);
    /* A function of a program can be defined when its symbol is looked up. */
    CHECK(called(user, "late()", 0, 0) == 9);
    /* What it does not know is looked for elsewhere; what it refuses is its error. */
    FAILS(brolga_dylib_c_symbol(user, "brolga_is_nowhere", &symbol), BROLGA_CODE_LOOKUP, "brolga_is_nowhere");
    FAILS(brolga_dylib_c_symbol(user, "broken", &symbol), BROLGA_CODE_LOOKUP, "the store is closed");
    CHECK(calls.freed == 0);
    FAILS(brolga_dylib_add_generator(user, NULL, &calls, freed), BROLGA_CODE_ARGUMENT, "generate");
    CHECK(calls.freed == 1);
    /* It goes with its dylib, or with the tracker of the handle through which it was added. */
    const BrolgaDylib *const closed[] = {main};
    OK(brolga_session_close_dylibs(session, closed, 1, BROLGA_DEPENDANTS_KEEP));
    CHECK(calls.freed == 2);
    BrolgaTracker *tracker = NULL;
    BrolgaDylib *through = tracked(user, BROLGA_ON_FREE_KEEP, &tracker);
    OK(brolga_dylib_add_generator(through, generate, &calls, freed));
    OK(brolga_dylib_c_symbol(user, "number", &symbol));
    brolga_c_symbol_free(symbol);
    OK(brolga_tracker_remove(tracker, BROLGA_DEPENDANTS_CASCADE));
    CHECK(calls.freed == 3);
    FAILS(brolga_dylib_c_symbol(user, "number", &symbol), BROLGA_CODE_LOOKUP, "number");
    brolga_tracker_free(tracker);
    brolga_dylib_free(through);
    brolga_dylib_free(main);
    brolga_dylib_free(user);
    brolga_session_free(session);
}

/* K07 ResourceTrackerDefinitionLifetime: what a tracker has is there until the tracker is removed. */
static void k07(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main");
    BrolgaTracker *tracker = NULL;
    BrolgaDylib *through = tracked(main, BROLGA_ON_FREE_KEEP, &tracker);
    define(through, NUMBER("f", 1));
    OK(brolga_dylib_define_c_symbol(through, "number", address_of(seven)));
    define(main, CALLS("g", "f"));
    CHECK(called(main, "g", 0, 0) == 1);
    /* The policies for users. */
    FAILS(brolga_tracker_remove(tracker, BROLGA_DEPENDANTS_DENY), BROLGA_CODE_LOOKUP, "g()");
    FAILS(brolga_tracker_remove(tracker, 4), BROLGA_CODE_ARGUMENT, "policy 4");
    CHECK(called(main, "f", 0, 0) == 1);
    BrolgaFunction *g = NULL;
    OK(brolga_dylib_function(main, "g", &g));
    OK(brolga_tracker_remove(tracker, BROLGA_DEPENDANTS_TOMBSTONE));
    FAILS(brolga_function_call(g, NULL, 0, NULL), BROLGA_CODE_EXCEPTION, "f()");
    brolga_function_free(g);
    FAILS(look_up(main, "f"), BROLGA_CODE_LOOKUP, "f");
    BrolgaCSymbol *symbol = NULL;
    FAILS(brolga_dylib_c_symbol(main, "number", &symbol), BROLGA_CODE_LOOKUP, "number");
    FAILS(brolga_tracker_remove(tracker, BROLGA_DEPENDANTS_KEEP), BROLGA_CODE_LOOKUP, "");
    FAILS(brolga_dylib_define(through, "f.jlir", NUMBER("f", 2), strlen(NUMBER("f", 2)), BROLGA_MODE_EAGER),
          BROLGA_CODE_LOOKUP, "removed");
    brolga_dylib_free(through);
    brolga_tracker_free(tracker);

    /* Cascade takes the user along, and keep keeps what it uses. */
    const uint32_t policies[] = {BROLGA_DEPENDANTS_CASCADE, BROLGA_DEPENDANTS_KEEP};
    for (int at = 0; at < 2; at++) {
        OK(brolga_dylib_clear(main, BROLGA_DEPENDANTS_KEEP));
        through = tracked(main, BROLGA_ON_FREE_KEEP, &tracker);
        define(through, NUMBER("f", 3));
        define(main, CALLS("g", "f"));
        CHECK(called(main, "g", 0, 0) == 3);
        OK(brolga_tracker_remove(tracker, policies[at]));
        FAILS(look_up(main, "f"), BROLGA_CODE_LOOKUP, "f");
        if (at == 0) {
            FAILS(look_up(main, "g"), BROLGA_CODE_LOOKUP, "g");
        } else {
            CHECK(called(main, "g", 0, 0) == 3);
        }
        brolga_dylib_free(through);
        brolga_tracker_free(tracker);
    }

    /* A tracker that is freed leaves its definitions, or takes them along. */
    through = tracked(main, BROLGA_ON_FREE_KEEP, &tracker);
    define(through, NUMBER("stays", 4));
    brolga_tracker_free(tracker);
    brolga_dylib_free(through);
    CHECK(called(main, "stays", 0, 0) == 4);
    through = tracked(main, BROLGA_ON_FREE_REMOVE, &tracker);
    define(through, NUMBER("goes", 5));
    brolga_tracker_free(tracker);
    brolga_dylib_free(through);
    FAILS(look_up(main, "goes"), BROLGA_CODE_LOOKUP, "goes");
    FAILS(brolga_dylib_tracker(main, 2, &tracker), BROLGA_CODE_ARGUMENT, "choice 2");
    brolga_dylib_free(main);
    brolga_session_free(session);
}

/* K08 ResourceTrackerTransfer: definitions go from one tracker to another. */
static void k08(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main"), *other = made(session, "other");
    BrolgaTracker *first = NULL, *second = NULL, *foreign = NULL;
    BrolgaDylib *through = tracked(main, BROLGA_ON_FREE_REMOVE, &first);
    OK(brolga_dylib_tracker(main, BROLGA_ON_FREE_KEEP, &second));
    OK(brolga_dylib_tracker(other, BROLGA_ON_FREE_KEEP, &foreign));
    define(through, NUMBER("f", 1));
    CHECK(called(main, "f", 0, 0) == 1);
    FAILS(brolga_tracker_transfer(first, foreign), BROLGA_CODE_LOOKUP, "");
    OK(brolga_tracker_transfer(first, first));
    OK(brolga_tracker_transfer(first, second));
    brolga_tracker_free(first);
    CHECK(called(main, "f", 0, 0) == 1);
    OK(brolga_tracker_remove(second, BROLGA_DEPENDANTS_DENY));
    FAILS(look_up(main, "f"), BROLGA_CODE_LOOKUP, "f");
    brolga_tracker_free(second);
    brolga_tracker_free(foreign);
    brolga_dylib_free(through);
    brolga_dylib_free(main);
    brolga_dylib_free(other);
    brolga_session_free(session);
}

static const char *const TWICE =
    "function twice(x::Int64)::Int64\n"
    "1 ─ %1 = Base.add_int(x, x)::Int64\n"
    "└──      return %1\n"
    "end\n";

static void add_object(const BrolgaDylib *dylib) {
    size_t length = 0;
    char *bytes = contents(object_file, &length);
    OK(brolga_dylib_add_object(dylib, "object.o", bytes, length));
    memset(bytes, 0, length);
    free(bytes);
}

/* K09 AddObjectBuffer: an object file defines its symbols. */
static void k09(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main");
    add_object(main);
    BrolgaCSymbol *symbol = NULL;
    OK(brolga_dylib_define(main, "twice.jlir", TWICE, strlen(TWICE), BROLGA_MODE_LAZY));
    OK(brolga_dylib_c_symbol(main, "sum", &symbol));
    CHECK(brolga_c_symbol_address(symbol) != NULL);
    brolga_c_symbol_free(symbol);
    FAILS(brolga_dylib_add_object(main, "broken.o", "no object", 9), BROLGA_CODE_LOOKUP, "broken.o");
    size_t length = 0;
    char *bytes = contents(object_file, &length);
    FAILS(brolga_dylib_add_object(main, "again.o", bytes, length), BROLGA_CODE_LOOKUP, "sum");
    FAILS(brolga_dylib_add_object(main, "none.o", NULL, length), BROLGA_CODE_ARGUMENT, "bytes");
    free(bytes);
    brolga_dylib_free(main);
    brolga_session_free(session);
}

/* gdb's list of code. */
struct entry {
    struct entry *next, *previous;
    const char *symbol_file;
    uint64_t size;
};

extern struct {
    uint32_t version, action;
    struct entry *relevant, *first;
} __jit_debug_descriptor;

static int described(void) {
    int count = 0;
    for (struct entry *entry = __jit_debug_descriptor.first; entry != NULL; entry = entry->next) {
        count++;
    }
    return count;
}

/* K10 EnableDebugSupport: debuggers see what is compiled and linked. */
static void k10(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main");
    int before = described();
    OK(brolga_session_show_debuggers(session, "rules.jlir"));
    define(main, NUMBER("f", 1));
    CHECK(called(main, "f", 0, 0) == 1);
    int with_function = described();
    CHECK(with_function > before);
    BrolgaCSymbol *symbol = NULL;
    define(main, TWICE);
    add_object(main);
    OK(brolga_dylib_c_symbol(main, "sum", &symbol));
    CHECK(described() > with_function);
    brolga_c_symbol_free(symbol);
    brolga_dylib_free(main);
    OK(brolga_session_end(session));
    brolga_session_free(session);
    CHECK(described() == before);
}

/* K11 ExecutionTest: code of an object file and of a program is called, by each other and by C. */
static void k11(void) {
    BrolgaSession *session = opened(0);
    BrolgaDylib *main = made(session, "main");
    define(main, TWICE);
    add_object(main);
    BrolgaCSymbol *symbol = NULL;
    OK(brolga_dylib_c_symbol(main, "sum", &symbol));
    long (*sum)(long, long);
    void *address = brolga_c_symbol_address(symbol);
    memcpy(&sum, &address, sizeof sum);
    CHECK(sum(40, 2) == 42);
    brolga_c_symbol_free(symbol);
    /* The program calls C, which calls the program. */
    define(main,
           "function all(x::Int64)::Int64\n"
           "1 ─ %1 = $(Expr(:foreigncall, :(:quadruple), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n"
           "└──      return %1\n"
           "end\n");
    CHECK(called(main, "all", 1, 5) == 20);
    /* C calls the program by an address. */
    BrolgaFunction *twice = NULL;
    OK(brolga_dylib_function(main, "twice", &twice));
    OK(brolga_function_c_address(twice, &address));
    int64_t (*by_address)(int64_t);
    memcpy(&by_address, &address, sizeof by_address);
    CHECK(by_address(21) == 42);
    brolga_function_free(twice);
    /* Data of the file. */
    OK(brolga_dylib_c_symbol(main, "calls_made", &symbol));
    CHECK(*(long *)brolga_c_symbol_address(symbol) == 1);
    brolga_c_symbol_free(symbol);
    brolga_dylib_free(main);
    brolga_session_free(session);
}

/* The kind of a shape, as a text. */
static void check_kind(BrolgaRuntime *runtime, const BrolgaDylib *dylib, const char *name, const char *expected) {
    char text[16];
    size_t length = 0;
    BrolgaFunction *function = NULL;
    BrolgaObject *string = NULL;
    BrolgaValue value;
    OK(brolga_object_string(runtime, "what", 4, &string));
    const BrolgaValue args[] = {brolga_object(string)};
    OK(brolga_dylib_function(dylib, name, &function));
    OK(brolga_function_call(function, args, 1, &value));
    OK(brolga_object_copy_string(value.bits.object, text, sizeof text, &length));
    CHECK(length == strlen(expected) && memcmp(text, expected, length) == 0);
    brolga_object_free(value.bits.object);
    brolga_object_free(string);
    brolga_function_free(function);
}

/* The first field of an object, times what is given. */
static BrolgaError *first_of(void *data, const BrolgaValue *args, size_t count, BrolgaValue *result) {
    BrolgaValue field;
    CHECK(count == 1 && args[0].kind == BROLGA_KIND_OBJECT);
    BrolgaError *error = brolga_object_field(args[0].bits.object, 0, &field);
    if (error == NULL) {
        *result = brolga_int64(field.bits.int64 * *(int64_t *)data);
    }
    return error;
}

/* Names mean what they mean in their dylib: functions of objects, types in headers, methods beside each other. */
static void names(void) {
    static int64_t factors[] = {10, 100};
    BrolgaSession *session = opened(0);
    BrolgaRuntime *runtime = NULL;
    BrolgaDylib *north = made(session, "north"), *south = made(session, "south"), *east = made(session, "east");
    OK(brolga_session_runtime(session, &runtime));
    define(north, "function kind(name::String)::String\n1 ─      return \"north\"\nend\n"
                  "struct Point\n    x::Int64\nend\n");
    define(south, "function kind(name::String)::String\n1 ─      return \"south\"\nend\n"
                  "struct Point\n    x::Int64\n    y::Int64\nend\n");
    OK(brolga_dylib_alias(east, "kind_of_south", south, "kind"));
    OK(brolga_dylib_alias(east, "kind", north, "kind"));
    check_kind(runtime, north, "kind", "north");
    check_kind(runtime, south, "kind", "south");
    check_kind(runtime, south, "kind(String)", "south");
    check_kind(runtime, east, "kind", "north");
    check_kind(runtime, east, "kind_of_south", "south");
    OK(brolga_dylib_define_host(north, "area(p::Point)::Int64", first_of, &factors[0], NULL));
    OK(brolga_dylib_define_host(south, "area(p::Point)::Int64", first_of, &factors[1], NULL));
    define(north, "function size()::Int64\n1 ─ %1 = %new(Point, 7)::Point\n│   %2 = invoke Main.area(%1::Point)::Int64\n"
                  "└──      return %2\nend\n");
    define(south, "function size()::Int64\n1 ─ %1 = %new(Point, 8, 9)::Point\n│   %2 = invoke Main.area(%1::Point)::Int64\n"
                  "└──      return %2\nend\n");
    CHECK(called(north, "size", 0, 0) == 70 && called(south, "size", 0, 0) == 800);
    /* A name leads to the methods of the first dylib that has some. */
    define(north, "function half(x::Float64)::Float64\n1 ─ %1 = Base.mul_float(x, 0.5)::Float64\n└──      return %1\nend\n");
    OK(brolga_dylib_link(east, north));
    define(east, "function half(x::Int64)::Int64\n1 ─ %1 = Base.checked_sdiv_int(x, 2)::Int64\n└──      return %1\nend\n");
    CHECK(called(east, "half", 1, 9) == 4);
    BrolgaFunction *half = NULL;
    char *text = NULL;
    OK(brolga_dylib_function(east, "half(Float64)", &half));
    OK(brolga_function_signature(half, &text));
    CHECK(strcmp(text, "half(Float64)::Float64") == 0);
    brolga_text_free(text);
    brolga_function_free(half);
    brolga_dylib_free(north);
    brolga_dylib_free(south);
    brolga_dylib_free(east);
    brolga_session_free(session);
    brolga_runtime_free(runtime);
}

int main(int count, char **args) {
    static const struct {
        const char *name;
        void (*run)(void);
    } rows[] = {{"k01", k01}, {"k02", k02}, {"k03", k03}, {"k04", k04}, {"k05", k05}, {"k06", k06}, {"k07", k07},
                {"k08", k08}, {"k09", k09}, {"k10", k10}, {"k11", k11}, {"names", names}};
    CHECK(count == 3);
    object_file = args[2];
    for (size_t at = 0; at < sizeof rows / sizeof *rows; at++) {
        if (strcmp(rows[at].name, args[1]) == 0) {
            rows[at].run();
            return 0;
        }
    }
    fprintf(stderr, "there is no row %s\n", args[1]);
    return 2;
}
