/* The C API of Brolga, a compiler and run-time for language implementers.
 *
 * Generated from crates/capi by cbindgen (tests/capi_header.sh); do not edit.
 *
 * Every function that can fail returns a `BrolgaError`, which the caller frees; NULL is success, and then the outputs are written.
 * NULL as an argument is an error, or nothing. Handles are freed by the function that has their name, in any order.
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
 A C symbol in memory. What it is in stays in memory as long as the handle.
 */
typedef struct BrolgaCSymbol BrolgaCSymbol;

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
 A handle to an object, which keeps it.
 */
typedef struct BrolgaObject BrolgaObject;

/*
 Choices for an engine or a session. Made by `brolga_options_new`, freed by `brolga_options_free`; one may be used for several engines.
 */
typedef struct BrolgaOptions BrolgaOptions;

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
 Frees the data of a function of C when nothing can call the function any more.
 */
typedef void (*BrolgaFreeFn)(void *data);

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
 is unchanged.

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
 Runs the program of an image, of `length` bytes, by a call such as `main()`, and returns the status of the process; the executables that
 `brolga image build --executable` makes call this. The value of the call is printed if `shows` says so.

 # Safety

 There are `length` bytes at `image`, which stay as they are until the process ends; `call` ends in a zero byte. Either may be null, which is an error.
 */
int brolga_image_main(const uint8_t *image,
                      size_t length,
                      const char *call,
                      bool shows);

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
 Makes a `Vector{Float64}` of `length` numbers.

 # Safety

 There are `length` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_float64s(const BrolgaRuntime *runtime,
                                    const double *numbers,
                                    size_t length,
                                    BrolgaObject **object);

/*
 Makes a `Vector{Int64}` of `length` numbers.

 # Safety

 There are `length` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_int64s(const BrolgaRuntime *runtime,
                                  const int64_t *numbers,
                                  size_t length,
                                  BrolgaObject **object);

/*
 Copies a `Vector{Float64}` to `numbers` as far as there is room for it, and returns its length. `numbers` may be null if `capacity` is 0.

 # Safety

 There is room for `capacity` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_float64s(const BrolgaObject *object,
                                         double *numbers,
                                         size_t capacity,
                                         size_t *length);

/*
 Copies a `Vector{Int64}` to `numbers` as far as there is room for it, and returns its length. `numbers` may be null if `capacity` is 0.

 # Safety

 There is room for `capacity` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_int64s(const BrolgaObject *object,
                                       int64_t *numbers,
                                       size_t capacity,
                                       size_t *length);

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
 Takes programs that are not checked as well: with pointers, calls of C functions, low IR, and symbols of C that the host defines. Without this a program
 with such a door is refused, with the place of each.

 # Safety

 The host answers for what goes through the doors: addresses are valid for the accesses through them, C functions exist with the signatures that
 programs state and keep to them, indices whose check is turned off are in range.
 */
BROLGA_CHECKED
BrolgaError *brolga_options_allow_doors(BrolgaOptions *options);

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
