#!/usr/bin/env bash
# Tests of the run time and of sessions under the address sanitizer: `tests/sanitizers.sh`, or `tests/sanitizers.sh address brolga-runtime --lib`
# for one package. Sanitizers are an unstable flag of rustc, which RUSTC_BOOTSTRAP lets a stable toolchain take. Builds go to target/address.
#
# What compiled code reads and writes is not looked at, because nobody instruments it; what Rust does with the same memory is.
# The thread sanitizer needs a standard library that is built with it (`-Zbuild-std`), and so a nightly toolchain with rust-src: `tests/sanitizers.sh thread` then.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-address}
[ $# -eq 0 ] || shift
target=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$kind ${RUSTFLAGS-}" CARGO_INCREMENTAL=0
# Locals stay on the stack: the run time measures the stack by where they are. Every report ends the process with a status that no test has.
export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=${LEAKS:-1}:exitcode=77:${ASAN_OPTIONS-}" TSAN_OPTIONS="exitcode=77:${TSAN_OPTIONS-}"
# What a process makes once is never freed.
export LSAN_OPTIONS="suppressions=$PWD/tests/sanitizers.suppressions:${LSAN_OPTIONS-}"
build=()
[ "$kind" = address ] || build=(-Zbuild-std)
run() {
    printf '\n$ cargo test -p %s\n' "$*"
    cargo test --target "$target" --target-dir "target/$kind" "${build[@]}" --no-fail-fast -p "$@"
}
if [ $# -gt 0 ]; then
    run "$@"
else
    for crate in brolga-instances brolga-linking brolga-runtime brolga-jit; do run "$crate" --lib --tests; done
    run brolga --test session --test scoped --test facade --test objects --test routines
    printf '\n%s sanitizer: no report\n' "$kind"
fi
