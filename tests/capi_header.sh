#!/usr/bin/env bash
# Writes crates/capi/include/brolga.h from the source, by cbindgen 0.29 (`cargo install cbindgen`).
#
#     $ tests/capi_header.sh            writes the header
#     $ tests/capi_header.sh --check    fails if the header is another one
set -euo pipefail
cd "$(dirname "$0")/../crates/capi"
made=$(mktemp)
trap 'rm -f "$made"' EXIT
cbindgen --quiet --config cbindgen.toml --crate brolga-capi --output "$made" .
case "${1-}" in
'')
    cp "$made" include/brolga.h
    ;;
--check)
    diff -u include/brolga.h "$made"
    ;;
*)
    echo 'usage: tests/capi_header.sh [--check]' >&2
    exit 2
    ;;
esac
