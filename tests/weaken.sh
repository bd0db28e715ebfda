#!/usr/bin/env bash
# Weakens the rows of the ordering tables one at a time: each time a model must fail, or the row is not needed.
# A row is weakened by making its operation relaxed, or by leaving its fence out. Run it from anywhere; it restores what
# it changes. Needs a clean checkout of what it changes. With names of rows (`tests/weaken.sh C9 R2`), only these.
set -uo pipefail
cd "$(dirname "$0")/.."

# Where the models of a crate are.
declare -A modules=([brolga-linking]=models:: [brolga-instances]=models:: [brolga-runtime]=)

# 0: they pass, 1: one fails, 2: they do not compile. Building takes as long as the machine needs.
models() { # crate, model
    export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom
    cargo test -q -p "$1" --lib --release --no-run >/dev/null 2>&1 || return 2
    timeout 600 cargo test -q -p "$1" --lib --release "${modules[$1]}$2" >/dev/null 2>&1 || return 1
}

failed=0
rows=" $* "
wanted() {
    [ "$rows" = "  " ] || [[ "$rows" == *" $1 "* ]]
}

weaken() { # row, crate, file, model, sed script
    wanted "$1" || return
    cp "$3" "$3.kept"
    sed -i "$5" "$3"
    if cmp -s "$3" "$3.kept"; then
        echo "$1: nothing to weaken in $3"
        failed=1
    else
        models "$2" "$4"
        case $? in
        0) echo "$1: weakened, and $4 still passes" && failed=1 ;;
        1) echo "$1: $4 fails, as it must" ;;
        *) echo "$1: weakened, and $2 does not compile" && failed=1 ;;
        esac
    fi
    mv "$3.kept" "$3"
    touch "$3"
}

relax() { # row, crate, file, model
    weaken "$1" "$2" "$3" "$4" "/\/\/ $1\$/s/Ordering::[A-Za-z]*/Ordering::Relaxed/"
}

fence() { # row, crate, file, model
    weaken "$1" "$2" "$3" "$4" "/\(fence(Ordering::SeqCst)\|\(light\|heavy\)(.*)\); \/\/ $1\$/d"
}

# The models as they are, of the crates that wanted rows belong to.
check() { # crate, models, letters of its rows
    [[ "$rows" == "  " || "$rows" == *\ [$3]* ]] || return 0
    models "$1" "$2" && return 0
    echo "the models of $1 fail as they are"
    exit 1
}

check brolga-linking "" BNQ
check brolga-instances "" CR
check brolga-runtime never_inside_together H

session=brolga-linking
board=crates/linking/src/board.rs
queue=crates/linking/src/dispatch/queue.rs
relax B1 $session $board publish_and_read
relax B2 $session $board publish_and_read
relax N1 $session crates/linking/src/uses.rs the_last_holder_frees_a_name
relax N2 $session crates/linking/src/uses.rs the_last_holder_frees_a_name
fence Q1 $session $queue a_push_wakes_a_sleeper
fence Q2 $session $queue a_push_wakes_a_sleeper
relax Q5 $session $queue draining_sees_what_tasks_did
relax Q6 $session $queue draining_sees_what_tasks_did
fence Q7 $session $queue draining_sees_what_tasks_did

instances=brolga-instances
word=crates/instances/src/word.rs
reclaim=crates/instances/src/reclaim.rs
called=a_word_is_replaced_under_its_callers
relax C1 $instances $word $called
relax C2 $instances $word $called
relax R1 $instances $reclaim $called
relax R3 $instances $reclaim $called
relax R5 $instances $reclaim $called
fence R2 $instances $reclaim $called
fence R4 $instances $reclaim $called

runtime=brolga-runtime
handshake=crates/runtime/src/heap/handshake.rs
inside=never_inside_together
fence H1 $runtime $handshake $inside
relax H2 $runtime $handshake $inside
relax H3 $runtime $handshake $inside
fence H4 $runtime $handshake $inside
fence H5 $runtime $handshake $inside
relax H6 $runtime $handshake $inside
relax H7 $runtime $handshake $inside
exit $failed
