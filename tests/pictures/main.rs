//! The pictures of the docs are made from the code's own tables: the pipeline, the states of a code instance and of a symbol, the maps of a heap's objects and
//! of a frame; and the plot of the kernels from the figures of `benches/kernels/README.md`. A picture that differs from the code is a failed test.
//!
//! `BLESS=1 cargo test --test pictures` writes them to `docs/pictures/`; look at them before committing.

mod instance;
mod linking;
mod maps;
mod pipeline;
#[path = "../../benches/kernels/plot.rs"]
mod plot;
mod svg;

use std::path::Path;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of the repository.
fn source(path: &str) -> String {
    std::fs::read_to_string(folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Holds a picture against its file.
#[expect(clippy::disallowed_methods, reason = "`BLESS` is how a developer talks to the harness")]
fn hold(name: &str, picture: &str) {
    let path = format!("docs/pictures/{name}.svg");
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(folder().join(&path), picture).unwrap();
        return;
    }
    let is_same = std::fs::read_to_string(folder().join(&path)).is_ok_and(|known| known == picture);
    assert!(
        is_same,
        "{path} does not show what the code has: `BLESS=1 cargo test --test pictures` draws it again"
    );
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The bench writes the plot of what it measures; the page has the same figures.
#[test]
fn the_plot_of_the_kernels() {
    let page = source("benches/kernels/README.md");
    let mut lines = page.lines().skip_while(|line| !line.starts_with("| kernel | clif |"));
    let head = cells(lines.next().unwrap());
    let rows = lines.skip(1).take_while(|line| line.starts_with('|') && !line.starts_with("| geometric"));
    let row = |line: &str| {
        let cells = cells(line);
        (cells[0].to_owned(), cells[1..].iter().map(|cell| cell.parse().ok()).collect())
    };
    hold("kernels", &plot::svg(&head[1..], &rows.map(row).collect::<Vec<_>>()));
}

#[test]
fn the_pipeline() {
    hold("pipeline", &pipeline::picture());
}

#[test]
fn states_of_a_code_instance() {
    hold("code-instance", &instance::picture());
}

#[test]
fn states_of_a_symbol() {
    hold("linking", &linking::picture());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn maps_of_heap_and_frame() {
    hold("maps", &maps::picture());
}
