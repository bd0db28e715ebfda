//! No struct of a program has a packed layout.

use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C, packed)]
struct Point {
    x: f64,
    y: f64,
}

fn main() {}
