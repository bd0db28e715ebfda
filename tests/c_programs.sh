#!/usr/bin/env bash
# C programs through the IR, each compared with what gcc makes of it: `c2jlir` translates what clang says, and Brolga runs it at `O0` to `O3` and in
# the interpreter.
#
#     tests/c_programs.sh csmith 1000            random programs, with seeds from 1 (or from the third argument); checksums
#     tests/c_programs.sh torture FOLDER [n]     every n-th program of gcc.c-torture/execute; they abort when they are wrong
#     tests/c_programs.sh sqlite                 15 statements of SQLite: what they print, how long they take beside gcc, and what compiling costs by stage
#                                                beside clang; in the interpreter with a hundredth of the rows, and a system without files
#     tests/c_programs.sh lzbz                   lz4 and bzip2 there and back: sizes and digests of what is between
#
# Needs clang-19, llvm-19, csmith and libcsmith-dev of Debian, gcc, python3 and `c2jlir` (a folder beside the checkout, or in $C2JLIR); the sources of SQLite,
# lz4 and bzip2 come from crates.io. `$BROLGA` is the command to test, `$LEVELS` the engines; programs that differ stay in `$OUT`. Ends with 1 when anything differs.
set -euo pipefail
cd "$(dirname "$0")/.."

c2jlir=$(realpath "${C2JLIR:-../shared/c2jlir}")
OUT=$(realpath -m "${OUT:-target/c_programs}")
export OUT
read -ra levels <<<"${LEVELS:--O0 -O1 -O2 -O3 --interp}"
mkdir -p "$OUT"
for tool in clang-19 opt-19 gcc python3; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed" >&2; exit 2; }
done
[ -e "$c2jlir/c2jlir.sh" ] || { echo "$c2jlir has no c2jlir.sh" >&2; exit 2; }
if [ -z "${BROLGA-}" ]; then
    cargo build --release --quiet --bin brolga
    BROLGA=$PWD/target/release/brolga
fi

# A crate's folder, unpacked by cargo.
source_of() {
    local crate=$1 version=$2
    if [ ! -d "$OUT/sources/vendor/$crate" ]; then
        mkdir -p "$OUT/sources/src"
        : >"$OUT/sources/src/lib.rs"
        printf '[package]\nname = "sources"\nversion = "0.0.0"\n[workspace]\n[dependencies]\nlibsqlite3-sys = "=0.30.1"\nlz4-sys = "=1.11.1"\nbzip2-sys = "=0.1.13"\n' \
            >"$OUT/sources/Cargo.toml"
        (cd "$OUT/sources" && cargo vendor --quiet >/dev/null)
    fi
    [ -d "$OUT/sources/vendor/$crate" ] || { echo "cargo has no $crate $version" >&2; exit 2; }
    echo "$OUT/sources/vendor/$crate"
}

# What a program's statements took, and those of gcc's program, if they write seconds on their lines.
times() {
    awk '$2 == "s" { sum[FILENAME] += $1 } END { if (sum[ARGV[1]]) printf ", %.3f s, by gcc %.3f s", sum[ARGV[1]], sum[ARGV[2]] }' "$1" "$2"
}

# Translates $1.c and compares what it prints at each level with what gcc's program prints; the rest are options of clang.
whole() {
    local name=$1 status=0
    shift
    gcc -O2 -w "$@" "$OUT/$name.c" -o "$OUT/$name.exe" -lm
    (cd "$OUT" && ./"$name.exe" >"$name.want" 2>"$name.gcc-times")
    "$c2jlir/c2jlir.sh" "$OUT/$name.c" "$OUT/$name.jlir" --align 1 --fnptr "${FNPTR:-cfunction}" -- -w "$@" || true
    for level in "${levels[@]}"; do
        if (cd "$OUT" && timeout "${LIMIT:-1200}" "$BROLGA" run "$name.jlir" "$level" >"$name$level.out" 2>"$name$level.err") \
            && cmp -s "$OUT/$name$level.out" "$OUT/$name.want"; then
            echo "$name $level: as gcc, $(wc -l <"$OUT/$name.want") lines$(times "$OUT/$name$level.err" "$OUT/$name.gcc-times")"
        else
            echo "$name $level: DIFFERS: $OUT/$name$level.out, .err"
            status=1
        fi
    done
    return $status
}

# Does the rest at all levels but in the interpreter, which has no files.
natively() {
    local all=("${levels[@]}") status=0
    levels=()
    for level in "${all[@]}"; do [ "$level" = --interp ] || levels+=("$level"); done
    "$@" || status=1
    levels=("${all[@]}")
    return $status
}

# Seconds of compiling the translated program, and of clang with the same source.
costs() {
    local name=$1
    shift
    for level in -O0 -O2; do
        echo "== clang $level"
        clang-19 "$level" -w -ftime-report "$@" -c "$OUT/$name.c" -o /dev/null 2>&1 | grep -E 'Front end|Backend|Optimizer|Total|Machine code|Code Generation' || true
        bash -c "time clang-19 $level -w $* -c $OUT/$name.c -o /dev/null" 2>&1 | grep -E 'real|user'
        echo "== brolga $level"
        bash -c "time $BROLGA compile --time-passes --emit vcode $level $OUT/$name.jlir -o /dev/null" 2>&1 || true
    done
}

case "${1-}" in
csmith)
    command -v csmith >/dev/null || { echo "csmith is not installed" >&2; exit 2; }
    first=${3:-1}
    LEVELS="${levels[*]}" python3 "$c2jlir/csmith_run.py" "$BROLGA" "$first" $((first + ${2:-100})) | tee "$OUT/csmith.log"
    grep -q '"programs": [1-9]' "$OUT/csmith.log" && ! grep -q ' BAD ' "$OUT/csmith.log"
    ;;
torture)
    STRIDE=${3:-1} python3 "$c2jlir/torture.py" "$BROLGA" "${2:?the folder gcc.c-torture/execute}" "${levels[@]}" | tee "$OUT/torture.log"
    ! grep -q "'bad " "$OUT/torture.log"
    ;;
sqlite)
    source=$(source_of libsqlite3-sys 0.30.1)
    sed 's/long double/double/g; s/\b\([0-9.]\+\(e[-+]\?[0-9]\+\)\?\)L\b/\1/g' "$source/sqlite3/sqlite3.c" >"$OUT/sqlite3.c"
    # A blob of random bytes has one byte at least, which differs from run to run.
    sed 's/randomblob(0)/zeroblob(2)/' "$c2jlir/sq.c" >"$OUT/sq.c"
    sed -e '/fprintf(stderr/d; /clock_gettime/d; s/double t = now();//; s/200000/2000/; s/300000/3000/' \
        -e '/include "sqlite3.c"/a #include "vfs.c"' "$OUT/sq.c" >"$OUT/sq_small.c"
    cp tests/c_programs/vfs.c "$OUT/vfs.c"
    options=(-DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DLONGDOUBLE_TYPE=double -DSQLITE_DISABLE_INTRINSIC)
    status=0
    natively whole sq "${options[@]}" || status=1
    FNPTR=index whole sq_small "${options[@]}" -DSQLITE_OS_OTHER=1 -DSQLITE_OMIT_LOCALTIME || status=1
    costs sq_small "${options[@]}" -DSQLITE_OS_OTHER=1 -DSQLITE_OMIT_LOCALTIME
    exit $status
    ;;
lzbz)
    lz4=$(source_of lz4-sys 1.11.1)
    bzip2=$(source_of bzip2-sys 0.1.13)
    sqlite=$(source_of libsqlite3-sys 0.30.1)
    mkdir -p "$OUT/sqsrc"
    cp "$sqlite/sqlite3/sqlite3.c" "$OUT/sqsrc/sqlite3.c"
    cp "$c2jlir/lzbz.c" tests/c_programs/lzbz_small.c "$OUT"
    folders=(-I"$lz4/liblz4/lib" -I"$(dirname "$(find "$bzip2" -name blocksort.c)")")
    status=0
    natively whole lzbz "${folders[@]}" || status=1
    FNPTR=index whole lzbz_small "${folders[@]}" || status=1
    exit $status
    ;;
*)
    sed -n '4,10p' "$0" >&2
    exit 2
    ;;
esac
