//! Fields without names are not found in programs.

use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C)]
struct Point(f64, f64);

fn main() {}
