//! The architectures that code is made for.
//!
//! Both have 64 bits, little-endian words and the same layouts, so only the conventions of C, the instructions and the features of processors differ.

use std::fmt;

/// An architecture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// ARM of 64 bits.
    Aarch64,
}

impl Arch {
    /// All of them.
    pub const ALL: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

    /// That of this process. Elsewhere there is no code generator, and the value has no meaning.
    pub const HOST: Arch = if cfg!(target_arch = "aarch64") { Arch::Aarch64 } else { Arch::X86_64 };

    /// The name in triples.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        }
    }

    /// The architecture of that name.
    pub fn from_name(name: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|arch| arch.name() == name)
    }
}

impl Default for Arch {
    fn default() -> Arch {
        Arch::HOST
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
