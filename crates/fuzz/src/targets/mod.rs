//! Entry points of fuzzers: one function for each kind of input, which accepts any bytes.
//!
//! | target | bytes | property |
//! |---|---|---|
//! | [`text`], [`binary`] | a program | it is refused with positions, or read, printed, interpreted and compiled or refused |
//! | [`checked`] | a program | one without doors is compiled and run in the process without a crash |
//! | [`object`], [`archive`] | a file of another compiler | it is linked or refused |
//! | [`image`] | a program built ahead of time | it is opened or refused |
//! | [`forged`] | a module in binary form, or a package, with correct checksums | it is refused, or read, and its checked functions are called without a crash |
//! | [`sessions`] | steps of several threads on one session | only defined values or errors, consistent tables |
//! | [`shapes`] | choices of a pattern | four times as much costs at most five times as much |
//!
//! A fuzzer (`fuzz/`, run by `tests/fuzz_night.sh`) calls them with bytes that reach new code; the tests here
//! use damaged originals. Code from damaged files is linked but never run, because it could do anything.
//!
//! Not done: the prompt, traces, and the command's arguments.

mod checked;
mod doors;
mod files;
pub mod forged;
mod sessions;
mod shapes;

pub use checked::{Fate, Guarded, checked, damaged, without_doors};
pub use files::{Machine, archive, binary, image, object, text};
pub use sessions::sessions;
pub use shapes::{Pattern, shapes};

/// A fault that a target found.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault(pub String);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
