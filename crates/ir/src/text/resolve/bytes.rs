//! String constants that are not UTF-8.
//!
//! A string constant is a name, and names are UTF-8. A dump may hold others, as the tests of Julia's string
//! functions do; such a string is made before its row, from bytes in a hidden global variable:
//!
//! ```text
//! "\xff"     #constant#1::Memory{UInt8}     %1 = getglobal #constant#1
//!                                           %2 = foreigncall jl_genericmemory_to_string(%1, 1)::String
//! ```
//!
//! Strings have no identity, so making one on each execution is not observable.

use super::Term;
use super::body::Body;
use super::error::ResolveError;
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::diag::Span;
use crate::entity::Value;
use crate::func::ForeignData;
use crate::op::{Level, Op};
use crate::types::Type;

impl Body<'_, '_> {
    pub(super) fn string_of_bytes(&mut self, bytes: &[u8], at: Span) -> Option<Value> {
        let Some(here) = self.here.filter(|_| self.func.level == Level::High) else {
            return self.r.fail_unread(ResolveError::StringNotUtf8, at);
        };
        let types = &self.r.cx.types;
        let (vector, memory) = (types.array(Type::UINT8, 1).ok()?, types.memory(Type::UINT8).ok()?);
        let reference = types.memory_ref(Type::UINT8).ok()?;
        let byte = |&byte: &u8| Term::Const(Const::Bits { ty: Type::UINT8, bits: byte.into() });
        let held =
            Term::Array { ty: vector, dims: vec![bytes.len()], items: bytes.iter().map(byte).collect() };
        let held = self.r.hidden_global(held, at)?;
        let held = self.insert_before(here, Op::GetGlobal(held), &[], vector)?;
        let mut field = |of: Value, name: &str, ty: Type| {
            let name = self.func.constant(Const::Symbol(self.r.cx.names.intern(name)));
            self.insert_before(here, Op::Builtin(Builtin::Getfield), &[of, name], ty)
        };
        let first = field(held, "ref", reference)?;
        let held = field(first, "mem", memory)?;
        let length = self.func.constant(Const::Bits { ty: Type::INT64, bits: bytes.len() as u128 });
        let name = Some(self.r.cx.names.intern("jl_genericmemory_to_string"));
        let params = [memory, Type::INT64].into();
        let foreign =
            self.func.add_foreign(ForeignData { name, result: Type::STRING, params, variadic_after: None });
        self.insert_before(here, Op::ForeignCall(foreign), &[held, length], Type::STRING)
    }
}
