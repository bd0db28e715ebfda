//! Linking: from code with relocations to code at its address.
//!
//! | file | content |
//! |---|---|
//! | `linker.rs` | the trait, link units, symbol resolution, and every check before placement |
//! | `loader.rs` | the trait by an own loader: units share pages |
//! | `cranelift.rs` | the trait by `cranelift-jit`: one module for each link unit |
//! | `maps.rs` | frame maps of a loaded unit |
//! | `globals.rs` | global variables of a program |
//! | `foreign.rs` | object files in memory, and symbols in them |
//! | `object/` | object files and static archives of other compilers |
//! | `image_code.rs` | code of an image, with all addresses in one table |
//! | `image.rs` | an image as a unit |

pub(crate) mod cranelift;
pub(crate) mod foreign;
pub(crate) mod globals;
pub(crate) mod image;
pub(crate) mod image_code;
pub(crate) mod linker;
pub(crate) mod loader;
pub(crate) mod maps;
pub(crate) mod object;
