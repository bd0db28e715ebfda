/* What the C programs of these tests share: checks that say where they fail, and the ends of errors. */
#ifndef EMBEDDER_H
#define EMBEDDER_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brolga.h"

#define CHECK(what)                                                            \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);         \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/* The call succeeds. */
#define OK(call) ok((call), __FILE__, __LINE__)

/* The call fails with this code, and says this word. */
#define FAILS(call, expected, word) fails((call), (expected), (word), __FILE__, __LINE__)

static inline void ok(BrolgaError *error, const char *file, int line) {
    if (error != NULL) {
        fprintf(stderr, "%s:%d: error %u: %s\n", file, line, (unsigned)brolga_error_code(error), brolga_error_message(error));
        exit(1);
    }
}

static inline void fails(BrolgaError *error, uint32_t expected, const char *word, const char *file, int line) {
    if (brolga_error_code(error) != expected || strstr(brolga_error_message(error), word) == NULL) {
        fprintf(stderr, "%s:%d: not code %u with \"%s\": code %u: %s\n", file, line, (unsigned)expected, word,
                (unsigned)brolga_error_code(error), brolga_error_message(error));
        exit(1);
    }
    brolga_error_free(error);
}

/* A session with open doors. */
static inline BrolgaSession *opened(size_t threads) {
    BrolgaOptions *options = brolga_options_new();
    BrolgaSession *session = NULL;
    OK(brolga_options_allow_doors(options));
    OK(brolga_session_new(options, threads, &session));
    brolga_options_free(options);
    return session;
}

static inline BrolgaDylib *made(BrolgaSession *session, const char *name) {
    BrolgaDylib *dylib = NULL;
    OK(brolga_session_empty_dylib(session, name, &dylib));
    return dylib;
}

static inline void define(const BrolgaDylib *dylib, const char *text) {
    OK(brolga_dylib_define(dylib, "program.jlir", text, strlen(text), BROLGA_MODE_EAGER));
}

/* The result of a function of an Int64, or of nothing, that the dylib sees. */
static inline int64_t called(const BrolgaDylib *dylib, const char *name, size_t count, int64_t x) {
    BrolgaFunction *function = NULL;
    BrolgaValue result;
    const BrolgaValue args[] = {brolga_int64(x)};
    OK(brolga_dylib_function(dylib, name, &function));
    OK(brolga_function_call(function, args, count, &result));
    CHECK(result.kind == BROLGA_KIND_INT64);
    brolga_function_free(function);
    return result.bits.int64;
}

/* The error of the look-up of a function. */
static inline BrolgaError *look_up(const BrolgaDylib *dylib, const char *name) {
    BrolgaFunction *function = NULL;
    BrolgaError *error = brolga_dylib_function(dylib, name, &function);
    CHECK((error == NULL) == (function != NULL));
    brolga_function_free(function);
    return error;
}

/* The bytes of a file. */
static inline char *contents(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    CHECK(size > 0);
    rewind(file);
    char *bytes = malloc((size_t)size);
    CHECK(bytes != NULL && fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    *length = (size_t)size;
    return bytes;
}

static inline int64_t seven(void) { return 7; }

static inline int64_t eight(void) { return 8; }

static inline const void *address_of(int64_t (*function)(void)) {
    const void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

/* The answer of a look-up, and how often there was one. */
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
    BrolgaError *error;
    BrolgaFunction *function;
    const BrolgaSession *session;
};

static inline void answered(void *data, BrolgaError *error, BrolgaFunction *function) {
    struct answer *answer = data;
    pthread_mutex_lock(&answer->lock);
    answer->count++;
    answer->error = error;
    answer->function = function;
    pthread_cond_broadcast(&answer->changed);
    pthread_mutex_unlock(&answer->lock);
}

static inline void await(struct answer *answer) {
    pthread_mutex_lock(&answer->lock);
    while (answer->count == 0) {
        pthread_cond_wait(&answer->changed, &answer->lock);
    }
    CHECK(answer->count == 1);
    pthread_mutex_unlock(&answer->lock);
}

#define UNANSWERED {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, NULL, NULL}

static inline BrolgaDylib *tracked(const BrolgaDylib *dylib, uint32_t on_free, BrolgaTracker **tracker) {
    BrolgaDylib *through = NULL;
    OK(brolga_dylib_tracker(dylib, on_free, tracker));
    OK(brolga_dylib_tracked_by(dylib, *tracker, &through));
    return through;
}

/* A function of no arguments that returns a number. */
#define NUMBER(name, number) "function " name "()::Int64\n1 ─      return " #number "\nend\n"

/* A function of no arguments that calls a C function of none. */
#define CALLS_C(name, callee)                                                                                        \
    "function " name "()::Int64\n"                                                                                   \
    "1 ─ %1 = $(Expr(:foreigncall, :(:" callee "), Int64, svec(), 0, :(:ccall)))::Int64\n"                           \
    "└──      return %1\n"                                                                                           \
    "end\n"

/* A function of no arguments that calls another one. */
#define CALLS(name, callee)                                                                                          \
    "function " name "()::Int64\n"                                                                                   \
    "1 ─ %1 = invoke Main." callee "()::Int64\n"                                                                     \
    "└──      return %1\n"                                                                                           \
    "end\n"

#endif
