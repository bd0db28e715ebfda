#!/bin/sh
# Kills `brolga image build` at any moment, again and again: the image that was there is there afterwards, whole, or the new one is.
#
# Usage: tests/image_kills.sh [PATH OF BROLGA] [NUMBER]      (target/debug/brolga, 1000)
set -eu
cd "$(dirname "$0")/.."
brolga=${1:-target/debug/brolga}
number=${2:-1000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
image="$folder/fib.so"

# Two programs of one name, so that old and new can be told apart: fib(10) is 55 in one and 10 in the other.
cp examples/fib.jlir "$folder/old.jlir"
printf 'function fib(n::Int64)::Int64\n1 ─      return n\nend\n' > "$folder/new.jlir"
"$brolga" image build -q "$folder/old.jlir" -o "$image"

# How long one build takes, in milliseconds: kills are spread over it and a little beyond.
begun=$(date +%s%N)
"$brolga" image build -q "$folder/old.jlir" -o "$image"
took=$((($(date +%s%N) - begun) / 1000000 + 1))

finished=0
round=0
while [ "$round" -lt "$number" ]; do
    round=$((round + 1))
    source=new
    [ $((round % 2)) -eq 0 ] && source=old
    "$brolga" image build -q "$folder/$source.jlir" -o "$image" 2> "$folder/errors" &
    builder=$!
    # From nothing to a tenth beyond the time of a build, in steps that do not repeat.
    delay=$((round * 7919 % (took * 11 / 10 + 1)))
    sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
    kill -9 "$builder" 2> /dev/null || true
    wait "$builder" 2> /dev/null && finished=$((finished + 1))
    value=$("$brolga" run --image "$image" --call 'fib(10)') || {
        echo "round $round: the image cannot be opened"
        exit 1
    }
    case $value in
    55 | 10) ;;
    *)
        echo "round $round: fib(10) is $value"
        exit 1
        ;;
    esac
    # What a killed builder has left beside the image.
    rm -f "$folder"/fib.so.*.new
done
echo "$number rounds, in $finished of them the build had finished before it was killed: the image was always whole"
