//! Programs have no enums.

use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C)]
enum Shape {
    Circle,
    Square,
}

fn main() {}
