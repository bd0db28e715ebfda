/* The C API of Brolga, a compiler and run-time for language implementers.
 *
 * Generated from crates/capi by cbindgen (tests/capi_header.sh); do not edit.
 *
 * Every function that can fail returns a `BrolgaError`, which the caller frees; NULL is success, and then the outputs are written.
 * NULL as an argument is an error, or nothing. Handles are freed by the function that has their name, in any order.
 *
 * Threads. Any thread may call any function, and so may host functions. Several threads may use a handle at the same time, but none while one frees it. A thread is known to a run time from its first
 * call to its end. Errors that are kept for `brolga_take_error` are the thread's.
 *
 * fork. A child process must not call this library if its parent has made an engine or a session: threads of the run time are not there, and compiled code cannot run.
 * It may call `exec`.
 */

#ifndef BROLGA_H
#define BROLGA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define BROLGA_CHECKED __attribute__((warn_unused_result))
#else
#define BROLGA_CHECKED
#endif

/*
 The kind of an error.
 */
enum BrolgaCode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     No error.
     */
    BROLGA_CODE_OK = 0,
    /*
     An argument is a null pointer, a text that is not UTF-8, or a value of the wrong kind.
     */
    BROLGA_CODE_ARGUMENT = 1,
    /*
     The program is broken, too large, or asks for what is not there.
     */
    BROLGA_CODE_PROGRAM = 2,
    /*
     There is no such function, it has another type, or the session refuses the request.
     */
    BROLGA_CODE_LOOKUP = 3,
    /*
     The called function threw; `brolga_error_exception` names the exception.
     */
    BROLGA_CODE_EXCEPTION = 4,
    /*
     There is no memory, no code generator for the machine, or the thread cannot run compiled code.
     */
    BROLGA_CODE_MACHINE = 5,
    /*
     A defect of Brolga.
     */
    BROLGA_CODE_INTERNAL = 6,
    /*
     A limit was reached (`brolga_function_call_limited`).
     */
    BROLGA_CODE_ENDED = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaCode BrolgaCode;
#else
typedef uint32_t BrolgaCode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 The kind of an activity.
 */
enum BrolgaActivityKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     Work begins on this thread: `stage` says what, `name` on what. Spans of one thread nest.
     */
    BROLGA_ACTIVITY_KIND_BEGIN = 0,
    /*
     The innermost work of this thread ends.
     */
    BROLGA_ACTIVITY_KIND_END = 1,
    /*
     A task waits for a thread: `number`.
     */
    BROLGA_ACTIVITY_KIND_QUEUED = 2,
    /*
     A task begins on this thread: `number`.
     */
    BROLGA_ACTIVITY_KIND_STARTED = 3,
    /*
     Code of the function `name` is in force, of the tier `number`.
     */
    BROLGA_ACTIVITY_KIND_PUBLISHED = 4,
    /*
     The function `name` has code of the next tier.
     */
    BROLGA_ACTIVITY_KIND_TIERED_UP = 5,
    /*
     Threads have left a running loop of `name` for better code, `number` times.
     */
    BROLGA_ACTIVITY_KIND_LEFT_LOOP = 6,
    /*
     The function `name` has lost its code, because of `reason`.
     */
    BROLGA_ACTIVITY_KIND_INVALIDATED = 7,
    /*
     The function `name` has lost its code for room: `number` bytes.
     */
    BROLGA_ACTIVITY_KIND_EVICTED = 8,
    /*
     A collection has ended, which stopped threads for `number` nanoseconds.
     */
    BROLGA_ACTIVITY_KIND_COLLECTED = 9,
    /*
     An interrupt has reached compiled code.
     */
    BROLGA_ACTIVITY_KIND_INTERRUPTED = 10,
    /*
     Something that this version of the header does not have.
     */
    BROLGA_ACTIVITY_KIND_OTHER = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaActivityKind BrolgaActivityKind;
#else
typedef uint32_t BrolgaActivityKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 The fate of code that uses a removed definition.
 */
enum BrolgaDependants
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     Nothing is removed if there is any: the error names it.
     */
    BROLGA_DEPENDANTS_DENY = 0,
    /*
     It is removed too.
     */
    BROLGA_DEPENDANTS_CASCADE = 1,
    /*
     It stays, and calls of what was removed throw `CompileError`.
     */
    BROLGA_DEPENDANTS_TOMBSTONE = 2,
    /*
     It stays, and keeps what it uses.
     */
    BROLGA_DEPENDANTS_KEEP = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaDependants BrolgaDependants;
#else
typedef uint32_t BrolgaDependants;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Which names are re-exported.
 */
enum BrolgaExports
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     All names; the list is empty.
     */
    BROLGA_EXPORTS_ALL = 0,
    /*
     The listed names.
     */
    BROLGA_EXPORTS_ONLY = 1,
    /*
     All names but the listed ones.
     */
    BROLGA_EXPORTS_EXCEPT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaExports BrolgaExports;
#else
typedef uint32_t BrolgaExports;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 An event of a symbol.
 */
enum BrolgaHappened
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     It was defined.
     */
    BROLGA_HAPPENED_DEFINED = 0,
    /*
     It begins to be made.
     */
    BROLGA_HAPPENED_STARTED = 1,
    /*
     It has an address.
     */
    BROLGA_HAPPENED_RESOLVED = 2,
    /*
     Its memory is final.
     */
    BROLGA_HAPPENED_EMITTED = 3,
    /*
     It may be used.
     */
    BROLGA_HAPPENED_READY = 4,
    /*
     It could not be made.
     */
    BROLGA_HAPPENED_FAILED = 5,
    /*
     Its name does not lead to this definition any more: it was removed, replaced or overridden.
     */
    BROLGA_HAPPENED_REMOVED = 6,
    /*
     Something that this version of the header does not have.
     */
    BROLGA_HAPPENED_OTHER = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaHappened BrolgaHappened;
#else
typedef uint32_t BrolgaHappened;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 The kind of a value.
 */
enum BrolgaKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     `nothing`.
     */
    BROLGA_KIND_NOTHING = 0,
    /*
     `Bool`, in `boolean`.
     */
    BROLGA_KIND_BOOL = 1,
    /*
     `Int8`, in `int8`.
     */
    BROLGA_KIND_INT8 = 2,
    /*
     `Int16`, in `int16`.
     */
    BROLGA_KIND_INT16 = 3,
    /*
     `Int32`, in `int32`.
     */
    BROLGA_KIND_INT32 = 4,
    /*
     `Int64`, in `int64`.
     */
    BROLGA_KIND_INT64 = 5,
    /*
     `UInt8`, in `uint8`.
     */
    BROLGA_KIND_UINT8 = 6,
    /*
     `UInt16`, in `uint16`.
     */
    BROLGA_KIND_UINT16 = 7,
    /*
     `UInt32`, in `uint32`.
     */
    BROLGA_KIND_UINT32 = 8,
    /*
     `UInt64`, in `uint64`.
     */
    BROLGA_KIND_UINT64 = 9,
    /*
     `Float32`, in `float32`.
     */
    BROLGA_KIND_FLOAT32 = 10,
    /*
     `Float64`, in `float64`.
     */
    BROLGA_KIND_FLOAT64 = 11,
    /*
     `Char`, in `uint32`: the code point.
     */
    BROLGA_KIND_CHAR = 12,
    /*
     `Ptr`, in `pointer`. The program's accesses through it are its own affair.
     */
    BROLGA_KIND_POINTER = 13,
    /*
     Any other value, in `object`.
     */
    BROLGA_KIND_OBJECT = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaKind BrolgaKind;
#else
typedef uint32_t BrolgaKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 When the functions of a program are compiled.
 */
enum BrolgaMode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     Before a look-up is answered.
     */
    BROLGA_MODE_EAGER = 0,
    /*
     When they are called first.
     */
    BROLGA_MODE_LAZY = 1,
    /*
     As lazy ones, fast at first, and well when they have been called a thousand times or iterate for long.
     */
    BROLGA_MODE_TIERED = 2,
    /*
     As lazy ones; a redefinition also reaches callers that run.
     */
    BROLGA_MODE_REPLACEABLE = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaMode BrolgaMode;
#else
typedef uint32_t BrolgaMode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 What becomes of the definitions of a tracker when its handle is freed.
 */
enum BrolgaOnFree
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     They stay, as definitions of the dylib.
     */
    BROLGA_ON_FREE_KEEP = 0,
    /*
     They are removed. What ready code uses stays until it is not used any more.
     */
    BROLGA_ON_FREE_REMOVE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaOnFree BrolgaOnFree;
#else
typedef uint32_t BrolgaOnFree;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 How urgent work is.
 */
enum BrolgaPriority
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     Somebody waits for it.
     */
    BROLGA_PRIORITY_BLOCKING = 0,
    /*
     Wanted soon.
     */
    BROLGA_PRIORITY_NORMAL = 1,
    /*
     Done when there is nothing else.
     */
    BROLGA_PRIORITY_IDLE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaPriority BrolgaPriority;
#else
typedef uint32_t BrolgaPriority;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 How far a symbol has come.
 */
enum BrolgaProgress
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     It is defined, and nobody has looked it up.
     */
    BROLGA_PROGRESS_DEFINED = 0,
    /*
     It is being made.
     */
    BROLGA_PROGRESS_MATERIALIZING = 1,
    /*
     It has an address.
     */
    BROLGA_PROGRESS_RESOLVED = 2,
    /*
     Its memory is final; something that it needs is not ready.
     */
    BROLGA_PROGRESS_EMITTED = 3,
    /*
     It may be used.
     */
    BROLGA_PROGRESS_READY = 4,
    /*
     It could not be made.
     */
    BROLGA_PROGRESS_FAILED = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum BrolgaProgress BrolgaProgress;
#else
typedef uint32_t BrolgaProgress;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 A function that is being built. Made by `brolga_module_function`, freed by `brolga_builder_free`.
 */
typedef struct BrolgaBuilder BrolgaBuilder;

/*
 A C symbol in memory. What it is in stays in memory as long as the handle.
 */
typedef struct BrolgaCSymbol BrolgaCSymbol;

/*
 A cache of compiled code. Made by `brolga_cache_open`, freed by `brolga_cache_free`; options, engines and sessions keep it.
 */
typedef struct BrolgaCache BrolgaCache;

/*
 A program that a dylib has read, with how it is to be defined. It is defined once.
 */
typedef struct BrolgaDefinitions BrolgaDefinitions;

/*
 A namespace of a session.
 */
typedef struct BrolgaDylib BrolgaDylib;

/*
 Compiles programs and links them into the process.
 */
typedef struct BrolgaEngine BrolgaEngine;

/*
 Why a function failed. The caller owns it and frees it with `brolga_error_free`.
 */
typedef struct BrolgaError BrolgaError;

/*
 A compiled function, or one that its first call compiles. It keeps its code.
 */
typedef struct BrolgaFunction BrolgaFunction;

/*
 Stops a thread that runs compiled code: see `brolga_interrupt_new`.
 */
typedef struct BrolgaInterrupt BrolgaInterrupt;

/*
 Limits for calls. Made by `brolga_limits_new`, freed by `brolga_limits_free`; several calls on several threads may have the same.
 */
typedef struct BrolgaLimits BrolgaLimits;

/*
 Names that a look-up misses, and that a generator may define. It is answered by `brolga_missing_done` or `brolga_missing_fail`, which free it.
 */
typedef struct BrolgaMissing BrolgaMissing;

/*
 A program that is being built. Made by `brolga_module_new` or `brolga_dylib_module`, freed by `brolga_module_free`.
 */
typedef struct BrolgaModule BrolgaModule;

/*
 A handle to an object, which keeps it.
 */
typedef struct BrolgaObject BrolgaObject;

/*
 Choices for an engine or a session. Made by `brolga_options_new`, freed by `brolga_options_free`; one may be used for several engines.
 */
typedef struct BrolgaOptions BrolgaOptions;

/*
 A package that is open in a session. Freed by `brolga_package_free`, which does not close it.
 */
typedef struct BrolgaPackage BrolgaPackage;

/*
 Settings and programs of a package. Made by `brolga_package_build_new`, freed by `brolga_package_build_free`.
 */
typedef struct BrolgaPackageBuild BrolgaPackageBuild;

/*
 A program, read and verified.
 */
typedef struct BrolgaProgram BrolgaProgram;

/*
 Functions that were promised and are needed now. Lent for a call of a `BrolgaMakeFn`.
 */
typedef struct BrolgaPromised BrolgaPromised;

/*
 A pending look-up.
 */
typedef struct BrolgaRequest BrolgaRequest;

/*
 The obligation to define the addresses of C symbols. It ends by `brolga_responsibility_emit` or `brolga_responsibility_fail`, which free it.
 */
typedef struct BrolgaResponsibility BrolgaResponsibility;

/*
 The run time of an engine or a session: the heap with its objects, and the output. Each handle keeps it.
 */
typedef struct BrolgaRuntime BrolgaRuntime;

/*
 Programs that call each other's functions.
 */
typedef struct BrolgaSession BrolgaSession;

/*
 The symbols of a dylib at one time, in the order of their names.
 */
typedef struct BrolgaSymbols BrolgaSymbols;

/*
 Definitions of a dylib that are removed together.
 */
typedef struct BrolgaTracker BrolgaTracker;

/*
 Compiled functions of one program.
 */
typedef struct BrolgaUnit BrolgaUnit;

/*
 Something that a run time has done. The texts are lent for the call, and null where the kind has none.
 */
typedef struct {
    /*
     A `BrolgaActivityKind`.
     */
    uint32_t kind;
    /*
     The stage of work: `optimise`, `generate code`, `link`, `collect` and others.
     */
    const char *stage;
    /*
     The function, or what the work is about.
     */
    const char *name;
    /*
     The reason.
     */
    const char *reason;
    /*
     A number, as the kind says.
     */
    uint64_t number;
} BrolgaActivity;

/*
 Hears of activities, on their threads, in the middle of compilations and collections. It calls no function of this library, waits for no lock that a thread may hold while it runs a program, and
 returns.
 */
typedef void (*BrolgaActivityFn)(void *data,
                                 const BrolgaActivity *activity);

/*
 Frees the data of a function of C when nothing can call the function any more.
 */
typedef void (*BrolgaFreeFn)(void *data);

/*
 An object file of a C or C++ compiler.
 */
typedef struct {
    /*
     How messages and debuggers call it, ending in a zero byte.
     */
    const char *name;
    /*
     Its bytes, which are copied.
     */
    const void *bytes;
    /*
     The number of its bytes.
     */
    size_t length;
} BrolgaObjectFile;

/*
 Says whether a name is one of those that a dylib sees. Several threads may call it at the same time.
 */
typedef bool (*BrolgaAcceptFn)(void *data,
                               const char *name);

/*
 The counters of a cache since it was opened.
 */
typedef struct {
    /*
     Entries that were found and used.
     */
    uint64_t hits;
    /*
     Look-ups that found nothing.
     */
    uint64_t misses;
    /*
     Entries that were found and refused: damaged, or sealed with another key.
     */
    uint64_t refused;
    /*
     Bytes of the entries found.
     */
    uint64_t read;
    /*
     Entries written.
     */
    uint64_t kept;
    /*
     Bytes of the entries written.
     */
    uint64_t written;
    /*
     Errors of the directory. They cost time, and nothing else.
     */
    uint64_t errors;
    /*
     Nanoseconds that compiling the found entries took, less those to find them.
     */
    uint64_t saved;
} BrolgaCacheStats;

/*
 A number, an address or an object: the member that the kind of the value says.
 */
typedef union {
    /*
     Of `BROLGA_KIND_BOOL`.
     */
    bool boolean;
    /*
     Of `BROLGA_KIND_INT8`.
     */
    int8_t int8;
    /*
     Of `BROLGA_KIND_INT16`.
     */
    int16_t int16;
    /*
     Of `BROLGA_KIND_INT32`.
     */
    int32_t int32;
    /*
     Of `BROLGA_KIND_INT64`.
     */
    int64_t int64;
    /*
     Of `BROLGA_KIND_UINT8`.
     */
    uint8_t uint8;
    /*
     Of `BROLGA_KIND_UINT16`.
     */
    uint16_t uint16;
    /*
     Of `BROLGA_KIND_UINT32` and `BROLGA_KIND_CHAR`.
     */
    uint32_t uint32;
    /*
     Of `BROLGA_KIND_UINT64`.
     */
    uint64_t uint64;
    /*
     Of `BROLGA_KIND_FLOAT32`.
     */
    float float32;
    /*
     Of `BROLGA_KIND_FLOAT64`.
     */
    double float64;
    /*
     Of `BROLGA_KIND_POINTER`.
     */
    void *pointer;
    /*
     Of `BROLGA_KIND_OBJECT`.
     */
    BrolgaObject *object;
} BrolgaBits;

/*
 A value: an argument, or the result of a call. The caller owns the object of a result and frees it with `brolga_object_free`; objects among arguments are borrowed.
 */
typedef struct {
    /*
     A `BrolgaKind`.
     */
    uint32_t kind;
    /*
     The number, the address or the object.
     */
    BrolgaBits bits;
} BrolgaValue;

/*
 Defines what a look-up misses: `missing` belongs to the function, which answers it now, or keeps it and answers it later, on any thread. `dylib` is the one to which the generator was added, and
 lent for the call: object files or functions that are defined in it are found, as are the symbols that `brolga_missing_define` defines. Several threads may call it at the same time.
 */
typedef void (*BrolgaGenerateFn)(void *data,
                                 const BrolgaDylib *dylib,
                                 BrolgaMissing *missing);

/*
 A C function that programs call. It gets what was given at its definition, and the arguments; objects among these are lent for the call. It sets `result`, which
 is `nothing` before, and returns null; or it returns an error, which the program catches as an `ErrorException`. An object in `result`, and an
 error, belong to the library afterwards (`brolga_object_clone` makes a handle to pass on). Several threads may call it at the same time.
 */
typedef BrolgaError *(*BrolgaHostFn)(void *data,
                                     const BrolgaValue *args,
                                     size_t count,
                                     BrolgaValue *result);

/*
 A function of C of any type: it is cast to its own type before it is called.
 */
typedef void (*BrolgaPlainFn)(void);

/*
 The program of an executable.
 */
typedef struct {
    /*
     The image.
     */
    const uint8_t *image;
    /*
     Its length in bytes.
     */
    size_t length;
    /*
     The call, whose value is printed; null for `main`.
     */
    const char *call;
} BrolgaExecutable;

/*
 A function of C that makes calls under limits.
 */
typedef void (*BrolgaLimitedFn)(void *data);

/*
 Gets the answer of a look-up, once: a function, or an error; the other one is null. Both belong to the function of C. It may be called before the call that asks returns, and on any thread.
 */
typedef void (*BrolgaAnswerFn)(void *data,
                               BrolgaError *error,
                               BrolgaFunction *function);

/*
 Sets the addresses of C symbols: `responsibility` belongs to the function, which ends it now, or keeps it and ends it later, on any thread. `dylib` is the one that has the symbols, and lent for the call.
 */
typedef void (*BrolgaMaterializeFn)(void *data,
                                    const BrolgaDylib *dylib,
                                    BrolgaResponsibility *responsibility);

/*
 Keeps a promise: passes the program to `brolga_promised_keep` and returns null, or returns an error, which belongs to the library afterwards. It is called at most once, on any thread.
 */
typedef BrolgaError *(*BrolgaMakeFn)(void *data,
                                     const BrolgaPromised *promised);

/*
 Hears of a failure. The error is lent for the call. Called on the thread on which the failure happens, without a lock, and by several threads at the same time.
 */
typedef void (*BrolgaReportFn)(void *data,
                               const BrolgaError *error);

/*
 An event of a symbol.
 */
typedef struct {
    /*
     Its number among the events of the session.
     */
    uint64_t number;
    /*
     The name of the dylib.
     */
    const char *dylib;
    /*
     The symbol: of a function with its types.
     */
    const char *symbol;
    /*
     A `BrolgaHappened`.
     */
    uint32_t happened;
    /*
     Whether it concerns a part of the symbol, such as the body of a function.
     */
    bool is_part;
} BrolgaEvent;

/*
 Hears of events, in their order. They, and their texts, are lent for the call. Called on the threads on which they happen, without a lock, and by several threads at
 the same time: events of several calls are in the order of their numbers.
 */
typedef void (*BrolgaObserveFn)(void *data,
                                const BrolgaEvent *events,
                                size_t count);

/*
 A symbol of a list.
 */
typedef struct {
    /*
     Its name, valid as long as the list: of a function with its types (`fib(Int64)`), of a C symbol; of declarations with what they are (`count#global`, `Point#type`).
     */
    const char *name;
    /*
     A `BrolgaProgress`.
     */
    uint32_t progress;
    /*
     Whether dylibs that are linked to this one see it.
     */
    bool is_exported;
    /*
     Whether another definition of its name overrides it until it is looked up first.
     */
    bool is_weak;
    /*
     Whether the host defined its address, and the session has no code of it.
     */
    bool is_absolute;
} BrolgaSymbol;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Has `listen` called with what the run time does from now on. A run time has one listener; if it has one, this is an error. `data` is handed to `listen`, and to `free`, if that is not null, when the run time
 is freed, or at once if this fails.

 # Safety

 `listen` and `free` are what `BrolgaActivityFn` and `BrolgaFreeFn` say, may be called on any thread and by several at the same time, and return.
 */
BROLGA_CHECKED
BrolgaError *brolga_runtime_listen(const BrolgaRuntime *runtime,
                                   BrolgaActivityFn listen,
                                   void *data,
                                   BrolgaFreeFn free);

/*
 Frees a builder, whether its function is finished or not. Null is nothing.
 */
void brolga_builder_free(BrolgaBuilder *builder);

/*
 Verifies the function and adds it to the module. The builder takes no more.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_finish(const BrolgaBuilder *builder);

/*
 The place in the source of the statements that follow: a line and a column from 1; a column 0 is none.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_set_line(const BrolgaBuilder *builder,
                                     uint32_t line,
                                     uint32_t column);

/*
 The file in which lines are counted.

 # Safety

 `file` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_set_file(const BrolgaBuilder *builder,
                                     const char *file);

/*
 Returns an argument of the function, counted from 0.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_param(const BrolgaBuilder *builder,
                                  size_t index,
                                  uint32_t *value);

/*
 Returns a constant of an integer type.

 # Safety

 `ty` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_int(const BrolgaBuilder *builder,
                                const char *ty,
                                int64_t number,
                                uint32_t *value);

/*
 Returns a `Float64`.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_float64(const BrolgaBuilder *builder,
                                    double number,
                                    uint32_t *value);

/*
 Returns a `Bool`.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_bool(const BrolgaBuilder *builder,
                                 bool truth,
                                 uint32_t *value);

/*
 Returns `nothing`.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_nothing(const BrolgaBuilder *builder,
                                    uint32_t *value);

/*
 Returns a `String`.

 # Safety

 `text` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_string(const BrolgaBuilder *builder,
                                   const char *text,
                                   uint32_t *value);

/*
 Returns a `Symbol`.

 # Safety

 `text` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_symbol(const BrolgaBuilder *builder,
                                   const char *text,
                                   uint32_t *value);

/*
 Returns a type as a value.

 # Safety

 `ty` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_type(const BrolgaBuilder *builder,
                                 const char *ty,
                                 uint32_t *value);

/*
 Returns a function as a value, by its name.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_function(const BrolgaBuilder *builder,
                                     const char *name,
                                     uint32_t *value);

/*
 Adds an intrinsic or a builtin, by Julia's name: `add_int`, `sitofp`, `arrayref`. `ty` is the type of its result; it may be null for intrinsics whose result follows from their operands. It is needed for conversions,
 whose operand here is the value alone, and for builtins.

 # Safety

 `name` and `ty` are null or end in a zero byte; there are `count` numbers at `args`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_operation(const BrolgaBuilder *builder,
                                      const char *name,
                                      const uint32_t *args,
                                      size_t count,
                                      const char *ty,
                                      uint32_t *value);

/*
 Adds a call of the method of a function for the types of the arguments, by the function's name. That it is there is checked when the program is made.

 # Safety

 `name` and `ty` are null or end in a zero byte; there are `count` numbers at `args`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_invoke(const BrolgaBuilder *builder,
                                   const char *name,
                                   const uint32_t *args,
                                   size_t count,
                                   const char *ty,
                                   uint32_t *value);

/*
 Adds a call of a value, whose method is found when it is called.

 # Safety

 `ty` is null or ends in a zero byte; there are `count` numbers at `args`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_call(const BrolgaBuilder *builder,
                                 uint32_t function,
                                 const uint32_t *args,
                                 size_t count,
                                 const char *ty,
                                 uint32_t *value);

/*
 Adds an instance of a struct, from its fields.

 # Safety

 `ty` is null or ends in a zero byte; there are `count` numbers at `args`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_object(const BrolgaBuilder *builder,
                                   const char *ty,
                                   const uint32_t *args,
                                   size_t count,
                                   uint32_t *value);

/*
 Adds a tuple.

 # Safety

 There are `count` numbers at `args`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_tuple(const BrolgaBuilder *builder,
                                  const uint32_t *args,
                                  size_t count,
                                  uint32_t *value);

/*
 Adds a read of an element of a tuple, or of a field of a struct, counted from 1. Of checked arithmetic 1 is the number and 2 whether it has overflowed.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_element(const BrolgaBuilder *builder,
                                    uint32_t object,
                                    uint32_t index,
                                    uint32_t *value);

/*
 Adds a read of a field, by name.

 # Safety

 `field` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_getfield(const BrolgaBuilder *builder,
                                     uint32_t object,
                                     const char *field,
                                     uint32_t *value);

/*
 Adds a write of a field of a mutable struct, by name.

 # Safety

 `field` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_setfield(const BrolgaBuilder *builder,
                                     uint32_t object,
                                     const char *field,
                                     uint32_t value);

/*
 Declares a variable: it may be defined in several blocks, and has the value of the way by which a use is reached. `name` is for debuggers and may be null.

 # Safety

 `name` and `ty` are null or end in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_variable(const BrolgaBuilder *builder,
                                     const char *name,
                                     const char *ty,
                                     uint32_t *variable);

/*
 Assigns another value to a variable from here on.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_define(const BrolgaBuilder *builder,
                                   uint32_t variable,
                                   uint32_t value);

/*
 Returns the value of a variable at this place.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_use(const BrolgaBuilder *builder,
                                uint32_t variable,
                                uint32_t *value);

/*
 Makes a block.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_block(const BrolgaBuilder *builder,
                                  uint32_t *block);

/*
 Adds statements to this block from now on.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_switch(const BrolgaBuilder *builder,
                                   uint32_t block);

/*
 Says that no more jumps to the block will be added. Blocks that are not sealed are when the function is finished; sealing early saves work.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_seal(const BrolgaBuilder *builder,
                                 uint32_t block);

/*
 Ends the block: continues at another one.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_goto(const BrolgaBuilder *builder,
                                 uint32_t block);

/*
 Ends the block: continues at `then` if the condition, a `Bool`, is true, else at `other`.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_branch(const BrolgaBuilder *builder,
                                   uint32_t condition,
                                   uint32_t then,
                                   uint32_t other);

/*
 Ends the block: returns from the function.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_return(const BrolgaBuilder *builder,
                                   uint32_t value);

/*
 Ends the block, whose end is never reached: after a call that always throws.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_unreachable(const BrolgaBuilder *builder);

/*
 Ends the block: continues at `body`; exceptions thrown before the token is left continue at `handler`.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_enter(const BrolgaBuilder *builder,
                                  uint32_t body,
                                  uint32_t handler,
                                  uint32_t *token);

/*
 Leaves the innermost handler, by its token. The block of the handler is entered without it.
 */
BROLGA_CHECKED
BrolgaError *brolga_builder_leave(const BrolgaBuilder *builder,
                                  uint32_t token);

/*
 Sets the address of a C symbol: of a function, or of data. An address from `brolga_function_c_address` makes the symbol depend on the function.

 # Safety

 `name` is null or ends in a zero byte. The address is valid for what programs do with the symbol, as long as it is defined and code uses it.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_define_c_symbol(const BrolgaDylib *dylib,
                                          const char *name,
                                          const void *address);

/*
 As `brolga_dylib_define_c_symbol`, and replaces the address that the symbol has: calls that begin later reach the new one. `notes` is as for `brolga_dylib_redefine`.

 # Safety

 As `brolga_dylib_define_c_symbol`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_redefine_c_symbol(const BrolgaDylib *dylib,
                                            const char *name,
                                            const void *address,
                                            char **notes);

/*
 Returns a C symbol that the dylib sees, function or data: what defines it is linked if it is not yet. The caller frees it with `brolga_c_symbol_free`.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_c_symbol(const BrolgaDylib *dylib,
                                   const char *name,
                                   BrolgaCSymbol **symbol);

/*
 The address of a C symbol; null for null.
 */
void *brolga_c_symbol_address(const BrolgaCSymbol *symbol);

/*
 Frees a C symbol. Its address is not to be used any more if it was in an object file that was removed. Null is nothing.
 */
void brolga_c_symbol_free(BrolgaCSymbol *symbol);

/*
 Defines the symbols of an object file of a C or C++ compiler, of `length` bytes. It is linked when something first needs one of its symbols; what it needs itself is looked up
 in the dylib's link order, functions of programs among it. `name` is how messages and debuggers call it.

 # Safety

 `name` is null or ends in a zero byte; there are `length` bytes at `bytes`, or it is null. The code does what programs that call it expect.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_add_object(const BrolgaDylib *dylib,
                                     const char *name,
                                     const void *bytes,
                                     size_t length);

/*
 As `brolga_dylib_add_object`, for files that are linked and removed together: they may need each other.

 # Safety

 There are `count` files at `files`, or it is null; each is as for `brolga_dylib_add_object`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_add_objects(const BrolgaDylib *dylib,
                                      const BrolgaObjectFile *files,
                                      size_t count);

/*
 Finds C symbols in members of a static archive, of `length` bytes; a member is linked when code needs it.

 # Safety

 As `brolga_dylib_add_object`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_add_archive(const BrolgaDylib *dylib,
                                      const char *name,
                                      const void *bytes,
                                      size_t length);

/*
 Finds C symbols of a shared library, by its path or name. It is opened at once, and stays open as long as the process.

 # Safety

 `path` is null or ends in a zero byte. The library's initialisers may be run, and its code does what programs that call it expect.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_add_library(const BrolgaDylib *dylib,
                                      const char *path);

/*
 Finds C symbols of the process, those that `accept` takes; all if it is null. `data` is handed to `accept`, and to `free`, if that is not null, when it is not called any more, also
 when this fails.

 # Safety

 `accept` and `free` are what `BrolgaAcceptFn` and `BrolgaFreeFn` say, may be called on any thread, and return.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_add_process_symbols(const BrolgaDylib *dylib,
                                              BrolgaAcceptFn accept,
                                              void *data,
                                              BrolgaFreeFn free);

/*
 Opens the cache in a directory, which is made if it is not there, for its owner only. Its entries together take `limit` bytes at most. `key` is the file of the key, which is made
 with a random key if it is not there; a file that others than its owner may read or write is an error.

 # Safety

 `directory` and `key` are null or end in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_cache_open(const char *directory,
                               uint64_t limit,
                               const char *key,
                               BrolgaCache **cache);

/*
 Engines and sessions with these options look for code in the cache before they compile, and keep compiled code there. Null: they use no cache.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_cache(BrolgaOptions *options,
                                      const BrolgaCache *cache);

/*
 Returns what the cache has done since it was opened.
 */
BROLGA_CHECKED
BrolgaError *brolga_cache_stats(const BrolgaCache *cache,
                                BrolgaCacheStats *stats);

/*
 Waits until entries that are being written are in the directory. Null is nothing.
 */
void brolga_cache_flush(const BrolgaCache *cache);

/*
 Frees a handle of a cache. Null is nothing.
 */
void brolga_cache_free(BrolgaCache *cache);

/*
 Shows debuggers all code that a session has from now on, functions of programs and object files, until it is freed. `source` is the name of the file in which lines are counted. A library that was
 built without the feature `gdb` returns an error.

 # Safety

 `source` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_show_debuggers(const BrolgaSession *session,
                                           const char *source);

/*
 Defines the functions of a program in the text form, of `length` bytes, all or none. `mode` is a `BrolgaMode`.

 # Safety

 `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_define(const BrolgaDylib *dylib,
                                 const char *name,
                                 const char *text,
                                 size_t length,
                                 uint32_t mode);

/*
 Defines functions, and replaces those that are there: calls from C that begin later reach the new ones. `notes` may be null; otherwise it
 gets a text about callers that keep the old definition, empty if there are none, which the caller frees with `brolga_text_free`.

 # Safety

 As `brolga_dylib_define`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_redefine(const BrolgaDylib *dylib,
                                   const char *name,
                                   const char *text,
                                   size_t length,
                                   char **notes);

/*
 Reads a program in the text form, of `length` bytes, for a dylib, in which `brolga_definitions_define` defines it. The caller frees the definitions with
 `brolga_definitions_free`. With `late`, a function that is called and not defined is not an error: it is looked up when the call is reached.

 # Safety

 As `brolga_dylib_define`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_read(const BrolgaDylib *dylib,
                               const char *name,
                               const char *text,
                               size_t length,
                               bool late,
                               BrolgaDefinitions **definitions);

/*
 When the functions are compiled: `mode` is a `BrolgaMode`. They are eager if it is not said; an eager mode does not take another one back.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_mode(const BrolgaDefinitions *definitions,
                                         uint32_t mode);

/*
 The functions are lazy and compiled twice: fast when they are called first, and well after `calls` calls.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_tiered(const BrolgaDefinitions *definitions,
                                           uint32_t calls);

/*
 Up to `calls` calls of functions in two tiers are interpreted while they are not compiled.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_interpreted(const BrolgaDefinitions *definitions,
                                                uint32_t calls);

/*
 Other definitions of the names override these until their first look-up.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_weak(const BrolgaDefinitions *definitions);

/*
 Other dylibs do not see the functions: not by calls of their programs, and not by look-ups.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_hidden(const BrolgaDefinitions *definitions);

/*
 Programs that are read later may inline the functions. Code that has done so is compiled again when they are redefined.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_inlinable(const BrolgaDefinitions *definitions);

/*
 All functions are compiled, linked and freed together, and not each when it is needed.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_together(const BrolgaDefinitions *definitions);

/*
 Starts to compile the functions when they are defined, and not at the first look-up. `priority` is a `BrolgaPriority`.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_set_start(const BrolgaDefinitions *definitions,
                                          uint32_t priority);

/*
 A function without arguments that runs when the dylib is opened (`brolga_dylib_open`).

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_add_initializer(const BrolgaDefinitions *definitions,
                                                const char *name);

/*
 A function without arguments that runs when the dylib is closed, or the session ends.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_add_finalizer(const BrolgaDefinitions *definitions,
                                              const char *name);

/*
 Defines the functions in the dylib that has read them, all or none; with its tracker, if the handle that read them has one. A second call is an error, also after a failure.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_define(const BrolgaDefinitions *definitions);

/*
 As `brolga_definitions_define`, and replaces the functions that are there. `notes` is as for `brolga_dylib_redefine`.
 */
BROLGA_CHECKED
BrolgaError *brolga_definitions_redefine(const BrolgaDefinitions *definitions,
                                         char **notes);

/*
 Frees definitions, which need not have been defined. Null is nothing.
 */
void brolga_definitions_free(BrolgaDefinitions *definitions);

/*
 Frees a handle of a dylib, which stays open. Null is nothing.
 */
void brolga_dylib_free(BrolgaDylib *dylib);

/*
 Returns the name of a dylib. The caller frees the text with `brolga_text_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_name(const BrolgaDylib *dylib,
                               char **text);

/*
 Lets a dylib see the functions of another one of its session, after what it sees already.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_link(const BrolgaDylib *dylib,
                               const BrolgaDylib *other);

/*
 Takes another dylib out of the link order. Code that was linked before keeps what it calls.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_unlink(const BrolgaDylib *dylib,
                                 const BrolgaDylib *other);

/*
 Sets the link order of a dylib: the first dylib in it that has a name is the one that the name means. The dylib itself may be anywhere in the order, or not in it; of itself it sees
 everything, of the others what they export.

 # Safety

 There are `count` pointers at `order`, or it is null; each is null or a handle.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_set_links(const BrolgaDylib *dylib,
                                    const BrolgaDylib *const *order,
                                    size_t count);

/*
 Returns handles to the dylibs of the link order, the first one first, as far as there is room for them, and the number of all. The caller frees the
 handles that were written. `order` may be null if `capacity` is 0.

 # Safety

 There is room for `capacity` pointers at `order`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_links(const BrolgaDylib *dylib,
                                BrolgaDylib **order,
                                size_t capacity,
                                size_t *count);

/*
 Opens a dylib, as `dlopen` does: initialisers (`brolga_definitions_add_initializer`) of the dylibs that it sees and its own run, dependences first, each once. If one throws, the
 dylib is not open.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_open(const BrolgaDylib *dylib);

/*
 Runs initialisers that have come since the dylib was opened.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_update(const BrolgaDylib *dylib);

/*
 Takes one opening back, as `dlclose` does: finalisers of dylibs that nothing open sees any more run. The error says that it is not open, or what
 finalisers threw; it is closed then.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_close(const BrolgaDylib *dylib);

/*
 Removes what has one of the names, all or none: functions by their names, if only one method has them, or by their symbols; C symbols, aliases, global variables and types.

 # Safety

 There are `count` texts that end in a zero byte at `names`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_remove_all(const BrolgaDylib *dylib,
                                     const char *const *names,
                                     size_t count);

/*
 Removes a function by its name, if only one method has it, or by its symbol; or what else has the name, as `brolga_dylib_remove_all`.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_remove(const BrolgaDylib *dylib,
                                 const char *name);

/*
 Removes everything from a dylib, which stays open. `dependants` is a `BrolgaDependants`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_clear(const BrolgaDylib *dylib,
                                uint32_t dependants);

/*
 Makes an engine with a run time of its own. `options` may be null for the defaults.
 */
BROLGA_CHECKED
BrolgaError *brolga_engine_new(const BrolgaOptions *options,
                               BrolgaEngine **engine);

/*
 Returns a handle of the engine's run time.
 */
BROLGA_CHECKED
BrolgaError *brolga_engine_runtime(const BrolgaEngine *engine,
                                   BrolgaRuntime **runtime);

/*
 Frees an engine. Its compiled code stays as long as there are handles to it. Null is nothing.
 */
void brolga_engine_free(BrolgaEngine *engine);

/*
 Reads and verifies a program in the text form, of `length` bytes. `name` is how messages call it.

 # Safety

 `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_program_read(const char *name,
                                 const char *text,
                                 size_t length,
                                 BrolgaProgram **program);

/*
 Frees a program. Null is nothing.
 */
void brolga_program_free(BrolgaProgram *program);

/*
 Compiles all functions of a program.
 */
BROLGA_CHECKED
BrolgaError *brolga_engine_compile(const BrolgaEngine *engine,
                                   const BrolgaProgram *program,
                                   BrolgaUnit **unit);

/*
 Returns a function of a unit by its name (`fib`), if only one method has it, or by its symbol (`fib(Int64)`).

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_unit_function(const BrolgaUnit *unit,
                                  const char *name,
                                  BrolgaFunction **function);

/*
 Frees a unit. Its code stays as long as there are handles to its functions. Null is nothing.
 */
void brolga_unit_free(BrolgaUnit *unit);

/*
 Returns the error that plain calls (`brolga_function_address`) and entries of images have kept for the calling thread since the last call of this function; null if there is none.
 The first error stays, but a plain call that returns a code replaces it by its own. The caller frees it.
 */
BROLGA_CHECKED
BrolgaError *brolga_take_error(void);

/*
 The code of an error; `BROLGA_CODE_OK` for null.
 */
BrolgaCode brolga_error_code(const BrolgaError *error);

/*
 The message of an error, valid as long as the error; an empty text for null.
 */
const char *brolga_error_message(const BrolgaError *error);

/*
 The type of the exception, such as `DivideError`, valid as long as the error; null for errors that are none.
 */
const char *brolga_error_exception(const BrolgaError *error);

/*
 The name of the program that an error is about, or the function that threw, valid as long as the error; null if there is none.
 */
const char *brolga_error_file(const BrolgaError *error);

/*
 The line in the program, from 1; 0 if it is not known.
 */
uint32_t brolga_error_line(const BrolgaError *error);

/*
 The column in the line, from 1; 0 if it is not known.
 */
uint32_t brolga_error_column(const BrolgaError *error);

/*
 Frees an error. Null is nothing.
 */
void brolga_error_free(BrolgaError *error);

/*
 Exports names of another dylib of the session as if they were this one's: programs of dylibs that are linked to this one see them, and its own do. `exports` is a `BrolgaExports`; `names`
 are of functions without types (`area`), of variables, types and C symbols.

 # Safety

 There are `count` texts that end in a zero byte at `names`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_reexport(const BrolgaDylib *dylib,
                                   const BrolgaDylib *other,
                                   uint32_t exports,
                                   const char *const *names,
                                   size_t count);

/*
 Ends all re-exports of another dylib. Programs that were defined before keep what they use.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_end_reexport(const BrolgaDylib *dylib,
                                       const BrolgaDylib *other);

/*
 Defines `name` to be the function `original` that another dylib of the session, or this one, sees: its methods have the code of the original's, also after redefinitions, and
 the same addresses for C. The name of a C symbol gets the address of another one.

 # Safety

 `name` and `original` are null or end in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_alias(const BrolgaDylib *dylib,
                                const char *name,
                                const BrolgaDylib *other,
                                const char *original);

/*
 Returns a field of a struct by its number, from 0; `nothing` for a field that is not set.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_field(const BrolgaObject *object,
                                 size_t index,
                                 BrolgaValue *value);

/*
 Calls a function, on the calling thread. `result` may be null if the result does not matter.

 # Safety

 There are `count` values at `args`, each with the member set that its kind says; objects among them are live handles.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_call(const BrolgaFunction *function,
                                  const BrolgaValue *args,
                                  size_t count,
                                  BrolgaValue *result);

/*
 Returns the symbol of a function with the type of its result, such as `fib(Int64)::Int64`. The caller frees the text with `brolga_text_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_signature(const BrolgaFunction *function,
                                       char **text);

/*
 Returns the address by which C calls a function of a session, with the C types of its arguments and result; it is the same for all handles and `cfunction`s of programs. It is valid as long as the session
 defines the function or this handle is there. A thread that C has made is attached to the session by its first call.

 An exception of the program passes to the compiled code that has called C, and ends the process if there is none: a function that may throw is called by `brolga_function_call`.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_c_address(const BrolgaFunction *function,
                                       void **address);

/*
 Frees a handle of a function. Its code goes when nothing else keeps it. Null is nothing.
 */
void brolga_function_free(BrolgaFunction *function);

/*
 Has `generate` asked for names that look-ups and code do not find in the dylib, before the search continues in the next one of the link order. `data` is handed to `generate`, and to `free`, if that
 is not null, when it is not called any more, also when this fails. The generator goes with the tracker of the handle, if that has one.

 # Safety

 `generate` and `free` are what `BrolgaGenerateFn` and `BrolgaFreeFn` say, may be called on any thread, and return: no exception of C++ and no `longjmp` leaves them.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_add_generator(const BrolgaDylib *dylib,
                                        BrolgaGenerateFn generate,
                                        void *data,
                                        BrolgaFreeFn free);

/*
 The number of names that are missing; 0 for null.
 */
size_t brolga_missing_count(const BrolgaMissing *missing);

/*
 A name that is missing, by its number from 0: a C symbol, or the symbol of a function with its types. It is valid until the answer; null if there are not as many.
 */
const char *brolga_missing_name(const BrolgaMissing *missing,
                                size_t index);

/*
 Defines a C symbol in the dylib that was searched, with an address. It may be one that is not missing, too: what is needed together can be defined together.

 # Safety

 As `brolga_dylib_define_c_symbol`.
 */
BROLGA_CHECKED
BrolgaError *brolga_missing_define(const BrolgaMissing *missing,
                                   const char *name,
                                   const void *address);

/*
 Answers: the look-ups continue with what was defined, and search the next dylibs for the rest. Frees `missing`. Null is nothing.
 */
void brolga_missing_done(BrolgaMissing *missing);

/*
 Answers: the look-ups fail with this error, which belongs to the library afterwards; null is an error without a message. Frees `missing`. Null is nothing.
 */
void brolga_missing_fail(BrolgaMissing *missing,
                         BrolgaError *error);

/*
 Defines a function of the host in a dylib. `header` is a function's header in the text form, without the word `function`:
 `stock(article::Int64, place::String)::Int64`. `data` is handed to `call`, and to `free`, if that is not null, when the function cannot be called any more, also
 when the definition fails.

 # Safety

 `header` is null or ends in a zero byte. `call` and `free` are what `BrolgaHostFn` and `BrolgaFreeFn` say, may be called on any thread, and
 return: no exception of C++ and no `longjmp` leaves them.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_define_host(const BrolgaDylib *dylib,
                                      const char *header,
                                      BrolgaHostFn call,
                                      void *data,
                                      BrolgaFreeFn free);

/*
 Defines a function of the host, and replaces the one of its name and types, which may be a function of a program. `notes` is as for `brolga_dylib_redefine`, all else as for
 `brolga_dylib_define_host`.

 # Safety

 As `brolga_dylib_define_host`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_redefine_host(const BrolgaDylib *dylib,
                                        const char *header,
                                        BrolgaHostFn call,
                                        void *data,
                                        BrolgaFreeFn free,
                                        char **notes);

/*
 Defines a function of the host by its own C type, which programs call with arguments in registers: `stock(article::Int64, price::Float64)::Float64` is
 `double stock(void *data, int64_t article, double price)`. Arguments and result are integers, floats, `Bool` (`bool`) and `Ptr` (a pointer); a result `Nothing` is `void`. All else is as for `brolga_dylib_define_host`.

 With `fails` the function returns a struct of the result and an error, `struct { double value; BrolgaError *error; }`, or `BrolgaError *` for a result `Nothing`. The error is null, or
 belongs to the library afterwards and is what the program catches as an `ErrorException`.

 # Safety

 `header` is null or ends in a zero byte. `function` has the type that the header says, keeps to it, may be called on any thread and by several at the same time, and
 returns: no exception of C++ and no `longjmp` leaves it. `free` is what `BrolgaFreeFn` says.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_define_plain_host(const BrolgaDylib *dylib,
                                            const char *header,
                                            BrolgaPlainFn function,
                                            bool fails,
                                            void *data,
                                            BrolgaFreeFn free);

/*
 As `brolga_dylib_define_plain_host`, and replaces the function of its name and types, as `brolga_dylib_redefine_host` does.

 # Safety

 As `brolga_dylib_define_plain_host`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_redefine_plain_host(const BrolgaDylib *dylib,
                                              const char *header,
                                              BrolgaPlainFn function,
                                              bool fails,
                                              void *data,
                                              BrolgaFreeFn free,
                                              char **notes);

/*
 Opens an image that `brolga image build` has written, from a file. It is machine code that runs with all rights of the process.

 # Safety

 `path` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_engine_open(const BrolgaEngine *engine,
                                const char *path,
                                BrolgaUnit **unit);

/*
 Opens the image whose exports these are; `LIBRARY_open` of its header calls this. `options` may be null for the defaults. An image that is open
 is unchanged; one that could not be opened is tried again.

 # Safety

 `exports` is null, or the exports of an image that the system's loader has put into memory.
 */
BROLGA_CHECKED
BrolgaError *brolga_exports_open(const void *exports,
                                 const BrolgaOptions *options);

/*
 Calls the exported function of this number; the entries of an image call this. The first error is kept for `brolga_exports_take_error`, and the
 result is 0.

 # Safety

 As `brolga_exports_open`. There are as many words at `args` as the function has arguments, and there is room for one at `result`.
 */
void brolga_exports_call(const void *exports,
                         size_t index,
                         const uint64_t *args,
                         uint64_t *result);

/*
 Returns the first error that entries of images had on the calling thread since the last call; null if there was none. The caller frees it.
 */
BROLGA_CHECKED
BrolgaError *brolga_exports_take_error(void);

/*
 Runs a program with the arguments of `main`, and returns the status of the process; the executables that `brolga image build --executable` makes
 call this. Without a call it runs `main()`, or `main(Vector{String})` with the arguments after the first, which names the program.

 # Safety

 `executable` is null, which is an error, or all that it refers to stays as it is until the process ends; its call is null or ends in a zero byte.
 There are `argc` texts at `argv`.
 */
int brolga_image_main(int argc,
                      const char *const *argv,
                      const BrolgaExecutable *executable);

/*
 No limits but that calls may be cancelled.
 */
BROLGA_CHECKED
BrolgaLimits *brolga_limits_new(void);

/*
 Frees limits, which no call has any more. Null is nothing.
 */
void brolga_limits_free(BrolgaLimits *limits);

/*
 How long each call may take, in nanoseconds from its beginning. 0 sets no limit.
 */
BROLGA_CHECKED
BrolgaError *brolga_limits_set_timeout(const BrolgaLimits *limits,
                                       uint64_t nanoseconds);

/*
 How much fuel the calls that begin from now on may take, all together. Programs take some where the options say so (`brolga_options_set_fuel`).
 */
BROLGA_CHECKED
BrolgaError *brolga_limits_set_fuel(const BrolgaLimits *limits,
                                    uint64_t units);

/*
 The fuel that is left; 0 if none was given.
 */
uint64_t brolga_limits_fuel_left(const BrolgaLimits *limits);

/*
 Ends all calls with these limits, those under way on any thread and those that begin before `brolga_limits_clear`. Null is nothing.
 */
void brolga_limits_cancel(const BrolgaLimits *limits);

/*
 Calls that begin from now on are not cancelled. Null is nothing.
 */
void brolga_limits_clear(const BrolgaLimits *limits);

/*
 As `brolga_function_call`, under limits: where one is reached, the call ends, whatever the program catches, and the error has the code `BROLGA_CODE_ENDED`. Null limits
 are none.

 # Safety

 There are `count` values at `args`, each with the member set that its kind says; objects among them are live handles.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_call_limited(const BrolgaFunction *function,
                                          const BrolgaLimits *limits,
                                          const BrolgaValue *args,
                                          size_t count,
                                          BrolgaValue *result);

/*
 Calls `body` with `data`, on this thread: all calls of functions of the run time in it, of every kind, are one call under limits. Where a limit is reached, the call that runs, and each
 call after it in `body`, is an error with the exception `InterruptException`, which programs do not catch; when `body` has returned, this function returns an error with the code `BROLGA_CODE_ENDED`. Null limits are none.

 # Safety

 `body` returns: no exception of C++ and no `longjmp` leaves it.
 */
BROLGA_CHECKED
BrolgaError *brolga_runtime_limited(const BrolgaRuntime *runtime,
                                    const BrolgaLimits *limits,
                                    BrolgaLimitedFn body,
                                    void *data);

/*
 Returns a function that the dylib sees, by its name (`fib`), if only one method has it, or by its symbol (`fib(Int64)`). Waits until it can be called, and
 compiles meanwhile.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_function(const BrolgaDylib *dylib,
                                   const char *name,
                                   BrolgaFunction **function);

/*
 Returns functions by their names, all or none, each as `brolga_dylib_function` finds it. They are compiled together, by several threads if the session has some.

 # Safety

 There are `count` texts that end in a zero byte at `names`, or it is null, and there is room for `count` pointers at `functions`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_functions(const BrolgaDylib *dylib,
                                    const char *const *names,
                                    size_t count,
                                    BrolgaFunction **functions);

/*
 Asks for a function, as `brolga_dylib_function`, without waiting for it. A name that is not found is an error of the wait. The caller frees the request with `brolga_request_free`.
 In a session without threads of its own the thread that waits compiles.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_request(const BrolgaDylib *dylib,
                                  const char *name,
                                  BrolgaRequest **request);

/*
 Whether a request has its answer, so that a wait is short. A request that was waited for, and null, have.
 */
bool brolga_request_is_done(const BrolgaRequest *request);

/*
 Waits for the function of a request, and compiles meanwhile. A second wait is an error.
 */
BROLGA_CHECKED
BrolgaError *brolga_request_wait(const BrolgaRequest *request,
                                 BrolgaFunction **function);

/*
 Frees a request. What it has begun continues; what it has queued, and nobody else waits for, is not begun. Null is nothing.
 */
void brolga_request_free(BrolgaRequest *request);

/*
 Asks for a function, as `brolga_dylib_function`, and has `answer` called with it, or with the error, once; not if this is an error itself. In a session without threads of its own that is done by
 this call, or on the thread that makes the last missing symbol. The session stays until the answer.

 # Safety

 `name` is null or ends in a zero byte. `answer` is what `BrolgaAnswerFn` says, may be called on any thread, and returns: no exception of C++ and no `longjmp` leaves it.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_request_then(const BrolgaDylib *dylib,
                                       const char *name,
                                       BrolgaAnswerFn answer,
                                       void *data);

/*
 Promises C symbols, all or none: `materialize` defines their addresses when one of them is first needed. `data` is handed to `materialize`, and to `free`, if that is not null, when it is not called
 any more, also when this fails. Needs open doors.

 # Safety

 There are `count` texts that end in a zero byte at `names`, or it is null. `materialize` and `free` are what `BrolgaMaterializeFn` and `BrolgaFreeFn` say, may be called on
 any thread, and return: no exception of C++ and no `longjmp` leaves them.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_promise_c_symbols(const BrolgaDylib *dylib,
                                            const char *const *names,
                                            size_t count,
                                            BrolgaMaterializeFn materialize,
                                            void *data,
                                            BrolgaFreeFn free);

/*
 The number of symbols of a responsibility when it was made; 0 for null.
 */
size_t brolga_responsibility_count(const BrolgaResponsibility *responsibility);

/*
 A symbol of a responsibility, by its number from 0; valid as long as that. Null if there are not as many.
 */
const char *brolga_responsibility_name(const BrolgaResponsibility *responsibility,
                                       size_t index);

/*
 Says whether a look-up waits for a symbol of a responsibility now.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_responsibility_is_requested(const BrolgaResponsibility *responsibility,
                                                const char *name,
                                                bool *is_requested);

/*
 Sets the address of a symbol. Symbols that need each other can be linked from then on; look-ups are answered when they are emitted.

 # Safety

 As `brolga_dylib_define_c_symbol`.
 */
BROLGA_CHECKED
BrolgaError *brolga_responsibility_resolve(const BrolgaResponsibility *responsibility,
                                           const char *name,
                                           const void *address);

/*
 Says that the symbols of a responsibility need a C symbol that their dylib sees: they are not ready before it is, fail if it fails, and are among its users when it is removed. It is
 looked up when they are emitted.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_responsibility_need(const BrolgaResponsibility *responsibility,
                                        const char *name);

/*
 Splits symbols off into a responsibility of their own.

 # Safety

 There are `count` texts that end in a zero byte at `names`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_responsibility_delegate(const BrolgaResponsibility *responsibility,
                                            const char *const *names,
                                            size_t count,
                                            BrolgaResponsibility **other);

/*
 Hands symbols back: `materialize` makes them, at once if a look-up waits for one of them, else at the next one. `data` and `free` are as for `brolga_dylib_promise_c_symbols`.

 # Safety

 As `brolga_dylib_promise_c_symbols`.
 */
BROLGA_CHECKED
BrolgaError *brolga_responsibility_hand_back(const BrolgaResponsibility *responsibility,
                                             const char *const *names,
                                             size_t count,
                                             BrolgaMaterializeFn materialize,
                                             void *data,
                                             BrolgaFreeFn free);

/*
 Ends a responsibility: its symbols, all of which have addresses, are ready when what they need is. If that cannot be, or one has no address, they fail. Frees `responsibility`.
 */
BROLGA_CHECKED
BrolgaError *brolga_responsibility_emit(BrolgaResponsibility *responsibility);

/*
 Ends a responsibility: its symbols fail with this error, which belongs to the library afterwards; null is an error without a message. Frees `responsibility`. Null is nothing.
 */
void brolga_responsibility_fail(BrolgaResponsibility *responsibility,
                                BrolgaError *error);

/*
 Begins a program for engines.
 */
BROLGA_CHECKED
BrolgaError *brolga_module_new(BrolgaModule **module);

/*
 Begins a program for a dylib, whose types it sees.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_module(const BrolgaDylib *dylib,
                                 BrolgaModule **module);

/*
 Frees a module. Its builders, and programs that were made of it, stay. Null is nothing.
 */
void brolga_module_free(BrolgaModule *module);

/*
 Declares a struct with `count` fields.

 # Safety

 `name` is null or ends in a zero byte; there are `count` texts that end in a zero byte at `fields`, and at `types`, or these are null.
 */
BROLGA_CHECKED
BrolgaError *brolga_module_struct(const BrolgaModule *module,
                                  const char *name,
                                  bool is_mutable,
                                  const char *const *fields,
                                  const char *const *types,
                                  size_t count);

/*
 Begins a function with `count` parameters. `names` may be null: then they have no names. Other functions of the module call it by `brolga_builder_invoke`, also before it is
 finished.

 # Safety

 `name` and `result` are null or end in a zero byte; there are `count` texts that end in a zero byte at `types`, and at `names`, or these are null.
 */
BROLGA_CHECKED
BrolgaError *brolga_module_function(const BrolgaModule *module,
                                    const char *name,
                                    const char *const *names,
                                    const char *const *types,
                                    size_t count,
                                    const char *result,
                                    BrolgaBuilder **builder);

/*
 Makes a program of the functions, verified. The module takes no more.
 */
BROLGA_CHECKED
BrolgaError *brolga_module_program(const BrolgaModule *module,
                                   BrolgaProgram **program);

/*
 Defines the functions in the dylib that the module is for, all or none. `mode` is a `BrolgaMode`. The module takes no more.
 */
BROLGA_CHECKED
BrolgaError *brolga_module_define(const BrolgaModule *module,
                                  uint32_t mode);

/*
 Makes a `Vector` of `length` numbers, which are copied at once. `kind` is the `BrolgaKind` of the numbers: of integers, floats and `Bool`, whose numbers are 0 and 1.

 # Safety

 There are `length` numbers of the kind at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_numbers(const BrolgaRuntime *runtime,
                                   uint32_t kind,
                                   const void *numbers,
                                   size_t length,
                                   BrolgaObject **object);

/*
 Copies the numbers of a `Vector` to `numbers` at once, as far as there is room for them, and returns its length. `kind` is as for `brolga_object_numbers`, and has
 to match the vector. `numbers` may be null if `capacity` is 0.

 # Safety

 There is room for `capacity` numbers of the kind at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_numbers(const BrolgaObject *object,
                                        uint32_t kind,
                                        void *numbers,
                                        size_t capacity,
                                        size_t *length);

/*
 Makes a `Vector` over `length` numbers of C, which are not copied: programs read and write them, and every access is checked against the length. They need no
 doors for it, and their loops are as fast as over other vectors. `kind` is the kind of the numbers: an integer or a float.

 The numbers belong to programs until `release` is called with `data`: once, on any thread, after the first collection that finds that nothing refers to the vector, or when the
 run time is freed, or before this function returns an error. To have them back early, free the handles and call `brolga_runtime_collect`. A program may keep the vector in an object or a variable; then `release`
 is not called. A program that makes the vector longer continues with a copy; one that removes elements at an end sets them to zero. The bytes do not count towards the limit of the heap. `release` may be null: then nothing tells when the numbers are free again.

 # Safety

 Until `release` is called there are `length` numbers at `numbers`, which may be written, or it is null and `length` is 0. C does not write them while a program may use them, and does not
 read them while a program may write them: not while a function that has the vector runs. Vectors over the same numbers are safe, but a program may see changes by the other late. `release` returns, and calls
 no function of this library.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_borrow(const BrolgaRuntime *runtime,
                                  uint32_t kind,
                                  void *numbers,
                                  size_t length,
                                  BrolgaFreeFn release,
                                  void *data,
                                  BrolgaObject **object);

/*
 As `brolga_object_numbers`, for `Float64`.

 # Safety

 There are `length` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_float64s(const BrolgaRuntime *runtime,
                                    const double *numbers,
                                    size_t length,
                                    BrolgaObject **object);

/*
 As `brolga_object_numbers`, for `Int64`.

 # Safety

 There are `length` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_int64s(const BrolgaRuntime *runtime,
                                  const int64_t *numbers,
                                  size_t length,
                                  BrolgaObject **object);

/*
 As `brolga_object_copy_numbers`, for `Float64`.

 # Safety

 There is room for `capacity` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_float64s(const BrolgaObject *object,
                                         double *numbers,
                                         size_t capacity,
                                         size_t *length);

/*
 As `brolga_object_copy_numbers`, for `Int64`.

 # Safety

 There is room for `capacity` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_int64s(const BrolgaObject *object,
                                       int64_t *numbers,
                                       size_t capacity,
                                       size_t *length);

/*
 Makes a `String` of `length` bytes.

 # Safety

 There are `length` bytes at `bytes`, or it is null; `runtime` and `object` are as for all functions of this library.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_string(const BrolgaRuntime *runtime,
                                  const char *bytes,
                                  size_t length,
                                  BrolgaObject **object);

/*
 Copies the bytes of a `String` or `Symbol` to `bytes` as far as there is room for them, and returns their number. No zero byte is added.
 `bytes` may be null if `capacity` is 0.

 # Safety

 There is room for `capacity` bytes at `bytes`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_string(const BrolgaObject *object,
                                       char *bytes,
                                       size_t capacity,
                                       size_t *length);

/*
 Returns the name of the object's type. The caller frees the text with `brolga_text_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_type(const BrolgaObject *object,
                                char **text);

/*
 Returns another handle to the same object: for a host function that returns one of its arguments, which are lent.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_clone(const BrolgaObject *object,
                                 BrolgaObject **clone);

/*
 Frees a handle; a later collection frees the object, if nothing else keeps it. Null is nothing.
 */
void brolga_object_free(BrolgaObject *object);

/*
 The defaults: programs without doors only, optimised at level 2, no limits except the machine's, printing to the standard output.
 */
BROLGA_CHECKED
BrolgaOptions *brolga_options_new(void);

/*
 Frees options. Null is nothing.
 */
void brolga_options_free(BrolgaOptions *options);

/*
 How much is optimised, from 0 to 3. 0 compiles in the fastest way.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_level(BrolgaOptions *options,
                                      uint32_t level);

/*
 How many bytes objects may take; an allocation beyond that throws `OutOfMemoryError`. 0 is the default: three quarters of the memory of
 the machine or the container.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_heap_limit(BrolgaOptions *options,
                                           size_t bytes);

/*
 How many bytes compiled code may take at one time. A session evicts code that was not called for long; what does not fit all the same is
 an error. 0 sets no limit.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_code_limit(BrolgaOptions *options,
                                           size_t bytes);

/*
 How many bytes compiling one function may take, as estimated from its size; a larger function is an error. 0 is the default: 2 GiB.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_compile_memory(BrolgaOptions *options,
                                               size_t bytes);

/*
 Whether programs take fuel in calls under limits: `brolga_limits_set_fuel`. How much a call takes depends on the program and its arguments alone.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_fuel(BrolgaOptions *options,
                                     bool fuel);

/*
 Whether the program's output is kept for `brolga_runtime_take_output` instead of written to the standard output.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_capture(BrolgaOptions *options,
                                        bool capture);

/*
 The processor that code is for, by name: `native` is this one and the default, `generic` any of its architecture; on x86-64 also `x86-64-v2`, `x86-64-v3`, `x86-64-v4`. Making an engine or a session for
 what this processor does not have is an error.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_cpu(BrolgaOptions *options,
                                    const char *name);

/*
 The processors that packages are built for, in Julia's syntax: `generic;x86-64-v3,-fma;x86-64-v4,clone_all`. The best one is chosen where a package is opened.

 # Safety

 `targets` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_set_image_targets(BrolgaOptions *options,
                                              const char *targets);

/*
 Takes programs that are not checked as well: with pointers, calls of C functions, low IR, and symbols of C that the host defines. Without this a program
 with such a door is refused, with the place of each.

 # Safety

 The host answers for what goes through the doors: addresses are valid for the accesses through them, C functions exist with the signatures that
 programs state and keep to them, indices whose check is turned off are in range.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_allow_doors(BrolgaOptions *options);

/*
 Begins a package of this name.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_build_new(const char *name,
                                      BrolgaPackageBuild **build);

/*
 Frees the settings of a package. Null is nothing.
 */
void brolga_package_build_free(BrolgaPackageBuild *build);

/*
 Adds a program in the text form, of `length` bytes, which sees those that were added before.

 # Safety

 `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_build_add_program(const BrolgaPackageBuild *build,
                                              const char *name,
                                              const char *text,
                                              size_t length);

/*
 Builds on another package, a file, which must be open wherever this one is opened.

 # Safety

 `path` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_build_add_need(const BrolgaPackageBuild *build,
                                           const char *path);

/*
 Builds against a program that will be there where the package is opened, defined lazily and inlinable (`brolga_definitions_set_inlinable`) in a dylib that its own sees. The package has no part of it.

 # Safety

 As `brolga_package_build_add_program`.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_build_add_against(const BrolgaPackageBuild *build,
                                              const char *name,
                                              const char *text,
                                              size_t length);

/*
 Includes code of both tiers: where the package is opened, functions are promoted after `calls` calls.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_build_set_tiered(const BrolgaPackageBuild *build,
                                             uint32_t calls);

/*
 Compiles with `threads` threads. The package is the same for any number.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_build_set_threads(const BrolgaPackageBuild *build,
                                              size_t threads);

/*
 Compiles the programs and writes the package to a file, at once: readers see the old file or the new one. `options` may be null for the defaults, which have closed doors.

 # Safety

 `path` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_build_write(const BrolgaPackageBuild *build,
                                        const BrolgaOptions *options,
                                        const char *path);

/*
 Opens a package from a file: defines its programs in the dylib, and finds their code in it from now on. The error says if it does not fit.

 # Safety

 `path` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_open_package(const BrolgaDylib *dylib,
                                       const char *path,
                                       BrolgaPackage **package);

/*
 Removes the functions of a package, and looks no more for code in it. `dependants` is a `BrolgaDependants`.
 */
BROLGA_CHECKED
BrolgaError *brolga_package_close(const BrolgaPackage *package,
                                  uint32_t dependants);

/*
 Frees a handle of a package, which stays open. Null is nothing.
 */
void brolga_package_free(BrolgaPackage *package);

/*
 Returns the address of a function, to be called as an ordinary function of C: `int64_t (*fib)(int64_t) = (int64_t (*)(int64_t))address;`. `params` and `result` are `BrolgaKind`s, which have
 to match the function, as written in the prototype: the types of the members of `BrolgaBits`, `void` for `BROLGA_KIND_NOTHING` as the result, and no
 argument for `BROLGA_KIND_NOTHING`. A function with a `Char` or an object has no such address.

 A call that throws returns 0, and keeps its error for the thread: look for it by `brolga_take_error` after the call, or after several. Nothing jumps over frames of C. The address may be called
 by any thread, and within host functions; the caller holds nothing but the function, which must not be freed while it is called. Each call reaches the newest definition, and limits around it apply
 (`brolga_runtime_limited`).

 # Safety

 There are `count` numbers at `params`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_address(const BrolgaFunction *function,
                                     const uint32_t *params,
                                     size_t count,
                                     uint32_t result,
                                     BrolgaPlainFn *address);

/*
 As `brolga_function_address`, of a function that returns a `BrolgaCode` as a `uint32_t`, and takes one argument more, a pointer to the result:
 `uint32_t (*fib)(int64_t, int64_t *)`. The result is written if the code is `BROLGA_CODE_OK` and the pointer is not null; otherwise `brolga_take_error` returns the error. If
 the result is `BROLGA_KIND_NOTHING`, pass null.

 # Safety

 There are `count` numbers at `params`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_code_address(const BrolgaFunction *function,
                                          const uint32_t *params,
                                          size_t count,
                                          uint32_t result,
                                          BrolgaPlainFn *address);

/*
 Calls a function of numbers with words, for callers that have its types at run time only. Each argument is in the low bytes of a word, at the address that the word has; the bytes above it do not matter,
 and neither does a word for `BROLGA_KIND_NOTHING`: there is none. The result is in the low bytes of the word at `result`, which may be null, and the bytes above it are 0. A `Bool` is 0 or 1. A `Char` is
 as the program has it: its UTF-8 bytes, from the highest byte of four on.

 # Safety

 There are as many words at `args` as the function has arguments, each with a value of its type.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_call_words(const BrolgaFunction *function,
                                        const uint64_t *args,
                                        uint64_t *result);

/*
 Promises functions, all or none: `make` makes their program when one of them is first needed. They are lazy. `headers` are as for `brolga_dylib_define_host`. `data` is handed to `make`, and to `free`,
 if that is not null, when it is not called any more, also when this fails.

 # Safety

 There are `count` texts that end in a zero byte at `headers`, or it is null. `make` and `free` are what `BrolgaMakeFn` and `BrolgaFreeFn` say, may be called on any thread, and
 return: no exception of C++ and no `longjmp` leaves them.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_promise(const BrolgaDylib *dylib,
                                  const char *const *headers,
                                  size_t count,
                                  BrolgaMakeFn make,
                                  void *data,
                                  BrolgaFreeFn free);

/*
 Supplies the program of promised functions, in the text form, of `length` bytes. It has them with their types, and may have more. The last program counts.

 # Safety

 `name` is null or ends in a zero byte; there are `length` bytes at `text`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_promised_keep(const BrolgaPromised *promised,
                                  const char *name,
                                  const char *text,
                                  size_t length);

/*
 The dylib in which the functions were promised, lent as long as `promised`; null for null.
 */
const BrolgaDylib *brolga_promised_dylib(const BrolgaPromised *promised);

/*
 Has `report` called with each failure that no look-up was waiting for when it happened. Later look-ups get the failure too. A reporter that was set before is replaced; null reports
 nothing. `data` is handed to `report`, and to `free`, if that is not null, when it is not called any more, also when this fails.

 # Safety

 `report` and `free` are what `BrolgaReportFn` and `BrolgaFreeFn` say, may be called on any thread, and return.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_report_failures(const BrolgaSession *session,
                                            BrolgaReportFn report,
                                            void *data,
                                            BrolgaFreeFn free);

/*
 Has `observe` called with what happens to symbols from now on. An observer that was set before is replaced; null hears nothing. `data` is handed to `observe`, and to `free`, if that is not null,
 when it is not called any more, also when this fails.

 # Safety

 `observe` and `free` are what `BrolgaObserveFn` and `BrolgaFreeFn` say, may be called on any thread, and return.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_observe(const BrolgaSession *session,
                                    BrolgaObserveFn observe,
                                    void *data,
                                    BrolgaFreeFn free);

/*
 Returns a text with all dylibs, their link orders, re-exports and symbols, how far each symbol has come, what it waits for and who uses it. It is for people: its form may change.
 The caller frees it with `brolga_text_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_dump(const BrolgaSession *session,
                                 char **text);

/*
 Frees a handle of a run time. Null is nothing.
 */
void brolga_runtime_free(BrolgaRuntime *runtime);

/*
 Returns the output that programs have written since the last time, if the options say that it is kept. The caller frees the text with `brolga_text_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_runtime_take_output(const BrolgaRuntime *runtime,
                                        char **text);

/*
 Runs a full collection.
 */
BROLGA_CHECKED
BrolgaError *brolga_runtime_collect(const BrolgaRuntime *runtime);

/*
 Makes an interrupt of the calling thread, which any thread may raise.
 */
BROLGA_CHECKED
BrolgaError *brolga_interrupt_new(const BrolgaRuntime *runtime,
                                  BrolgaInterrupt **interrupt);

/*
 Asks the thread to stop: compiled code on it throws `InterruptException` at its next loop or call. A request that arrives while the thread runs
 no compiled code is void. Null is nothing.
 */
void brolga_interrupt_raise(const BrolgaInterrupt *interrupt);

/*
 Frees an interrupt. Null is nothing.
 */
void brolga_interrupt_free(BrolgaInterrupt *interrupt);

/*
 Makes a session with a run time of its own. `options` may be null for the defaults. With 0 threads of its own the calling ones compile.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_new(const BrolgaOptions *options,
                                size_t threads,
                                BrolgaSession **session);

/*
 Returns a handle of the session's run time.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_runtime(const BrolgaSession *session,
                                    BrolgaRuntime **runtime);

/*
 Ends a session: finalisers run, and everything is removed. Functions that are not lazy can be called on. The error tells what finalisers threw.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_end(const BrolgaSession *session);

/*
 Frees a session, as if it had been ended, but for finalisers. Null is nothing.
 */
void brolga_session_free(BrolgaSession *session);

/*
 Makes a dylib whose programs see the C symbols of the process.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_dylib(const BrolgaSession *session,
                                  const char *name,
                                  BrolgaDylib **dylib);

/*
 Makes a dylib that has nothing. Its programs see the C symbols of the process only where a dylib of the link order has them (`brolga_dylib_add_process_symbols`).

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_empty_dylib(const BrolgaSession *session,
                                        const char *name,
                                        BrolgaDylib **dylib);

/*
 Returns another handle of the open dylib of this name. It is an error if there is none.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_find_dylib(const BrolgaSession *session,
                                       const char *name,
                                       BrolgaDylib **dylib);

/*
 Removes everything from dylibs and closes them, all or none: no operation on them works afterwards, and other dylibs see them no more. Finalisers do not run
 (`brolga_dylib_close`). `dependants` is a `BrolgaDependants`.

 # Safety

 There are `count` pointers at `dylibs`, or it is null; each is null or a handle.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_close_dylibs(const BrolgaSession *session,
                                         const BrolgaDylib *const *dylibs,
                                         size_t count,
                                         uint32_t dependants);

/*
 Lists the symbols that are defined in a dylib. Starts nothing. The caller frees the list with `brolga_symbols_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_symbols(const BrolgaDylib *dylib,
                                  BrolgaSymbols **symbols);

/*
 The number of symbols in a list; 0 for null.
 */
size_t brolga_symbols_count(const BrolgaSymbols *symbols);

/*
 Returns a symbol of a list by its number from 0.
 */
BROLGA_CHECKED
BrolgaError *brolga_symbols_get(const BrolgaSymbols *symbols,
                                size_t index,
                                BrolgaSymbol *symbol);

/*
 A symbol that the one of this number waits for, with its dylib, by its own number from 0; valid as long as the list. Null if there are not as many.
 */
const char *brolga_symbols_waits_for(const BrolgaSymbols *symbols,
                                     size_t index,
                                     size_t number);

/*
 A symbol that uses the one of this number, with its dylib, by its own number from 0; valid as long as the list. Null if there are not as many.
 */
const char *brolga_symbols_user(const BrolgaSymbols *symbols,
                                size_t index,
                                size_t number);

/*
 Frees a list of symbols. Null is nothing.
 */
void brolga_symbols_free(BrolgaSymbols *symbols);

/*
 An error of the caller's own, for functions that this library calls: a program that has called a host function sees an `ErrorException` with this message. The message
 is a text of `length` bytes.

 # Safety

 There are `length` bytes at `message`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_error_new(const char *message,
                              size_t length);

/*
 Frees a text that a function of this library has given to its caller. Null is nothing.

 # Safety

 `text` is null, or was given by this library and not freed since.
 */
void brolga_text_free(char *text);

/*
 Makes a tracker of a dylib. `on_free` is a `BrolgaOnFree`.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_tracker(const BrolgaDylib *dylib,
                                  uint32_t on_free,
                                  BrolgaTracker **tracker);

/*
 Returns a handle to the same dylib. What comes in through it belongs to the tracker: functions of programs and of the host, promises, global variables, types, C symbols,
 object files, libraries, archives, generators, aliases, re-exports. A tracker of another dylib is refused by what is defined.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_tracked_by(const BrolgaDylib *dylib,
                                     const BrolgaTracker *tracker,
                                     BrolgaDylib **tracked);

/*
 Removes what a tracker has, and the tracker. `dependants` is a `BrolgaDependants`. A second call is an error.
 */
BROLGA_CHECKED
BrolgaError *brolga_tracker_remove(const BrolgaTracker *tracker,
                                   uint32_t dependants);

/*
 Moves what a tracker has to another one of the same dylib, and removes the first. Nothing happens if they are the same.
 */
BROLGA_CHECKED
BrolgaError *brolga_tracker_transfer(const BrolgaTracker *tracker,
                                     const BrolgaTracker *to);

/*
 Frees a tracker. What becomes of its definitions was said when it was made. Null is nothing.
 */
void brolga_tracker_free(BrolgaTracker *tracker);

/*
 `nothing`.
 */
BrolgaValue brolga_nothing(void);

/*
 A `Bool`.
 */
BrolgaValue brolga_bool(bool value);

/*
 An `Int64`.
 */
BrolgaValue brolga_int64(int64_t value);

/*
 A `Float64`.
 */
BrolgaValue brolga_float64(double value);

/*
 An object as an argument, which is lent.
 */
BrolgaValue brolga_object(BrolgaObject *value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BROLGA_H */
