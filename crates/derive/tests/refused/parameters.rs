//! A struct with parameters does not map to a single struct of programs.

use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C)]
struct Point<T> {
    x: T,
    y: T,
}

fn main() {}
