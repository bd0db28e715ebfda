//! Declarations of struct types from Rust.
//!
//! ```
//! use brolga_ir::{Context, Type, build::{BuildError, Builder, Record}, intrinsic::Intrinsic};
//!
//! /// A counter that adds what it captured: `(c::Adder)(x) = x + c.by`, and a function that makes one and calls it.
//! fn adder(cx: &Context) -> Result<[brolga_ir::Func; 2], BuildError> {
//!     let adder = Record::new("Adder").field("by", Type::INT64).closure().declare(cx)?;
//!
//!     let mut b = Builder::method_of(cx, adder, &[("x", Type::INT64)], Type::INT64);
//!     let (own, x) = (b.callee()?, b.param(0)?);
//!     let by = b.getfield(own, "by")?;
//!     let sum = b.intrinsic(Intrinsic::AddInt, &[x, by])?;
//!     b.ret(&[sum])?;
//!     let method = b.finish()?;
//!
//!     let mut b = Builder::high(cx, "add_five", &[("x", Type::INT64)], Type::INT64);
//!     let (x, five) = (b.param(0)?, b.int(Type::INT64, 5)?);
//!     let closure = b.new_object(adder, &[five])?;
//!     let sum = b.call_closure(closure, &[x], Type::INT64)?;
//!     b.ret(&[sum])?;
//!     Ok([method, b.finish()?])
//! }
//!
//! assert!(adder(&Context::new()).is_ok());
//! ```

use super::{BuildError, Builder};
use crate::context::Context;
use crate::entity::Value;
use crate::func::CalleeData;
use crate::op::Op;
use crate::types::{DeclKind, FieldDecl, Type, TypeError};

/// A struct type to be declared.
#[derive(Clone, Debug)]
pub struct Record {
    name: String,
    fields: Vec<(String, Type)>,
    is_mutable: bool,
    is_closure: bool,
    supertype: Type,
}

impl Record {
    /// An immutable struct without fields, below `Any`.
    pub fn new(name: &str) -> Record {
        Record {
            name: name.to_owned(),
            fields: Vec::new(),
            is_mutable: false,
            is_closure: false,
            supertype: Type::ANY,
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &str, ty: Type) -> Record {
        self.fields.push((name.to_owned(), ty));
        self
    }

    /// Makes its fields mutable.
    #[must_use]
    pub fn mutable(self) -> Record {
        Record { is_mutable: true, ..self }
    }

    /// Makes it a subtype of this abstract type.
    #[must_use]
    pub fn below(self, supertype: Type) -> Record {
        Record { supertype, ..self }
    }

    /// Makes it the type of a closure, a subtype of `Function`. Its methods are made by
    /// [`Builder::method_of`], its objects by [`Builder::new_object`].
    #[must_use]
    pub fn closure(self) -> Record {
        Record { is_closure: true, ..self }
    }

    /// Declares the type. Declaring it again with the same fields returns the same type.
    ///
    /// # Errors
    /// [`BuildError::Type`]: another type has this name, two fields have the same name, or the supertype is
    /// not abstract.
    pub fn declare(&self, cx: &Context) -> Result<Type, BuildError> {
        let types = &cx.types;
        let refused = |error: TypeError| BuildError::Type(error.display(types).to_string());
        let fields =
            self.fields.iter().map(|(name, ty)| FieldDecl::new(cx.names.intern(name), *ty)).collect();
        let supertype = match self.is_closure.then(|| types.find_decl(cx.names.intern("Function"))).flatten()
        {
            Some(function) => types.nominal(function, &[]).map_err(refused)?,
            None => self.supertype,
        };
        let kind = DeclKind::Struct { mutable: self.is_mutable, fields };
        let declare = || {
            let decl = types.declare(cx.names.declare(&self.name), &[])?;
            types.define(decl, supertype, kind.clone())?;
            types.nominal(decl, &[])
        };
        loop {
            match declare() {
                Err(TypeError::Redeclared { .. }) if cx.names.redeclare(&self.name) => {}
                declared => return declared.map_err(refused),
            }
        }
    }
}

impl Builder<'_> {
    /// Calls the method of a callable object for the types of the operands, with the given result type. Its existence is
    /// checked when the function becomes part of a module.
    pub fn call_closure(
        &mut self,
        closure: Value,
        args: &[Value],
        result: Type,
    ) -> Result<Value, BuildError> {
        let function = self.type_of(closure)?;
        let types = args.iter().map(|&v| self.type_of(v)).collect::<Result<_, _>>()?;
        let callee = self.func.add_callee(CalleeData::Method { function, args: types, result });
        let all: Vec<Value> = [closure].iter().chain(args).copied().collect();
        self.value(Op::Invoke(callee), &all, result)
    }
}
