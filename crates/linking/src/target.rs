//! The types that an embedder chooses for a session: addresses and code.

use crate::board::Address;

/// The types of a session's contents, chosen by the embedder.
pub trait Target: Sized + Send + Sync + 'static {
    /// Where a symbol is.
    type Address: Address;
    /// The owner of code or data of a unit; dropped when nothing leads to it any more.
    type Code: Send + 'static;
}
