#!/usr/bin/env bash
# Builds images of `examples/` for aarch64 on this machine, and runs them under qemu-user: each check of the examples has the value that it has here.
# Needs the command for both architectures: `cargo build --release`, and for aarch64 `tests/aarch64.sh build -p brolga-cli`, which may need another
# compiler (see there). The variables BROLGA and BROLGA_AARCH64 name others.
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

here=${BROLGA:-target/release/brolga}
there=${BROLGA_AARCH64:-${CARGO_TARGET_DIR:-target}/aarch64-unknown-linux-gnu/debug/brolga}
for command in "$here" "$there"; do
  [ -x "$command" ] || { echo "$0: $command is not there; the head of this script says how it is built" >&2; exit 2; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

checks=0
for file in "${files[@]}"; do
  image=$folder/$(basename "$file" .jlir).so
  $here image build --quiet "$file" --arch aarch64 "${options[@]}" -o "$image"
  while read -r call; do
    expected=$($here run "${options[@]}" "$file" --call "$call" 2>&1 || true)
    found=$(tests/aarch64.sh --emulate "$there" run --image "$image" --call "$call" 2>&1 || true)
    if [ "$expected" != "$found" ]; then
      echo "$file: $call: here $expected, on aarch64 $found" >&2
      exit 1
    fi
    checks=$((checks + 1))
  done < <(sed -n 's/^# check: \(.*\) == .*/\1/p; s/^# throws: \(.*)\) .*/\1/p' "$file")
done
echo "$checks passed, 0 failed"
