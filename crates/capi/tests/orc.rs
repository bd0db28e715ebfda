//! The rows K01 to K13 of `docs/conformance-orc.md`: what LLVM's OrcCAPITest asserts, asserted by two C programs (`orc.c`, `demand.c`) of this C API; and a day of an embedder (`day.c`).
//!
//! The programs are built with the static library, and with an object file that the system's compiler makes. Each row is a run.

#![cfg(target_os = "linux")]

#[path = "support/mod.rs"]
mod support;

use std::sync::LazyLock;

use support::Program;

static ORC: LazyLock<Program> = LazyLock::new(|| Program::build("orc.c"));

static DEMAND: LazyLock<Program> = LazyLock::new(|| Program::build("demand.c"));

/// Runs a row.
fn run(row: &str) {
    run_of(&ORC, row);
}

fn run_of(program: &Program, row: &str) {
    let told = program.run(&[row, &program.object()]);
    assert_eq!(told, "", "{row}");
}

#[test]
fn k01_a_name_is_its_text() {
    run("k01");
}

#[test]
fn k02_a_dylib_is_found_by_its_name() {
    run("k02");
}

#[test]
fn k03_an_absolute_symbol_has_its_address() {
    run("k03");
}

#[test]
fn k04_a_look_up_answers_by_callback() {
    run("k04");
}

#[test]
fn k05_a_failed_look_up_answers_with_its_error() {
    run("k05");
}

#[test]
fn k06_a_generator_defines_what_a_look_up_misses() {
    run("k06");
}

#[test]
fn k07_definitions_live_as_long_as_their_tracker() {
    run("k07");
}

#[test]
fn k08_definitions_go_from_tracker_to_tracker() {
    run("k08");
}

#[test]
fn k09_an_object_file_defines_its_symbols() {
    run("k09");
}

#[test]
fn k10_debuggers_see_the_code() {
    run("k10");
}

#[test]
fn k11_code_of_files_and_programs_is_called() {
    run("k11");
}

#[test]
fn k12_c_makes_symbols_when_they_are_needed() {
    run_of(&DEMAND, "k12");
}

#[test]
fn k13_a_generator_answers_later() {
    run_of(&DEMAND, "k13");
}

#[test]
fn names_mean_what_they_mean_in_their_dylib() {
    run("names");
}

#[test]
fn functions_of_c_may_wait_for_collections() {
    run_of(&DEMAND, "waits");
}

#[test]
fn an_embedder_has_a_day() {
    let day = Program::build("day.c");
    assert_eq!(day.run(&[&day.object()]), include_str!("day.out"));
}
