//! Structs that the macro refuses, and its messages: one file in `refused/` each, with the compiler's output next to it.
//!
//! `TRYBUILD=overwrite cargo test -p brolga-derive` rewrites the outputs.

#[test]
fn structs_that_stand_for_none_of_a_program_are_refused() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
