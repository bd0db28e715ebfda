#!/usr/bin/env bash
# Chooses files for a read-through: 30 of the 90 largest source files, in an order that the seed determines.
# Usage: tests/read_through.sh SEED. Prints lines of code and path; the same tree and seed give the same list.
#
# A file's size is its number of lines before its test module. Files that hold only tests or models are left out.
# The order is that of the hashes of "SEED path", so adding or removing one file moves no other file.
set -euo pipefail
export LC_ALL=C
if [ $# -ne 1 ]; then
    echo "usage: tests/read_through.sh SEED" >&2
    exit 2
fi
cd "$(dirname "$0")/.."

largest=$(git ls-files 'crates/*/src/*.rs' 'src/*.rs' |
    grep -vE '(^|/)(tests|models)(/|\.rs$)' |
    while IFS= read -r file; do
        printf '%d %s\n' "$(awk '/^mod tests \{/ { exit } { n++ } END { print n + 0 }' "$file")" "$file"
    done | sort -k1,1nr -k2 | awk 'NR <= 90')

while IFS=' ' read -r lines file; do
    printf '%s %5d %s\n' "$(printf '%s %s' "$1" "$file" | git hash-object --stdin)" "$lines" "$file"
done <<<"$largest" | sort | cut -d' ' -f2- | awk 'NR <= 30'
