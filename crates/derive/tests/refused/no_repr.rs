//! Without `#[repr(C)]` fields lie as Rust likes.

use brolga_derive::Brolga;

#[derive(Brolga)]
struct Point {
    x: f64,
    y: f64,
}

fn main() {}
