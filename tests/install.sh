#!/usr/bin/env bash
# The library for C as a distributor packages it: installed stripped into a scratch prefix that is then moved, found by pkg-config and by CMake, used by a C
# and a C++ program from there, shared and static; and an image that `strip` has been over. Needs pkg-config and cmake; prints the sizes.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

PREFIX=/usr LIBDIR=lib/scratch DESTDIR=$work/package crates/capi/packaging/install --strip --command
# The place where it was made is gone.
mv "$work/package/usr" "$work/prefix"
prefix=$work/prefix lib=$work/prefix/lib/scratch
export PKG_CONFIG_PATH=$lib/pkgconfig
expect() {
    local made
    made=$("${@:2}") || { echo "failed: ${*:2}" >&2; exit 1; }
    [ "$made" = "$1" ] || { printf 'of %s: %s\n' "${*:2}" "$made" >&2; exit 1; }
}

echo '1. C, by pkg-config'
example=crates/capi/examples/rules
# shellcheck disable=SC2046
cc -std=c11 -D_POSIX_C_SOURCE=200809L $example.c $(pkg-config --cflags --libs brolga) -o "$work/shared"
expect "$(cat $example.out)" env LD_LIBRARY_PATH="$lib" "$work/shared"
# The name that the program was linked with has the version of the API.
readelf -d "$work/shared" | grep -q 'NEEDED.*libbrolga_capi\.so\.[0-9]'
# shellcheck disable=SC2046
cc -std=c11 -D_POSIX_C_SOURCE=200809L $example.c $(pkg-config --cflags brolga) "$lib/libbrolga_capi.a" \
    $(pkg-config --libs-only-l --static brolga | sed 's/-lbrolga_capi//') -Wl,--gc-sections -s -o "$work/static"
expect "$(cat $example.out)" "$work/static"

echo '2. C++, by CMake'
mkdir "$work/app"
cat >"$work/app/main.cpp" <<'EOF'
#include "brolga.h"
#include <cstdio>
#include <cstring>

int main() {
    const char *text = "function twice(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, n)::Int64\n└──      return %1\nend\n";
    BrolgaEngine *engine = nullptr;
    BrolgaProgram *program = nullptr;
    BrolgaUnit *unit = nullptr;
    BrolgaFunction *twice = nullptr;
    BrolgaError *error = brolga_engine_new(nullptr, &engine);
    if (error == nullptr) error = brolga_program_read("twice.jlir", text, std::strlen(text), &program);
    if (error == nullptr) error = brolga_engine_compile(engine, program, &unit);
    if (error == nullptr) error = brolga_unit_function(unit, "twice", &twice);
    const BrolgaValue args[] = {brolga_int64(21)};
    BrolgaValue result;
    if (error == nullptr) error = brolga_function_call(twice, args, 1, &result);
    if (error != nullptr) {
        std::fprintf(stderr, "%s\n", brolga_error_message(error));
        return 1;
    }
    std::printf("%lld\n", static_cast<long long>(result.bits.int64));
    brolga_function_free(twice);
    brolga_unit_free(unit);
    brolga_program_free(program);
    brolga_engine_free(engine);
}
EOF
cat >"$work/app/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(app CXX)
find_package(brolga 0.1 REQUIRED)
add_executable(shared main.cpp)
target_link_libraries(shared brolga::brolga)
add_executable(static main.cpp)
target_link_libraries(static brolga::static)
EOF
cmake -S "$work/app" -B "$work/made" -DCMAKE_PREFIX_PATH="$prefix" -Dbrolga_DIR="$lib/cmake/brolga" >"$work/log"
cmake --build "$work/made" >>"$work/log"
expect 42 "$work/made/shared"
expect 42 "$work/made/static"
# A program for another version of the API is refused when it is configured.
sed -i 's/find_package(brolga 0.1/find_package(brolga 0.2/' "$work/app/CMakeLists.txt"
if cmake -S "$work/app" -B "$work/other" -Dbrolga_DIR="$lib/cmake/brolga" >"$work/log" 2>&1; then
    echo 'another version was accepted' >&2
    exit 1
fi

echo '3. a stripped image'
brolga=$prefix/bin/brolga
"$brolga" image build examples/fib.jlir -o "$work/fib.so"
cp "$work/fib.so" "$work/stripped.so"
strip "$work/stripped.so"
expect 6765 "$brolga" run --image "$work/fib.so" --call 'fib(20)'
expect 6765 "$brolga" run --image "$work/stripped.so" --call 'fib(20)'
[ "$(stat -c %s "$work/stripped.so")" -lt "$(stat -c %s "$work/fib.so")" ]

echo '4. sizes in bytes'
for file in "$lib"/libbrolga_capi.a "$lib"/libbrolga_capi.so.*.*.* "$prefix/bin/brolga" "$work/static" "$work/shared" "$work/fib.so" "$work/stripped.so"; do
    printf '%12d  %s\n' "$(stat -Lc %s "$file")" "$(basename "$file")"
done
echo 'all right'
