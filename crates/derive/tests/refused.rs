//! Structs that the macro refuses, and its messages: a file of `refused/` each, with the compiler's output beside it.
//!
//! `TRYBUILD=overwrite cargo test -p brolga-derive` writes the outputs again.

#[test]
fn structs_that_stand_for_none_of_a_program_are_refused() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
