//! The policy of a removal for code that uses the removed definitions.

use brolga::session::linking::Dependants;

use crate::error::{BrolgaCode, BrolgaError};

/// The fate of code that uses a removed definition.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaDependants {
    /// Nothing is removed if there is any: the error names it.
    Deny = 0,
    /// It is removed too.
    Cascade = 1,
    /// It stays, and calls of what was removed throw `CompileError`.
    Tombstone = 2,
    /// It stays, and keeps what it uses.
    Keep = 3,
}

/// The policy of this number.
pub(crate) fn dependants(number: u32) -> Result<Dependants, BrolgaError> {
    Ok(match number {
        n if n == BrolgaDependants::Deny as u32 => Dependants::Deny,
        n if n == BrolgaDependants::Cascade as u32 => Dependants::Cascade,
        n if n == BrolgaDependants::Tombstone as u32 => Dependants::Tombstone,
        n if n == BrolgaDependants::Keep as u32 => Dependants::Keep,
        n => return Err(BrolgaError::new(BrolgaCode::Argument, format!("there is no policy {n}"))),
    })
}
