/* A filter over a column: an engine, a program in the text form, calls with numbers and with vectors.
 *
 *     $ cargo build --release -p brolga-capi
 *     $ cc -Icrates/capi/include crates/capi/examples/columns.c target/release/libbrolga_capi.a -lm -lpthread -ldl -o columns
 */
#include <stdio.h>
#include <string.h>

#include "brolga.h"

static const char *const PROGRAM =
    "function discounted(price::Float64, pieces::Int64)::Float64\n"
    "1 ─ %1 = Base.sitofp(Float64, pieces)::Float64\n"
    "│   %2 = Base.mul_float(price, %1)::Float64\n"
    "│   %3 = Base.slt_int(pieces, 10)::Bool\n"
    "└──      goto #3 if not %3\n"
    "2 ─      return %2\n"
    "3 ─ %6 = Base.mul_float(%2, 0.9)::Float64\n"
    "└──      return %6\n"
    "end\n"
    "function total(prices::Vector{Float64}, from::Float64)::Float64\n"
    "1 ─ %1  = Base.arraylen(prices)::Int64\n"
    "└──       goto #2\n"
    "2 ┄ %3  = φ (#1 => 1, #4 => %11)::Int64\n"
    "│   %4  = φ (#1 => 0.0, #4 => %10)::Float64\n"
    "│   %5  = Base.sle_int(%3, %1)::Bool\n"
    "└──       goto #5 if not %5\n"
    "3 ─ %7  = Base.arrayref(true, prices, %3)::Float64\n"
    "│   %8  = Base.le_float(from, %7)::Bool\n"
    "│   %9  = Core.ifelse(%8, %7, 0.0)::Float64\n"
    "4 ─ %10 = Base.add_float(%4, %9)::Float64\n"
    "│   %11 = Base.add_int(%3, 1)::Int64\n"
    "└──       goto #2\n"
    "5 ─       return %4\n"
    "end\n"
    "function inverse(n::Int64)::Int64\n"
    "1 ─ %1 = Base.checked_sdiv_int(1000, n)::Int64\n"
    "└──      return %1\n"
    "end\n";

/* Ends the program with an error that was not expected. */
static int failed(BrolgaError *error) {
    if (error == NULL) {
        return 0;
    }
    fprintf(stderr, "error %u: %s\n", (unsigned)brolga_error_code(error), brolga_error_message(error));
    brolga_error_free(error);
    return 1;
}

int main(void) {
    BrolgaOptions *options = brolga_options_new();
    BrolgaEngine *engine = NULL;
    BrolgaProgram *program = NULL;
    BrolgaUnit *unit = NULL;
    if (failed(brolga_options_set_level(options, 2)) || failed(brolga_engine_new(options, &engine)) ||
        failed(brolga_program_read("columns.jlir", PROGRAM, strlen(PROGRAM), &program)) ||
        failed(brolga_engine_compile(engine, program, &unit))) {
        return 1;
    }
    brolga_options_free(options);

    /* Numbers go in registers. The kinds of the arguments are compared with the types of the function. */
    BrolgaFunction *discounted = NULL;
    BrolgaValue value;
    if (failed(brolga_unit_function(unit, "discounted", &discounted))) {
        return 1;
    }
    const BrolgaValue order[] = {brolga_float64(2.5), brolga_int64(12)};
    if (failed(brolga_function_call(discounted, order, 2, &value))) {
        return 1;
    }
    printf("12 pieces at 2.50: %.2f\n", value.bits.float64);
    const BrolgaValue wrong[] = {brolga_int64(2), brolga_int64(12)};
    BrolgaError *error = brolga_function_call(discounted, wrong, 2, &value);
    printf("%s\n", brolga_error_message(error));
    brolga_error_free(error);

    /* Vectors are objects of the run time; a handle keeps one. */
    BrolgaRuntime *runtime = NULL;
    BrolgaObject *prices = NULL;
    BrolgaFunction *total = NULL;
    const double column[] = {9.5, 20.0, 3.25, 40.5};
    if (failed(brolga_engine_runtime(engine, &runtime)) ||
        failed(brolga_object_float64s(runtime, column, 4, &prices)) ||
        failed(brolga_unit_function(unit, "total", &total))) {
        return 1;
    }
    const BrolgaValue filter[] = {brolga_object(prices), brolga_float64(10.0)};
    if (failed(brolga_function_call(total, filter, 2, &value))) {
        return 1;
    }
    printf("prices from 10.00 on: %.2f\n", value.bits.float64);

    /* An exception of the program is an error with its type; a broken program is one with its place. */
    BrolgaFunction *inverse = NULL;
    if (failed(brolga_unit_function(unit, "inverse", &inverse))) {
        return 1;
    }
    const BrolgaValue zero[] = {brolga_int64(0)};
    error = brolga_function_call(inverse, zero, 1, &value);
    printf("%s in %s\n", brolga_error_exception(error), brolga_error_file(error));
    brolga_error_free(error);
    const char *const broken = "function f()::Int64\n1 ─      return 1.5\nend\n";
    BrolgaProgram *none = NULL;
    error = brolga_program_read("broken.jlir", broken, strlen(broken), &none);
    printf("%s:%u:%u\n", brolga_error_file(error), (unsigned)brolga_error_line(error),
           (unsigned)brolga_error_column(error));
    brolga_error_free(error);

    /* Handles may be freed in any order: functions keep their code. */
    brolga_engine_free(engine);
    brolga_program_free(program);
    brolga_unit_free(unit);
    brolga_object_free(prices);
    brolga_runtime_free(runtime);
    if (failed(brolga_function_call(discounted, order, 2, &value))) {
        return 1;
    }
    printf("and again: %.2f\n", value.bits.float64);
    brolga_function_free(discounted);
    brolga_function_free(total);
    brolga_function_free(inverse);
    return 0;
}
