//! Names for debuggers: which source variables the values of a function are, and the file of its lines.
//!
//! ```text
//!   front end: x = a + b; ──► %3 is `x`, a Float64 ──► lowered: %7 is `x` ──► code: `x` is in xmm2 from +12 to +30, then at CFA-24
//! ```
//!
//! A value may be several variables, and a variable several values in turn. When one value replaces another
//! ([`Func::replace_values`]), it inherits the names, and names are dropped with their value, so optimised
//! code has fewer. They are neither printed nor stored in the binary form, and do not affect computed values.

use cranelift_entity::PrimaryMap;

use super::{Func, InlinedCall};
use crate::entity::{Inlined, Value};
use crate::names::Name;
use crate::types::Type;

/// A value that holds a source variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueName {
    pub value: Value,
    /// The variable's name.
    pub name: Name,
    /// The variable's type in high IR.
    pub ty: Type,
}

#[derive(Clone, Default, Debug)]
pub(super) struct DebugNames {
    pub(super) values: Vec<ValueName>,
    file: Option<Name>,
    pub(super) inlined: PrimaryMap<Inlined, InlinedCall>,
}

impl Func {
    /// Names a value after a source variable. Ignored if the value is not in this function.
    pub fn name_value(&mut self, name: ValueName) {
        if self.has_value(name.value) {
            self.debug.values.push(name);
        }
    }

    /// The values named after source variables, in the order in which they were named.
    pub fn value_names(&self) -> &[ValueName] {
        &self.debug.values
    }

    /// The file that the line numbers of statements refer to, if known.
    pub fn file(&self) -> Option<Name> {
        self.debug.file
    }

    /// Sets the file that the line numbers of statements refer to.
    pub fn set_file(&mut self, file: Option<Name>) {
        self.debug.file = file;
    }
}
