//! A struct without fields has nothing to pass.

use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C)]
struct Nothing {}

fn main() {}
