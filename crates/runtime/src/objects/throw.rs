//! Raising exceptions.
//!
//! ```text
//!   routine ── raise ──► the thread's stack of exceptions ── Raised ──► … ──► null ──► compiled code unwinds
//! ```
//!
//! Raising puts the exception on the thread's stack. [`Raised`] is passed back through Rust and only signals
//! that the exception is there, so it needs no root.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::show::AMBIGUOUS_WORLD;
use brolga_ir::types::{Type, TypeKind};

use crate::heap::{Obj, Object, ObjectError, Root, Scope, TypeDesc, TypeRef};
use crate::pending::{Detail, ExceptionKind, Pending};

use super::show::Made;

/// Signals that an exception is on the thread's stack. Code that receives it returns to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "an exception is pending"]
pub struct Raised(());

impl Raised {
    /// For an exception that is already on the thread's stack.
    pub(crate) fn pending(scope: &Scope<'_, '_>) -> Raised {
        debug_assert!(scope.mutator().exceptions.depth() > 0);
        Raised(())
    }
}

impl<'f, 'h> Scope<'f, 'h> {
    /// Throws an object.
    pub fn throw(&self, exception: Obj<'_, 'h>) -> Raised {
        self.raise_pending(Pending::Object(exception.object))
    }

    /// Throws `ErrorException(text)`.
    pub fn throw_error(&mut self, text: &str) -> Raised {
        self.raise_message(ExceptionKind::ErrorException, text)
    }

    fn raise_pending(&self, pending: Pending) -> Raised {
        self.mutator().exceptions.raise(pending);
        Raised(())
    }

    /// Throws an exception that has no fields.
    pub(crate) fn raise_kind(&self, kind: ExceptionKind) -> Raised {
        self.raise_pending(Pending::Kind(kind, Detail::None))
    }

    /// Throws an exception whose only field is a text.
    pub(crate) fn raise_message(&mut self, kind: ExceptionKind, text: &str) -> Raised {
        match self.string(text.as_bytes()) {
            Ok(text) => self.raise_fields(kind, &[Some(text)]),
            Err(_) => self.raise_kind(ExceptionKind::OutOfMemoryError),
        }
    }

    /// Throws an exception for an error of the heap.
    pub(crate) fn raise(&mut self, error: &ObjectError) -> Raised {
        match error {
            ObjectError::OutOfMemory(_) => self.raise_kind(ExceptionKind::OutOfMemoryError),
            other => self.raise_message(ExceptionKind::ErrorException, &other.to_string()),
        }
    }

    /// Throws a builtin exception with these fields.
    pub(crate) fn raise_fields(&mut self, kind: ExceptionKind, fields: &[Option<Root<'_, 'h>>]) -> Raised {
        match self.exception_object(kind, fields) {
            Ok(exception) => self.throw(exception.get(self)),
            Err(raised) => raised,
        }
    }

    fn exception_object(
        &mut self,
        kind: ExceptionKind,
        fields: &[Option<Root<'_, 'h>>],
    ) -> Result<Root<'f, 'h>, Raised> {
        let base = self.heap().types().base().clone();
        match kind.builtin_type(&base) {
            Some(ty) => self.new_struct(&base, ty, fields),
            // Every kind has its type in the table of `ir`, which a test checks.
            None => self.nothing(),
        }
    }

    /// `TypeError(func, "", expected, got)`
    pub(crate) fn raise_type_error(&mut self, func: &str, expected: &TypeDesc, got: Root<'_, 'h>) -> Raised {
        let (func, expected) = (self.symbol(func), self.add_root(expected.object()));
        match self.string(b"") {
            Ok(context) => {
                let fields = [Some(func), Some(context), Some(expected), Some(got)];
                self.raise_fields(ExceptionKind::TypeError, &fields)
            }
            Err(error) => self.raise(&error),
        }
    }

    /// `BoundsError(of, index)`
    pub(crate) fn raise_bounds(&mut self, of: Root<'_, 'h>, index: Root<'_, 'h>) -> Raised {
        self.raise_fields(ExceptionKind::BoundsError, &[Some(of), Some(index)])
    }

    /// `MethodError(callee, args, 0)`: no method applies.
    pub(crate) fn raise_method_error(&mut self, callee: Root<'_, 'h>, args: &[Root<'_, 'h>]) -> Raised {
        self.raise_method_error_in(0, callee, args)
    }

    /// The `MethodError` of an ambiguous call.
    pub(crate) fn raise_ambiguous(&mut self, callee: Root<'_, 'h>, args: &[Root<'_, 'h>]) -> Raised {
        self.raise_method_error_in(AMBIGUOUS_WORLD, callee, args)
    }

    fn raise_method_error_in(&mut self, world: u64, callee: Root<'_, 'h>, args: &[Root<'_, 'h>]) -> Raised {
        let base = self.heap().types().base().clone();
        let world = self.box_bits(&base, Type::UINT64, world.into());
        match (self.tuple(args), world) {
            (Ok(args), Ok(world)) => {
                self.raise_fields(ExceptionKind::MethodError, &[Some(callee), Some(args), Some(world)])
            }
            (Err(raised), _) | (_, Err(raised)) => raised,
        }
    }

    /// A type as an object.
    pub(crate) fn type_value(&mut self, cx: &Arc<Context>, ty: Type) -> Result<Root<'f, 'h>, Raised> {
        let desc = self.desc_of(cx, ty)?;
        Ok(self.add_root(desc.object()))
    }

    /// The only object of a singleton type: `nothing`, a function object.
    pub fn instance(&self, ty: &TypeRef) -> Option<Root<'f, 'h>> {
        self.heap().types().instance(ty).map(|instance| self.add_root(instance))
    }

    /// A symbol.
    pub fn symbol(&self, name: &str) -> Root<'f, 'h> {
        self.add_root(self.heap().symbols().symbol(name).object())
    }

    /// The innermost exception as an object, which is made on the first request. `None` if none is being
    /// handled.
    pub fn current_exception(&mut self) -> Option<Root<'f, 'h>> {
        let pending = self.mutator().exceptions.last()?;
        let (kind, detail) = match pending {
            Pending::Object(object) => return Some(self.add_root(object)),
            Pending::Kind(kind, detail) => (kind, detail),
        };
        let depth = self.mutator().exceptions.depth();
        let made = self.materialise(kind, detail).or_else(|_| {
            // There was no memory for it: `OutOfMemoryError`, which needs none, takes its place.
            self.mutator().exceptions.truncate(depth);
            self.exception_object(ExceptionKind::OutOfMemoryError, &[])
        });
        let made = made.ok()?;
        let object = made.get(self).object;
        self.mutator().exceptions.replace_last(Pending::Object(object));
        Some(made)
    }

    fn materialise(&mut self, kind: ExceptionKind, detail: Detail) -> Result<Root<'f, 'h>, Raised> {
        let base = self.heap().types().base().clone();
        let mut fields = Vec::new();
        for made in detail.fields(kind, self.heap()) {
            fields.push(match made {
                None => None,
                Some(Made::Tuple(parts)) => {
                    let parts = parts.into_iter().map(|part| self.made_object(&base, part));
                    let parts = parts.collect::<Result<Vec<_>, _>>()?;
                    Some(self.tuple(&parts)?)
                }
                Some(made) => Some(self.made_object(&base, made)?),
            });
        }
        self.exception_object(kind, &fields)
    }

    /// A part of an exception that itself has no parts.
    fn made_object(&mut self, base: &Arc<Context>, made: Made) -> Result<Root<'f, 'h>, Raised> {
        match made {
            Made::Bits(ty, bits) => self.box_bits(base, ty, bits),
            Made::Symbol(name) => Ok(self.symbol(&name)),
            Made::Text(text) => self.string(text.as_bytes()).map_err(|error| self.raise(&error)),
            Made::Type(ty) => self.type_value(base, ty),
            Made::Tuple(_) => self.nothing(),
        }
    }
}

impl ExceptionKind {
    /// The type of exceptions of this kind; `None` for [`ExceptionKind::Other`].
    pub(crate) fn builtin_type(self, cx: &Context) -> Option<Type> {
        let decl = cx.types.find_builtin(cx.names.intern(self.name()))?;
        decl.is_builtin().then(|| cx.types.nominal(decl, &[]).ok())?
    }

    /// The kind of an exception object of this type.
    pub(crate) fn of(desc: &TypeDesc) -> ExceptionKind {
        let declared = desc.ty().is_some_and(|ty| match desc.context().types.kind(ty) {
            TypeKind::Nominal { decl, .. } => decl.is_builtin(),
            _ => false,
        });
        let named = ExceptionKind::ALL.iter().copied().find(|kind| kind.name() == desc.name());
        named.filter(|_| declared).unwrap_or(ExceptionKind::Other)
    }
}

impl Pending {
    /// The object, if it has been made.
    pub(crate) fn object(mut self) -> Option<Object> {
        self.object_mut().copied()
    }

    /// The object, if it has been made, to be updated to its new address.
    pub(crate) fn object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Pending::Object(object) => Some(object),
            Pending::Kind(..) => None,
        }
    }
}
