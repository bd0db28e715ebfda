#!/usr/bin/env bash
# What a dependency on Brolga costs: a program that compiles `a + b` and calls it, built from nothing, beside the same on raw cranelift-jit. Prints the time
# of each build, the size of the stripped program and the number of crates: `tests/cold_build.sh`. Builds go to target/cold_build.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
for kind in cranelift brolga; do
    folder=target/cold_build/$kind
    rm -rf "$folder"
    mkdir -p "$folder/src"
    cp "tests/cold_build/$kind.rs.in" "$folder/src/main.rs"
    sed "s|ROOT|$root|" "tests/cold_build/$kind.toml" >"$folder/Cargo.toml"
    # The versions of this checkout.
    cp Cargo.lock "$folder/Cargo.lock"
    (
        cd "$folder"
        cargo fetch --quiet
        printf '== %s\n' "$kind"
        time cargo build --release --quiet
        ./target/release/adds
        stat --format '%s bytes' target/release/adds
        printf '%s crates\n' "$(cargo tree --edges normal --prefix none | sort -u | wc -l)"
    )
done
