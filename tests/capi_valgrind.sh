#!/usr/bin/env bash
# Runs the C examples of crates/capi under valgrind: no invalid access, no use of unset bytes, nothing lost. Skips, and says so, where there is no valgrind.
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
for source in crates/capi/examples/*.c; do
    name=$(basename "$source" .c)
    cc -g -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -Icrates/capi/include "$source" "$target/libbrolga_capi.a" \
        -lm -lpthread -ldl -o "$made/$name"
    valgrind --quiet --smc-check=all --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect --error-exitcode=9 "$made/$name" > "$made/$name.out"
    diff -u "crates/capi/examples/$name.out" "$made/$name.out"
    echo "$name: clean"
done
