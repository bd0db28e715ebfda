#!/usr/bin/env bash
# Runs cargo for aarch64 on another Linux machine, under qemu-user: `tests/aarch64.sh test -p brolga --test c_structs`,
# `tests/aarch64.sh run -- test -O2 tests/corpus/*`; or a program that is there already: `tests/aarch64.sh --emulate PROGRAM ARGUMENTS…`. Needs of Debian gcc-aarch64-linux-gnu, qemu-user, and the standard library for
# aarch64: libstd-rust-web-dev:arm64 beside Debian's rustc-web, or `rustup target add aarch64-unknown-linux-gnu`.
# Tests that start programs of their own need the emulator as the kernel's handler of such files (Debian's qemu-user-binfmt).
# Emulation shows wrong instructions and conventions. It does not show orders of memory that only weaker processors allow, nor caches.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
host=$(rustc -vV | sed -n 's/^host: //p')
variable() { tr 'a-z-' 'A-Z_' <<<"CARGO_TARGET_$1_$2"; }

# Tests that compile C ask for `cc`, and get the one for aarch64; build scripts are linked by the host's.
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
ln -s "$(command -v aarch64-linux-gnu-gcc)" "$tools/cc"
export "$(variable "$host" linker)=$(command -v cc)"
export "$(variable "$target" linker)=$(command -v aarch64-linux-gnu-gcc)"
# Without the path the loader of one C library takes the other one, where Debian has libraries for aarch64 in `/lib` as well, and threads hang. The emulator
# translates code that was written through a second mapping once only (qemu 7.2: `ic ivau` does nothing), so there are no files in memory.
root=/usr/aarch64-linux-gnu
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static)
aarch64-linux-gnu-gcc -shared -fPIC -x c -o "$tools/no_memfd.so" - <<'END'
#include <errno.h>
int memfd_create(const char *name, unsigned flags) { (void)name; (void)flags; errno = ENOSYS; return -1; }
END
# Programs that a test starts find the same C library.
export QEMU_LD_PREFIX=$root
runner="$emulator -E LD_PRELOAD=$tools/no_memfd.so -E LD_LIBRARY_PATH=$root/lib -L $root"
export "$(variable "$target" runner)=$runner"
[ $# -gt 0 ] || { echo "usage: $0 CARGO-COMMAND [ARGUMENTS], or $0 --emulate PROGRAM [ARGUMENTS]" >&2; exit 2; }
command=$1
shift
if [ "$command" = --emulate ]; then
  # shellcheck disable=SC2086 # the words of a command
  $runner "$@"
  exit
fi
PATH=$tools:$PATH cargo "$command" --target "$target" "$@"
