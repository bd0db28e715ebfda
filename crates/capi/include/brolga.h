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
 The run time of an engine or a session: the heap with its objects, and the output. Each handle keeps it.
 */
typedef struct BrolgaRuntime BrolgaRuntime;

/*
 Programs that call each other's functions.
 */
typedef struct BrolgaSession BrolgaSession;

/*
 Compiled functions of one program.
 */
typedef struct BrolgaUnit BrolgaUnit;

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
 A C function that programs call. It gets what was given at its definition, and the arguments; objects among these are lent for the call. It sets `result`, which
 is `nothing` before, and returns null; or it returns an error, which the program catches as an `ErrorException`. An object in `result`, and an
 error, belong to the library afterwards (`brolga_object_clone` makes a handle to give away). Several threads may call it at the same time.
 */
typedef BrolgaError *(*BrolgaHostFn)(void *data,
                                     const BrolgaValue *args,
                                     size_t count,
                                     BrolgaValue *result);

/*
 Frees what was given at the definition of a host function, when nothing can call that any more.
 */
typedef void (*BrolgaFreeFn)(void *data);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes an engine with a run time of its own. `options` may be null for the defaults.
 */
BROLGA_CHECKED
BrolgaError *brolga_engine_new(const BrolgaOptions *options,
                               BrolgaEngine **engine);

/*
 Gives a handle of the engine's run time.
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
 Gives a function of a unit by its name (`fib`), if only one method has it, or by its symbol (`fib(Int64)`).

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
 Gives a field of a struct by its number, from 0. A field that is not set gives `nothing`.
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
 Gives the symbol of a function with the type of its result, such as `fib(Int64)::Int64`. The caller frees the text with `brolga_text_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_function_signature(const BrolgaFunction *function,
                                       char **text);

/*
 Frees a handle of a function. Its code goes when nothing else keeps it. Null is nothing.
 */
void brolga_function_free(BrolgaFunction *function);

/*
 Defines a function of the host in a dylib. `header` is that of a function in the text form, without the word `function`:
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
 Gives the first error that entries of images had on the calling thread since this was asked last; null if there was none. The caller frees it.
 */
BROLGA_CHECKED
BrolgaError *brolga_exports_take_error(void);

/*
 Runs the program of an image, of `length` bytes, by a call such as `main()`, and gives the status of the process; the executables that
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
 How long each call may take, in nanoseconds from its beginning. 0 is no limit.
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
 Copies a `Vector{Float64}` to `numbers` as far as there is room for it, and gives its length. `numbers` may be null if `capacity` is 0.

 # Safety

 There is room for `capacity` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_float64s(const BrolgaObject *object,
                                         double *numbers,
                                         size_t capacity,
                                         size_t *length);

/*
 Copies a `Vector{Int64}` to `numbers` as far as there is room for it, and gives its length. `numbers` may be null if `capacity` is 0.

 # Safety

 There is room for `capacity` numbers at `numbers`, or it is null.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_copy_int64s(const BrolgaObject *object,
                                       int64_t *numbers,
                                       size_t capacity,
                                       size_t *length);

/*
 Copies the bytes of a `String` or `Symbol` to `bytes` as far as there is room for them, and gives their number. No zero byte is added.
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
 Gives the name of the object's type. The caller frees the text with `brolga_text_free`.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_type(const BrolgaObject *object,
                                char **text);

/*
 Gives another handle to the same object: for a host function that returns one of its arguments, which are lent.
 */
BROLGA_CHECKED
BrolgaError *brolga_object_clone(const BrolgaObject *object,
                                 BrolgaObject **clone);

/*
 Frees a handle; a later collection frees the object, if nothing else keeps it. Null is nothing.
 */
void brolga_object_free(BrolgaObject *object);

/*
 The defaults: programs without doors only, optimised at level 2, no limits but those of the machine, printing to the standard output.
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
 an error. 0 is no limit.
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
 Frees a handle of a run time. Null is nothing.
 */
void brolga_runtime_free(BrolgaRuntime *runtime);

/*
 Gives the output that programs have written since the last time, if the options say that it is kept. The caller frees the text with `brolga_text_free`.
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
 Gives a handle of the session's run time.
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
 Makes a dylib.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_session_dylib(const BrolgaSession *session,
                                  const char *name,
                                  BrolgaDylib **dylib);

/*
 Frees a handle of a dylib, which stays open. Null is nothing.
 */
void brolga_dylib_free(BrolgaDylib *dylib);

/*
 Lets a dylib see the functions of another one of its session.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_link(const BrolgaDylib *dylib,
                               const BrolgaDylib *other);

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
 Removes a function by its name, if only one method has it, or by its symbol.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_remove(const BrolgaDylib *dylib,
                                 const char *name);

/*
 Gives a function that the dylib sees, by its name (`fib`), if only one method has it, or by its symbol (`fib(Int64)`). Waits until it can be called, and
 compiles meanwhile.

 # Safety

 `name` is null or ends in a zero byte.
 */
BROLGA_CHECKED
BrolgaError *brolga_dylib_function(const BrolgaDylib *dylib,
                                   const char *name,
                                   BrolgaFunction **function);

/*
 An error of the caller's own, for host functions: the program that has called sees an `ErrorException` with this message. The message
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
