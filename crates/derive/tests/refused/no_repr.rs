//! Without `#[repr(C)]` Rust chooses the order of the fields.

use brolga_derive::Brolga;

#[derive(Brolga)]
struct Point {
    x: f64,
    y: f64,
}

fn main() {}
