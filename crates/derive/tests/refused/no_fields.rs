use brolga_derive::Brolga;

#[derive(Brolga)]
#[repr(C)]
struct Nothing {}

fn main() {}
