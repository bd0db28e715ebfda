#!/usr/bin/env bash
# Runs the fuzz targets of `fuzz/`: `tests/fuzz_night.sh` for an hour each, `tests/fuzz_night.sh 300 text sessions` for 300 seconds each of two.
# Builds them with coverage and the address sanitizer by a stable toolchain: RUSTC_BOOTSTRAP lets it take the flags. `$SANITIZER` is `none` for speed.
# Inputs that reached something new stay in fuzz/corpus, inputs that found something in fuzz/artifacts. Ends with 1 when anything was found.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-3600}
[ $# -eq 0 ] || shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(text checked binary object archive image sessions shapes)
target=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
[ "${SANITIZER-address}" = none ] || flags="$flags -Zsanitizer=address"
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags ${RUSTFLAGS-}" CARGO_INCREMENTAL=0
export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=0:${ASAN_OPTIONS-}"
bins=()
for name in "${targets[@]}"; do bins+=(--bin "$name"); done
cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target "$target" --target-dir target/fuzz "${bins[@]}"

# What inputs begin with: the examples, and what the command makes of them.
seeds=target/fuzz/seeds
if [ ! -d "$seeds" ]; then
    mkdir -p "$seeds"/{text,checked,binary,object,archive,image,sessions,shapes}
    env -u RUSTFLAGS -u RUSTC_BOOTSTRAP cargo build --quiet --bin brolga
    env -u RUSTFLAGS -u RUSTC_BOOTSTRAP cargo run --quiet -p brolga-fuzz --example seeds -- "$seeds"
    for file in examples/*.jlir tests/objects/*.jlir; do
        name=$(basename "$file" .jlir)
        cp "$file" "$seeds/text/$name"
        cp "$file" "$seeds/checked/$name"
        target/debug/brolga compile -O1 "$file" -o "$seeds/object/$name" 2>/dev/null || rm -f "$seeds/object/$name"
        target/debug/brolga image build "$file" -o "$seeds/image/$name" 2>/dev/null || rm -f "$seeds/image/$name"
    done
    printf 'int twice(int x) { return 2 * x; }\nstatic int kept = 3;\n__attribute__((weak)) int add(int x) { return kept += twice(x); }\n' >"$seeds/c.c"
    cc -O1 -fPIC -c "$seeds/c.c" -o "$seeds/object/c.o"
    ar rcs "$seeds/archive/c.a" "$seeds/object/c.o"
    rm "$seeds/c.c"
fi

# One line that shows how far a target is, if somebody looks: time, executions, coverage.
watch() {
    [ -t 2 ] || return 0
    local begun=$SECONDS
    while kill -0 "$1" 2>/dev/null; do
        # The last line of libFuzzer's output has all three numbers.
        local at
        at=$(tail -c 4096 "target/fuzz/$2.log" | grep -aoE '^#[0-9]+|cov: [0-9]+|exec/s: [0-9]+' | tail -n 3 | tr '\n' ' ' || true)
        printf '\r\033[K%s: %s of %s s  %s' "$2" $((SECONDS - begun)) "$seconds" "$at" >&2
        sleep 1
    done
    printf '\r\033[K' >&2
}
# The fuzzer that runs goes with the script.
trap 'trap - INT; [ -z "${fuzzer-}" ] || kill "$fuzzer" 2>/dev/null; exit 130' INT

status=0
for name in "${targets[@]}"; do
    mkdir -p "fuzz/corpus/$name" "fuzz/artifacts/$name"
    printf '\n== %s, %s s\n' "$name" "$seconds"
    "target/fuzz/$target/release/$name" "fuzz/corpus/$name" "$seeds/$name" -artifact_prefix="fuzz/artifacts/$name/" -max_total_time="$seconds" \
        -timeout=60 -rss_limit_mb=4096 -max_len=16384 -print_final_stats=1 -verbosity=1 >"target/fuzz/$name.log" 2>&1 &
    fuzzer=$!
    watch "$fuzzer" "$name"
    wait "$fuzzer" || status=1
    grep -E 'stat::number_of_executed_units|ERROR|panicked|Test unit written' "target/fuzz/$name.log" || true
done
exit $status
