//! See `brolga_fuzz::targets::archive`.
#![no_main]
#![forbid(unsafe_code)]

use std::cell::OnceCell;

use brolga_fuzz::targets::{self, Machine};

thread_local! {
    /// One machine for all inputs: making one takes longer than most inputs.
    static MACHINE: OnceCell<Machine> = const { OnceCell::new() };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    MACHINE.with(|machine| {
        let machine = machine.get_or_init(|| Machine::new().expect("a machine"));
        if let Err(fault) = targets::archive(machine, bytes) {
            panic!("{fault}");
        }
    });
});
