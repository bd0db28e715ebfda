#!/usr/bin/env bash
# Features of C and C++ (`tests/c_features/`) on aarch64, under qemu-user: object files of a cross compiler in sessions, compared with programs of its linker.
#
#     tests/c_features_aarch64.sh
#
# Needs gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu for the files of C++, qemu-user, and what `tests/aarch64.sh` needs. Files with assembly or options of x86-64 are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

OUT=$(realpath -m "${OUT:-${CARGO_TARGET_DIR:-target}/c_features_aarch64}")
rm -rf "$OUT"
mkdir -p "$OUT/prepared"
export QEMU_LD_PREFIX=${QEMU_LD_PREFIX:-/usr/aarch64-linux-gnu}
printf '#include <stdio.h>\nlong feature(void);\nint main(void) { printf("%%ld\\n", feature()); return 0; }\n' >"$OUT/main.c"
aarch64-linux-gnu-gcc -c -fPIC "$OUT/main.c" -o "$OUT/main.o"

for file in tests/c_features/*; do
    name=$(basename "$file")
    if grep -qE 'asm|-mcmodel|cf-protection|not-linked|unresolved|value:' "$file"; then continue; fi
    compiler=aarch64-linux-gnu-gcc
    [[ $name == *.cpp ]] && compiler=aarch64-linux-gnu-g++
    command -v "$compiler" >/dev/null || continue
    # Descriptors are the default here.
    flags=$(sed -n 's,^// flags: ,,p' "$file" | sed 's/-mtls-dialect=gnu2//')
    dialects=desc
    [[ $name == *tls* || $name == *thread_local* ]] && dialects="desc trad"
    for model in -fPIC -fPIE -fno-pic; do
        # What is refused on x86-64 has reasons that differ here.
        if grep -E '^// refused' "$file" | grep -q -- "$model"; then continue; fi
        # Room in the blocks of threads takes a file in memory, which the emulation has not.
        if [[ $name == *tls* || $name == *thread_local* ]] && [ "$model" != -fPIC ] || [[ $name == tls_initial* ]]; then continue; fi
        for level in -O0 -O2; do for dialect in $dialects; do
            folder=$OUT/prepared/$name$model$level-$dialect
            mkdir -p "$folder"
            awk -v folder="$folder" -v first="$folder/$name" 'BEGIN { out = first } /^\/\/\/\/ / { out = folder "/" $2; next } { print > out }' "$file"
            for source in "$folder"/*.c*; do
                # Functions for atomic operations are hidden in the compiler's archive. Options are words.
                # shellcheck disable=SC2086
                "$compiler" -w "$model" "$level" -mtls-dialect=$dialect -mno-outline-atomics $flags -c "$source" -o "$source.o"
            done
            kind=-pie
            [ "$model" = -fno-pic ] && kind=-no-pie
            "$compiler" "$kind" -w "$folder"/*.o "$OUT/main.o" -o "$OUT/program" -lm -lpthread
            qemu-aarch64 "$OUT/program" >"$folder/wanted"
        done; done
    done
done

C_FEATURES_PREPARED=$OUT/prepared tests/aarch64.sh test -p brolga --test c_features -- --ignored --nocapture
