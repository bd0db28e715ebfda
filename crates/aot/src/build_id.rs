//! Build ids: the identity of a package's build, as recorded by the package itself and by packages that need
//! it, and named in errors.

use std::fmt;

/// The key of a unit, or the hash of one input of its compilation.
pub type Key = [u8; 32];

/// The identity of a package: a hash of its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(pub Key);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
