#!/usr/bin/env bash
# Libraries of C in sessions: zlib, lz4, SQLite and BLAKE3 as object files and as archives, compiled in each model. Each does what it does in a program of the
# system's linker, is called by programs of the IR, and is loaded and unloaded a thousand times.
#
#     tests/c_libraries.sh
#
# The sources come from crates.io, in the packages `libz-sys`, `lz4-sys`, `libsqlite3-sys` and `blake3`. Needs gcc, ar and cargo. `$OUT` keeps the sources and object files.
set -euo pipefail
cd "$(dirname "$0")/.."

OUT=$(realpath -m "${OUT:-${CARGO_TARGET_DIR:-target}/c_libraries}")
mkdir -p "$OUT/sources/src"
if [ ! -d "$OUT/sources/vendor" ]; then
    : >"$OUT/sources/src/lib.rs"
    printf '[package]\nname = "sources"\nversion = "0.0.0"\n[workspace]\n[dependencies]\nlibz-sys = "=1.1.31"\nlz4-sys = "=1.11.1"\nlibsqlite3-sys = "=0.30.1"\nblake3 = "=1.8.7"\n' \
        >"$OUT/sources/Cargo.toml"
    (cd "$OUT/sources" && cargo vendor --quiet >/dev/null)
fi
vendor=$OUT/sources/vendor

# A library: name, folder with its headers, options, and sources.
compile() {
    local name=$1 headers=$2 options=$3 model object
    shift 3
    for model in -fPIC -fPIE -fno-pic; do
        local folder=$OUT/objects/$name$model
        mkdir -p "$folder"
        for source in "$@" "tests/c_libraries/$name.c"; do
            # The check has the name of a source of its library.
            object=$folder/$(basename "$(dirname "$source")")-$(basename "$source").o
            # Options are words.
            # shellcheck disable=SC2086
            [ "$object" -nt "$source" ] || gcc -w -O2 "$model" $options -I"$headers" -c "$source" -o "$object"
        done
    done
}

zlib=$vendor/libz-sys/src/zlib
compile zlib "$zlib" "-DHAVE_UNISTD_H -DHAVE_STDARG_H" "$zlib"/{adler32,compress,crc32,deflate,gzclose,gzlib,gzread,gzwrite,infback,inffast,inflate,inftrees,trees,uncompr,zutil}.c
lz4=$vendor/lz4-sys/liblz4/lib
compile lz4 "$lz4" "" "$lz4"/{lz4,lz4hc,lz4frame,xxhash}.c
sqlite=$vendor/libsqlite3-sys/sqlite3
compile sqlite "$sqlite" "-DSQLITE_THREADSAFE=1 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE" "$sqlite/sqlite3.c"
blake3=$vendor/blake3/c
compile blake3 "$blake3" "" "$blake3"/{blake3,blake3_dispatch,blake3_portable}.c "$blake3"/blake3_{sse2,sse41,avx2,avx512}_x86-64_unix.S

C_LIBRARIES=$OUT/objects cargo test -p brolga --test c_libraries -- --ignored --nocapture
