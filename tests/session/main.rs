//! Sessions through the embedder's interface: programs defined, looked up, replaced and removed, by one thread and by many.
//!
//! | file | content |
//! |---|---|
//! | `cycles` | eager functions of different programs that call each other |
//! | `define` | definitions, look-ups, what programs see of each other |
//! | `evict` | limits of memory for code |
//! | `failure` | errors with their causes |
//! | `change` | redefinition, removal, initialisers, the end |
//! | `frames` | frames that run while their callees are replaced |
//! | `kinds` | the kinds of definitions and the levels, for tests in which they may not matter |
//! | `lazy` | functions that are compiled at their first call, and replaced while they are called |
//! | `loops` | loops that are left for better code while they run |
//! | `methods` | dynamic calls, when methods are added |
//! | `model` | definition, redefinition, removal and calls in random order, against a map |
//! | `names` | which function, variable or method a name means |
//! | `names_table` | every use of a name in every place: one answer |
//! | `names_model` | random sequences of operations, against a model of what a name means |
//! | `objects` | object files: what they define, start, keep and give back |
//! | `opening` | dylibs that are opened and closed |
//! | `orc` | ORC's assertions about lazy functions, redirection and tiers |
//! | `order` | definitions that come while others are under way |
//! | `profile` | profiles of the first tier, in code of the second |
//! | `shared` | sessions that share a run time, and identifiers that belong to another session |
//! | `stress` | callers against threads that redefine, optimise and remove; a million operations on demand |
//! | `threads` | the same results on any compiling thread; many threads |
//! | `thread_local` | thread-local symbols of object files |
//! | `thread_values` | thread-local variables of programs |
//! | `tiers` | functions that are compiled twice |
//! | `trackers` | what is removed with a tracker |
//! | `removal` | removal under linked callers |
//! | `types` | declared types in worlds and dylibs |
//! | `values` | function values that one definition gives another |
//! | `worlds` | redefinition before, during and after a call, by kind of definition, kind of call, inlining and level |

mod archives;
mod c_data;
mod call_order;
mod change;
mod cycles;
mod define;
mod dump;
mod evict;
mod exports;
mod extra_passes;
mod failure;
mod frames;
mod kinds;
mod lazy;
mod library;
mod loader;
mod loops;
mod methods;
mod model;
mod names;
mod names_model;
mod names_table;
mod objects;
mod opening;
mod operators;
mod orc;
mod order;
mod own_code;
mod profile;
mod removal;
mod shared;
mod sources;
mod stress;
mod stress_names;
mod thread_local;
mod thread_values;
mod threads;
mod tiers;
mod trackers;
mod transform;
mod types;
mod values;
mod worlds;

use brolga::session::Dylib;
use brolga::{OptLevel, Options, Output, Session, Workers};

/// A session that ends with the test. One that a function of the host holds would stay otherwise.
struct Ending(Session);

impl std::ops::Deref for Ending {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A session whose compiled code prints to nowhere.
fn session(workers: Workers) -> Session {
    let options = crate::doors::open(Options::new()).opt_level(OptLevel::O2).output(Output::Capture);
    Session::new(options, workers).unwrap_or_else(|error| panic!("{error}"))
}

/// A dylib with the functions of a program.
fn dylib(session: &Session, name: &str, source: &str) -> Dylib {
    let dylib = session.create_dylib(name).expect("a dylib");
    define(&dylib, source);
    dylib
}

fn define(dylib: &Dylib, source: &str) {
    let program = dylib.read("test.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    dylib.define(program).unwrap_or_else(|error| panic!("{error}"));
}

/// A function of one integer that adds `n`, by a call that is not inlined.
fn adds(name: &str, n: i64) -> String {
    format!(
        "function {name}(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, {n})::Int64\n└──      return %1\nend\n"
    )
}

/// A function that calls another with its argument, and adds one.
fn calls(name: &str, callee: &str) -> String {
    format!(
        "function {name}(x::Int64)::Int64\n1 ─ %1 = invoke Main.{callee}(x::Int64)::Int64\n\
         │   %2 = Base.add_int(%1, 1)::Int64\n└──      return %2\nend\n"
    )
}

#[path = "../support/counting.rs"]
mod counting;
#[path = "../support/doors.rs"]
mod doors;
