//! The embedder's promise for programs that are not checked.
//!
//! ```text
//! unsafe { Doors::open() } ──► Doors ──► Options::doors     engines and sessions take programs with doors
//! ```
//!
//! [`brolga_ir::doors`] lists the doors, and the obligations of a program that uses one.

/// The right to run programs that are not checked: said once, and handed to `Options::doors`.
#[derive(Clone, Copy, Debug)]
pub struct Doors(());

impl Doors {
    /// Opens the doors.
    ///
    /// # Safety
    ///
    /// The caller answers for all programs and code that engines and sessions with these options are given, and for the arguments of
    /// calls:
    ///
    /// | door | what is to be kept |
    /// |---|---|
    /// | `pointer`: an access through a `Ptr` | the address is valid for it, aligned as claimed, of that type, and no thread writes there meanwhile |
    /// | `foreign`: a `foreigncall` | the function exists with the stated signature, keeps to it and does not unwind; its arguments are what it expects |
    /// | `callback`: a `cfunction` | C calls it with the stated signature, while the unit that took its address is there |
    /// | `low-ir`: a low function | accesses are to memory that is there, in the region that they name; references are to live objects of the right types |
    /// | `bounds`: a check of bounds that is turned off, by a statement or an option; the parts of an array, by `%new` or `setfield!` | the index is in range; there are as many elements behind `ref` as `size` says |
    /// | `native-code`: C symbols, libraries, archives, images | the code is what its symbols say, keeps to the stated signatures and does not unwind |
    #[must_use]
    pub unsafe fn open() -> Doors {
        Doors(())
    }
}
