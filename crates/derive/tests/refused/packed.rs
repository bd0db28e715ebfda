//! A packed struct is laid out as no struct of a program is.

use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C, packed)]
struct Point {
    x: f64,
    y: f64,
}

fn main() {}
