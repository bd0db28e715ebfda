//! Uses of the heap that must not compile, each with the compiler's message, so a refusal for another reason is noticed.
//!
//! `TRYBUILD=overwrite cargo test -p brolga-runtime --test no_compile` accepts the compiler's messages; read them before committing.

#[test]
fn references_unknown_to_the_collector_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/no_compile/*.rs");
}
