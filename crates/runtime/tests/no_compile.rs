//! Uses of the heap that must not compile, each with the compiler's words: those that would compile for another reason, or be refused for one, show.
//!
//! `TRYBUILD=overwrite cargo test -p brolga-runtime --test no_compile` accepts what the compiler says; read it before it is committed.

#[test]
fn references_unknown_to_the_collector_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/no_compile/*.rs");
}
