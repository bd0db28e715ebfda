//! The variables of methods while the program runs: which calls fit them, and what they are in a call.
//!
//! A method with open variables takes a call if the arguments are of its types and its patterns fit as well; `brolga_ir::types` says what that
//! means, and does it. Compiled code that reads a static parameter hands over its own arguments and the `where` of its method as a
//! type; what comes out is what dispatch found, because both ask for exact types alone.
//!
//! Cost: a walk over the types of the arguments where a method is looked up, so once for each line of a thread's table (`dispatch.rs`), and for
//! each read of a static parameter in code that was not compiled for exact types.
//!
//! Not done: arguments whose types belong to another program fit no variable.

use std::sync::Arc;

use brolga_ir::types::{Pattern, Statics, Type, TypeKind};
use brolga_ir::{Context, Name};

use crate::exception::ExceptionKind;
use crate::heap::{Heap, Object, Root, TypeRef};

use super::call::{Done, Ops};
use super::relations::as_type;
use super::throw::Raised;

/// The variables of a method, in the context of its program.
#[derive(Clone)]
pub(crate) struct Variables {
    pub(crate) cx: Arc<Context>,
    pub(crate) statics: Statics,
    /// Whether the last parameter collects.
    pub(crate) vararg: bool,
}

impl PartialEq for Variables {
    fn eq(&self, other: &Variables) -> bool {
        self.cx.is_same(&other.cx) && self.vararg == other.vararg && self.statics == other.statics
    }
}

impl Eq for Variables {}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.statics.fmt(f)
    }
}

impl Variables {
    fn pattern(&self) -> Pattern<'_> {
        Pattern { statics: &self.statics, vararg: self.vararg }
    }

    /// What the variables are for these arguments; nothing if these do not fit.
    pub(crate) fn bind(&self, heap: &Heap, args: &[Object]) -> Option<Vec<Option<Type>>> {
        let given = args.iter().map(|&arg| {
            let types = heap.types();
            match as_type(arg) {
                Some(of) => self.cx.types.type_of(types.type_in(of, &self.cx)?).ok(),
                None => types.type_in(arg.desc(), &self.cx),
            }
        });
        self.cx.types.bind_statics(self.pattern(), &given.collect::<Option<Vec<Type>>>()?)
    }

    /// Whether all arguments of these types fit.
    pub(crate) fn take(&self, heap: &Heap, args: &[TypeRef]) -> bool {
        let given = args.iter().map(|arg| heap.types().type_in(arg, &self.cx));
        let given: Option<Vec<Type>> = given.collect();
        given.is_some_and(|given| self.cx.types.bind_statics(self.pattern(), &given).is_some())
    }

    /// Whether all arguments that fit the others fit these.
    pub(crate) fn are_above(&self, other: &Variables) -> bool {
        self.cx.is_same(&other.cx) && self.cx.types.is_below(other.pattern(), self.pattern())
    }
}

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// What the second operand numbers, by the `where` that the first is and the arguments behind them.
    fn bound(&mut self, all: &[Root<'f, 'h>]) -> Result<(Arc<Context>, Name, Option<Type>), Raised> {
        let [statics, number, args @ ..] = all else {
            return Err(self.unsupported("a static parameter of nothing"));
        };
        let of = self.type_operand("static_parameter", *statics)?;
        let (cx, ty) = (of.context().clone(), of.ty().unwrap_or(Type::ANY));
        let number = self.int64(*number).and_then(|number| u32::try_from(number).ok());
        let read = Statics::from_type(&cx.types, ty).zip(number);
        let Some((((statics, vararg), number), name)) = read.and_then(|read| {
            let name = read.0.0.get(read.1)?.name;
            Some((read, name))
        }) else {
            return Err(self.unsupported("a static parameter that there is not"));
        };
        let mut args = args.to_vec();
        if vararg && let Some(rest) = args.pop() {
            args.extend(self.tuple_elements(rest)?.unwrap_or_default());
        }
        let objects = self.objects(&args);
        let variables = Variables { cx: cx.clone(), statics, vararg };
        let values = variables.bind(self.runtime.heap(), &objects).unwrap_or_default();
        Ok((cx, name, values.get(number as usize - 1).copied().flatten()))
    }

    pub(crate) fn static_parameter(&mut self, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let (cx, name, value) = self.bound(all)?;
        let base = self.base();
        let Some(value) = value else {
            let name = self.scope.symbol(cx.names.text(name));
            let world = self.scope.box_bits(&base, Type::UINT64, 0)?;
            return Err(self
                .scope
                .raise_fields(ExceptionKind::UndefVarError, &[Some(name), Some(world), None]));
        };
        self.static_value(&cx, value)
    }

    /// The value of a parameter. Recursion follows the nesting of types.
    fn static_value(&mut self, cx: &Arc<Context>, value: Type) -> Done<'f, 'h> {
        let base = self.base();
        if let Some((_, elems)) = cx.types.value_elements(value) {
            let elems: Vec<_> =
                elems.iter().map(|&elem| self.static_value(cx, elem)).collect::<Result<_, Raised>>()?;
            return self.scope.tuple(&elems);
        }
        match *cx.types.kind(value) {
            TypeKind::Int(number) => {
                self.scope.box_bits(&base, Type::INT64, u128::from(number.cast_unsigned()))
            }
            TypeKind::Sym(name) => Ok(self.scope.symbol(cx.names.text(name))),
            TypeKind::Bits { ty, bits } => self.scope.box_bits(cx, ty, bits),
            _ => self.scope.type_value(cx, value),
        }
    }

    pub(crate) fn static_defined(&mut self, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let (_, _, value) = self.bound(all)?;
        self.scope.bool(value.is_some())
    }
}
