#!/usr/bin/env bash
# Runs the C examples of crates/capi, and the C programs of its tests, under valgrind: no invalid access, no use of unset bytes, nothing lost. Skips, and says so, where there is no valgrind.
#
#     $ tests/capi_valgrind.sh
#
# `--smc-check=all`: code memory is written through a second mapping, which valgrind does not see otherwise. Possibly lost blocks do not count: tables of Rust's
# statics are referred to by pointers into their middle.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v valgrind > /dev/null; then
    echo 'skipped: there is no valgrind'
    exit 0
fi
cargo build --quiet -p brolga-capi
target=${CARGO_TARGET_DIR:-target}/debug
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
# What the compiler has made of code without `unsafe`: padding, or the payload of an enum before its tag, is read, and its content does not count. In
# `classes`, the loop over an instruction's results exists once for each outcome of the tests of the operation's payload (loop unswitching), so the payload byte of
# an operation without one is read and tested before the loop; each copy of the loop tests the tag, and without a payload all of them do the same.
cat > "$made/suppressions" << 'END'
{
   padding
   Memcheck:Cond
   fun:*import_into*
}
{
   padding-in-an-optimised-build
   Memcheck:Cond
   fun:*imports*Importer*import*
}
{
   payload-before-tag
   Memcheck:Cond
   fun:*gcroots*check*classes*
}
END

# Builds a program of this source.
build() {
    local compiler=(cc -std=c11)
    if [[ $1 == *.cpp ]]; then compiler=(c++ -std=c++17); fi
    "${compiler[@]}" -g -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -Icrates/capi/include "$1" "$target/libbrolga_capi.a" \
        -lm -lpthread -ldl -o "$made/$(basename "${1%.*}")"
}

# Runs a program with arguments.
check() {
    local name=$1
    shift
    valgrind --quiet --suppressions="$made/suppressions" --smc-check=all --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --error-exitcode=9 "$made/$name" "$@" > "$made/$name.out"
}

for source in crates/capi/examples/*.c crates/capi/examples/*.cpp; do
    name=$(basename "${source%.*}")
    build "$source"
    check "$name"
    diff -u "crates/capi/examples/$name.out" "$made/$name.out"
    echo "$name: clean"
done
cc -O1 -c crates/capi/tests/object.c -o "$made/object.o"
build crates/capi/tests/day.c
check day "$made/object.o"
diff -u crates/capi/tests/day.out "$made/day.out"
echo 'day: clean'
build crates/capi/tests/orc.c
build crates/capi/tests/demand.c
for row in orc/k{01..11} orc/names demand/k12 demand/k13 demand/waits; do
    check "${row%/*}" "${row#*/}" "$made/object.o"
    echo "$row: clean"
done
