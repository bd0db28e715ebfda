//! The embedder's promise about unchecked programs.
//!
//! ```text
//! unsafe { Doors::open() } ──► Doors ──► Options::doors     engines and sessions accept programs with doors
//! ```
//!
//! [`brolga_ir::doors`] lists the doors, and the obligations of a program that uses one.

/// The right to run unchecked programs: obtained once, and passed to `Options::doors`.
#[derive(Clone, Copy, Debug)]
pub struct Doors(());

impl Doors {
    /// Opens the doors.
    ///
    /// # Safety
    ///
    /// The caller is responsible for all programs and code passed to engines and sessions with these options,
    /// and for the arguments of calls:
    ///
    /// | door | obligation |
    /// |---|---|
    /// | `pointer`: an access through a `Ptr` | the address is valid for it, aligned as claimed, of that type, and no thread writes there meanwhile |
    /// | `foreign`: a `foreigncall` | the function exists with the stated signature, keeps to it and does not unwind; its arguments are what it expects |
    /// | `callback`: a `cfunction` | C calls it with the stated signature, while the unit that took its address exists |
    /// | `low-ir`: a low function | accesses are to existing memory, in the region that they name; references are to live objects of the right types |
    /// | `bounds`: a bounds check turned off by a statement or an option; the parts of an array, by `%new` or `setfield!` | the index is in range; `ref` is followed by at least `size` elements |
    /// | `native-code`: C symbols, libraries, archives, images | the code matches its symbols, keeps to the stated signatures and does not unwind |
    #[must_use]
    pub unsafe fn open() -> Doors {
        Doors(())
    }
}
