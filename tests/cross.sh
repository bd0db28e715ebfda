#!/usr/bin/env bash
# Builds images of `examples/` for aarch64 on this machine, and runs them under qemu-user: each check of the examples has the value that it has here.
# Needs the command for both architectures; that for aarch64 is built as `tests/aarch64.sh` says, unless the variable BROLGA_AARCH64 names one.
#
#   tests/cross.sh                   all examples
#   tests/cross.sh examples/fib.jlir -O0
set -euo pipefail
cd "$(dirname "$0")/.."

files=() options=()
for argument in "$@"; do
  case $argument in -*) options+=("$argument") ;; *) files+=("$argument") ;; esac
done
[ ${#files[@]} -gt 0 ] || files=(examples/*.jlir)

cargo build --release --quiet
here=target/release/brolga
there=${BROLGA_AARCH64:-}
if [ -z "$there" ]; then
  tests/aarch64.sh build --quiet -p brolga --bin brolga
  there=${CARGO_TARGET_DIR:-target}/aarch64-unknown-linux-gnu/debug/brolga
fi
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static)
root=/usr/aarch64-linux-gnu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

checks=0
for file in "${files[@]}"; do
  image=$folder/$(basename "$file" .jlir).so
  $here image build --quiet "$file" --arch aarch64 "${options[@]}" -o "$image"
  while read -r call; do
    expected=$($here run "${options[@]}" "$file" --call "$call" 2>&1 || true)
    found=$($emulator -E LD_LIBRARY_PATH=$root/lib -L $root "$there" run --image "$image" --call "$call" 2>&1 || true)
    if [ "$expected" != "$found" ]; then
      echo "$file: $call: here $expected, on aarch64 $found" >&2
      exit 1
    fi
    checks=$((checks + 1))
  done < <(sed -n 's/^# check: \(.*\) == .*/\1/p; s/^# throws: \(.*)\) .*/\1/p' "$file")
done
echo "$checks passed, 0 failed"
