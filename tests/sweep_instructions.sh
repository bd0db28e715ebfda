#!/usr/bin/env bash
# The growth of single rows of `cargo bench --bench sweep`, in instructions of the processor, by valgrind: times grow faster than work where its data leave a cache.
#
#     $ tests/sweep_instructions.sh 'structs:Read' 'objects in a list:O2'
#
# Prints the instructions for 8,000, 16,000 and 32,000, and how much more the larger one takes. Of a compilation, reading is subtracted. A name stands for all constructs that have it.
set -euo pipefail
cd "$(dirname "$0")/.."

bench=$(cargo bench --bench sweep --no-run 2>&1 | sed -n 's/.*(\(target[^)]*\)).*/\1/p')

instructions() { # construct, stage, size
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$3" "$1" "$2" 2>&1 >/dev/null |
        sed -n 's/.*Collected : //p'
}

for row in "$@"; do
    construct=${row%:*} stage=${row##*:} last=0
    # The process itself, or that and reading.
    case $stage in
    Read) below=none ;;
    *) below=Read ;;
    esac
    printf '%-40s %-5s' "$construct" "$stage"
    for size in 8000 16000 32000; do
        count=$(($(instructions "$construct" "$stage" "$size") - $(instructions "$construct" "$below" "$size")))
        printf ' %14s' "$count"
        [ "$last" = 0 ] || awk -v now="$count" -v before="$last" 'BEGIN { printf " %5.2f", now / before }'
        last=$count
    done
    echo
done
