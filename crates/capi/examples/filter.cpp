// A filter that is known at run time only, over columns of the host: the program that the filter becomes is compiled, and works on the columns where they are.
//
//     $ cargo build --release -p brolga-capi
//     $ g++ -std=c++17 -O2 -Icrates/capi/include crates/capi/examples/filter.cpp target/release/libbrolga_capi.a -lm -lpthread -ldl -o filter
//     $ ./filter              the result, beside that of the same loop in C++
//     $ ./filter 10000000     rows; also the time of each
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "brolga.h"

namespace {

struct Deleter {
    void operator()(BrolgaOptions *of) const { brolga_options_free(of); }
    void operator()(BrolgaEngine *of) const { brolga_engine_free(of); }
    void operator()(BrolgaRuntime *of) const { brolga_runtime_free(of); }
    void operator()(BrolgaProgram *of) const { brolga_program_free(of); }
    void operator()(BrolgaUnit *of) const { brolga_unit_free(of); }
    void operator()(BrolgaFunction *of) const { brolga_function_free(of); }
    void operator()(BrolgaObject *of) const { brolga_object_free(of); }
    void operator()(BrolgaError *of) const { brolga_error_free(of); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

// Throws the error of a call.
void check(BrolgaError *error) {
    if (error != nullptr) {
        const Owned<BrolgaError> owned(error);
        throw std::runtime_error(brolga_error_message(error));
    }
}

// The object that a call gives to its caller.
template <typename T, typename Call>
Owned<T> made(Call call) {
    T *made = nullptr;
    check(call(&made));
    return Owned<T>(made);
}

// A condition on a row, as a user has typed it: `price >= 100.0 && pieces < 24`.
struct Filter {
    std::string price_at_least;
    std::string pieces_below;

    // The program for it: the sum of price * pieces of the rows that pass.
    std::string program() const {
        return "function turnover(price::Vector{Float64}, pieces::Vector{Int64})::Float64\n"
               "1 ─ %1  = Base.arraylen(price)::Int64\n"
               "└──       goto #2\n"
               "2 ┄ %3  = φ (#1 => 1, #3 => %14)::Int64\n"
               "│   %4  = φ (#1 => 0.0, #3 => %13)::Float64\n"
               "│   %5  = Base.sle_int(%3, %1)::Bool\n"
               "└──       goto #4 if not %5\n"
               "3 ─ %6  = Base.arrayref(true, price, %3)::Float64\n"
               "│   %7  = Base.arrayref(true, pieces, %3)::Int64\n"
               "│   %8  = Base.le_float(" + price_at_least + ", %6)::Bool\n"
               "│   %9  = Base.slt_int(%7, " + pieces_below + ")::Bool\n"
               "│   %10 = Base.and_int(%8, %9)::Bool\n"
               "│   %15 = Base.sitofp(Float64, %7)::Float64\n"
               "│   %11 = Base.mul_float(%6, %15)::Float64\n"
               "│   %12 = Core.ifelse(%10, %11, 0.0)::Float64\n"
               "│   %13 = Base.add_float(%4, %12)::Float64\n"
               "│   %14 = Base.add_int(%3, 1)::Int64\n"
               "└──       goto #2\n"
               "4 ─       return %4\n"
               "end\n";
    }
};

// The same loop, for a filter that the C++ compiler sees.
double in_cpp(const std::vector<double> &price, const std::vector<int64_t> &pieces) {
    double sum = 0.0;
    for (std::size_t row = 0; row < price.size(); row++) {
        const bool passes = price[row] >= 100.0 && pieces[row] < 24;
        sum += passes ? price[row] * static_cast<double>(pieces[row]) : 0.0;
    }
    return sum;
}

// Lends a column to programs until the object is freed and a collection has seen it. The vector stays as it is meanwhile.
template <typename T>
Owned<BrolgaObject> lent(const BrolgaRuntime *runtime, std::vector<T> &column, uint32_t kind, bool &is_back) {
    const auto release = [](void *data) { *static_cast<bool *>(data) = true; };
    return made<BrolgaObject>([&](BrolgaObject **object) {
        return brolga_object_borrow(runtime, kind, column.data(), column.size(), release, &is_back, object);
    });
}

// The result, and the least time of fifteen runs, in nanoseconds for a row.
template <typename Run>
double measured(std::size_t rows, Run run, double &time) {
    double result = 0.0;
    time = 1e300;
    for (int round = 0; round < 15; round++) {
        const auto start = std::chrono::steady_clock::now();
        result = run();
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        time = std::min(time, took.count() / static_cast<double>(rows));
    }
    return result;
}

void run(std::size_t rows, bool shows_times) {
    std::vector<double> price(rows);
    std::vector<int64_t> pieces(rows);
    uint64_t random = 1;
    for (std::size_t row = 0; row < rows; row++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        price[row] = static_cast<double>(random >> 40 & 0xff) + 0.5;
        pieces[row] = static_cast<int64_t>(random >> 50 & 0x3f);
    }

    const Owned<BrolgaOptions> options(brolga_options_new());
    check(brolga_options_set_level(options.get(), 2));
    const auto engine = made<BrolgaEngine>([&](auto **place) { return brolga_engine_new(options.get(), place); });
    const auto runtime = made<BrolgaRuntime>([&](auto **place) { return brolga_engine_runtime(engine.get(), place); });
    const std::string text = Filter{"100.0", "24"}.program();
    const auto program = made<BrolgaProgram>(
        [&](auto **place) { return brolga_program_read("filter.jlir", text.data(), text.size(), place); });
    const auto unit =
        made<BrolgaUnit>([&](auto **place) { return brolga_engine_compile(engine.get(), program.get(), place); });
    const auto turnover =
        made<BrolgaFunction>([&](auto **place) { return brolga_unit_function(unit.get(), "turnover", place); });

    // The columns are read where they are: every access is checked, and the program needs no doors.
    bool price_is_back = false, pieces_are_back = false;
    auto prices = lent(runtime.get(), price, BROLGA_KIND_FLOAT64, price_is_back);
    auto counts = lent(runtime.get(), pieces, BROLGA_KIND_INT64, pieces_are_back);
    const auto filter = [&](BrolgaObject *price, BrolgaObject *pieces) {
        const BrolgaValue args[] = {brolga_object(price), brolga_object(pieces)};
        BrolgaValue value;
        check(brolga_function_call(turnover.get(), args, 2, &value));
        return value.bits.float64;
    };
    double lent_time = 0.0, cpp_time = 0.0;
    const double filtered = measured(rows, [&] { return filter(prices.get(), counts.get()); }, lent_time);
    const double expected = measured(rows, [&] { return in_cpp(price, pieces); }, cpp_time);
    std::printf("turnover: %.1f, %s\n", filtered, filtered == expected ? "as in C++" : "not as in C++");
    if (shows_times) {
        // The same over vectors in the heap, for comparison.
        const auto own = [&](const void *numbers, uint32_t kind) {
            return made<BrolgaObject>(
                [&](auto **place) { return brolga_object_numbers(runtime.get(), kind, numbers, rows, place); });
        };
        const auto own_prices = own(price.data(), BROLGA_KIND_FLOAT64), own_counts = own(pieces.data(), BROLGA_KIND_INT64);
        double own_time = 0.0;
        measured(rows, [&] { return filter(own_prices.get(), own_counts.get()); }, own_time);
        std::printf("nanoseconds a row: %.3f over the columns, %.3f over vectors of the heap, %.3f by g++\n", lent_time,
                    own_time, cpp_time);
    }

    // A column of another length: the access outside of it is an exception, and no memory is read.
    std::vector<int64_t> few(10);
    bool few_are_back = false;
    auto short_column = lent(runtime.get(), few, BROLGA_KIND_INT64, few_are_back);
    const BrolgaValue args[] = {brolga_object(prices.get()), brolga_object(short_column.get())};
    const Owned<BrolgaError> error(brolga_function_call(turnover.get(), args, 2, nullptr));
    std::printf("with a short column: %s\n", brolga_error_exception(error.get()));

    // The columns come back when nothing refers to them: after a collection, or with the engine.
    prices.reset();
    counts.reset();
    short_column.reset();
    check(brolga_runtime_collect(runtime.get()));
    std::printf("back: %s\n", price_is_back && pieces_are_back && few_are_back ? "yes" : "no");
}

}  // namespace

int main(int count, char **args) {
    try {
        run(count > 1 ? std::strtoull(args[1], nullptr, 10) : 100000, count > 1);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
    return 0;
}
