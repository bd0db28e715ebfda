//! An unknown setting.

use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C)]
#[brolga(rename = "P")]
struct Point {
    x: f64,
    y: f64,
}

fn main() {}
