//! See `brolga_fuzz::targets::checked`.
#![no_main]
#![forbid(unsafe_code)]

use std::cell::OnceCell;

use brolga_fuzz::targets::{self, Guarded};

thread_local! {
    /// Engines for all inputs: making them takes longer than most inputs.
    static GUARDED: OnceCell<Guarded> = const { OnceCell::new() };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    GUARDED.with(|guarded| {
        let guarded = guarded.get_or_init(|| Guarded::new().expect("engines"));
        if let Err(fault) = targets::checked(guarded, bytes) {
            panic!("{fault}");
        }
    });
});
