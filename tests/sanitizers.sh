#!/usr/bin/env bash
# Tests of the run time and of sessions under the address sanitizer: `tests/sanitizers.sh`, or `tests/sanitizers.sh address brolga-runtime --lib`
# for one package. Sanitizers are an unstable flag of rustc, which RUSTC_BOOTSTRAP lets a stable toolchain take. Builds go to target/address.
#
# What compiled code reads and writes is not looked at, because it is not instrumented; what Rust does with the same memory is.
#
# `tests/sanitizers.sh thread` builds the standard library as well (`-Zbuild-std`): by the active toolchain if it has rust-src, and otherwise by Debian's, with the
# run time of its clang (`apt-get install rustc-web cargo-web rust-web-src clang-19 libclang-rt-19-dev`). It does not know fences, so what the heap's handshake
# orders by them may be reported: `tests/thread_sanitizer.suppressions` lists such reports, each with its reason.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-address}
[ $# -eq 0 ] || shift
target=$(rustc -vV | sed -n 's/^host: //p')
flags="-Zsanitizer=$kind"
if [ "$kind" = thread ] && [ ! -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
    [ -d /usr/lib/rustlib/src/rust/library ] || { echo "no sources of the standard library; see the head of this script" >&2; exit 2; }
    export PATH=/usr/bin:$PATH RUSTC=/usr/bin/rustc
    flags+=" -Zexternal-clangrt -Clinker=clang-19 -Clink-arg=-fsanitize=thread"
fi
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags ${RUSTFLAGS-}" CARGO_INCREMENTAL=0
# Locals stay on the stack: the run time measures the stack by where they are. Every report ends the process with a status that no test has.
export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=${LEAKS:-1}:exitcode=77:${ASAN_OPTIONS-}" TSAN_OPTIONS="exitcode=77:suppressions=$PWD/tests/thread_sanitizer.suppressions:${TSAN_OPTIONS-}"
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
    for crate in brolga-instances brolga-linking brolga-runtime; do run "$crate" --lib --tests; done
    # The sanitizer keeps freed memory for a while, so resident memory says nothing.
    run brolga-jit --lib --tests -- --skip memory_of_code_comes_back
    run brolga --test session --test scoped --test facade --test objects --test routines
    printf '\n%s sanitizer: no report\n' "$kind"
fi
