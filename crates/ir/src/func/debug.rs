//! Names for debuggers: which variables of a source the values of a function are, and the file of its lines.
//!
//! ```text
//!   front end: x = a + b; ──► %3 is `x`, a Float64 ──► lowered: %7 is `x` ──► code: `x` is in xmm2 from +12 to +30, then at CFA-24
//! ```
//!
//! A value may be several variables, and a variable several values, one after the other. When one value replaces another
//! ([`Func::replace_values`]), it gets the names, and they are dropped with it: optimised code has fewer names. They are neither printed nor stored in the
//! binary form, and do not affect computed values.

use super::Func;
use crate::entity::Value;
use crate::names::Name;
use crate::types::Type;

/// A value that is a variable of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueName {
    /// The value.
    pub value: Value,
    /// The variable's name.
    pub name: Name,
    /// Its type in the source program: that of high IR.
    pub ty: Type,
}

/// The names that a function has for debuggers.
#[derive(Clone, Default, Debug)]
pub(super) struct DebugNames {
    pub(super) values: Vec<ValueName>,
    file: Option<Name>,
}

impl Func {
    /// Says that a value is a variable of the source. One that is no value of this function is not noted.
    pub fn name_value(&mut self, name: ValueName) {
        if self.has_value(name.value) {
            self.debug.values.push(name);
        }
    }

    /// The values that are variables of the source, in the order in which they were named.
    pub fn value_names(&self) -> &[ValueName] {
        &self.debug.values
    }

    /// The file that the lines of statements are counted in, if it is known.
    pub fn file(&self) -> Option<Name> {
        self.debug.file
    }

    /// Says which file the lines of statements are counted in.
    pub fn set_file(&mut self, file: Option<Name>) {
        self.debug.file = file;
    }
}
