//! The builtins on objects, except for fields and elements, which have their own files.
//!
//! Their semantics and exceptions match `ir`'s interpreter. An operation that a verified program cannot
//! contain is an `ErrorException`.
//!
//! Not done: globals by name (compiled code accesses them by address); finalizers and scopes of the program,
//! which the interpreter does not have either.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::builtin::Builtin;
use brolga_ir::types::{FieldRepr, Type, TypeError, TypeKind};

use crate::heap::{ObjectKind, Root};
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::place::{At, Held, Place, Row};
use super::relations::{as_type, egal};
use super::throw::Raised;

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// A builtin with these arguments.
    pub(crate) fn builtin(&mut self, builtin: Builtin, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        if let Some(refusal) = builtin.refusal() {
            return Err(self.unsupported(&format!("`{builtin}`: {refusal}")));
        }
        if !builtin.arity().allows(args.len()) {
            return Err(self.bad_count(builtin.name(), args.len()));
        }
        match (builtin, args) {
            (Builtin::Egal, &[a, b]) => {
                let same = egal(self.object(a), self.object(b));
                self.scope.bool(same)
            }
            (Builtin::Typeof, &[x]) => {
                let ty = self.object(x).desc().object();
                Ok(self.scope.add_root(ty))
            }
            (Builtin::Sizeof, &[x]) => self.size_of(x),
            (Builtin::Subtype, &[a, b]) => {
                let (a, b) = (self.type_operand("<:", a)?, self.type_operand("<:", b)?);
                let is = self.thread.isa_cache().is_subtype(self.runtime.heap(), a, b);
                self.scope.bool(is)
            }
            (Builtin::Isa, &[x, ty]) => {
                let ty = self.type_operand("isa", ty)?;
                let is = self.is_a(self.object(x), ty);
                self.scope.bool(is)
            }
            (Builtin::Typeassert, &[x, ty]) => {
                let ty = self.type_operand("typeassert", ty)?;
                match self.is_a(self.object(x), ty) {
                    true => Ok(x),
                    false => Err(self.scope.raise_type_error("typeassert", ty, x)),
                }
            }
            (Builtin::ApplyType, &[generic, ref params @ ..]) => self.apply_type(generic, params),
            (Builtin::Fieldtype, &[ty, field, ..]) => self.field_type(ty, field),
            (Builtin::Nfields, &[x]) => {
                let count = match At::boxed(self.object(x)) {
                    Some(at) => at.cx.types.field_count(at.ty).unwrap_or(0),
                    None => 0,
                };
                self.scope.box_int(count as i64)
            }
            (Builtin::Tuple, _) => self.scope.tuple(args),
            (Builtin::Ifelse, &[condition, a, b]) => match self.bool(condition) {
                Some(true) => Ok(a),
                Some(false) => Ok(b),
                None => Err(self.fixed_type_error("ifelse", Type::BOOL, condition)),
            },
            (Builtin::Throw, &[exception]) => Err(self.scope.throw(exception.get(self.scope))),
            (Builtin::ThrowMethoderror, &[callee, ref rest @ ..]) => {
                Err(self.scope.raise_method_error(callee, rest))
            }
            (Builtin::Donotdelete | Builtin::Finalizer | Builtin::CurrentScope, _) => self.scope.nothing(),
            (Builtin::Compilerbarrier, &[_, x]) | (Builtin::Blackbox, &[x]) => Ok(x),
            (Builtin::Invoke, _) => self.invoke(args),
            (Builtin::Applicable, _) => self.applicable(args),
            (
                Builtin::Getfield
                | Builtin::Setfield
                | Builtin::Swapfield
                | Builtin::Modifyfield
                | Builtin::Replacefield
                | Builtin::Setfieldonce
                | Builtin::Isdefined,
                _,
            ) => self.field_builtin(builtin, args),
            (op, _) if op.is_of_global() => {
                Err(self.unsupported(&format!("`{builtin}` by a name that is known at run time only")))
            }
            _ => self.element_builtin(builtin, args),
        }
    }

    pub(crate) fn bad_count(&mut self, op: &str, given: usize) -> Raised {
        self.unsupported(&format!("{op} does not take {given} operands"))
    }

    pub(crate) fn bad_operand(&mut self, op: &str, expected: &str, given: Root<'f, 'h>) -> Raised {
        let ty = self.type_text(given);
        self.unsupported(&format!("{op} takes {expected} here, not a `{ty}`"))
    }

    /// A type that was made, or an exception with the reason.
    pub(crate) fn made(&mut self, cx: &Arc<Context>, ty: Result<Type, TypeError>) -> Result<Type, Raised> {
        ty.map_err(|error| {
            let text = error.display(&cx.types).to_string();
            self.unsupported(&text)
        })
    }

    fn size_of(&mut self, x: Root<'f, 'h>) -> Done<'f, 'h> {
        let object = self.object(x);
        let size = if let Some(of) = as_type(object) {
            let size = of.ty().and_then(|ty| Some(of.context().types.layout(ty).ok()?.size));
            let Some(size) = size else {
                let text = format!("Type {} does not have a definite size.", of.name());
                return Err(self.message(ExceptionKind::ErrorException, &text));
            };
            u64::from(size)
        } else if let Some(bytes) = object.string() {
            bytes.len() as u64
        } else if let Some(row) = Row::of(object) {
            let unit = match row.memory.desc().kind() {
                ObjectKind::Memory(element) if element.repr != FieldRepr::Pointer => {
                    u64::from(element.stride)
                }
                _ => 8,
            };
            unit.saturating_mul(row.length as u64)
        } else {
            object.desc().size() as u64
        };
        self.scope.box_int(size as i64)
    }

    fn apply_type(&mut self, generic: Root<'f, 'h>, params: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let generic = self.type_operand("apply_type", generic)?;
        let objects = self.objects(params);
        let cx = self
            .runtime
            .heap()
            .types()
            .context_of(objects.iter().filter_map(|&object| as_type(object)).chain([generic]));
        let types = self.runtime.heap().types();
        let foreign = "a type of one program cannot be a parameter of a type of another";
        let mut given = Vec::with_capacity(params.len());
        for (&param, object) in params.iter().zip(objects) {
            given.push(if let Some(of) = as_type(object) {
                match types.type_in(of, &cx) {
                    Some(ty) => ty,
                    None => return Err(self.unsupported(foreign)),
                }
            } else if let Some(name) = self.symbol_text(param) {
                // It is as long as an existing symbol.
                self.scope.counted_type(&cx, TypeKind::Sym(cx.names.intern(&name)))?
            } else if let Some(value) = self.int64(param) {
                self.scope.counted_type(&cx, TypeKind::Int(value))?
            } else {
                return Err(self.fixed_type_error("apply_type", Type::DATATYPE, param));
            });
        }
        let Some(generic) = types.type_in(generic, &cx) else { return Err(self.unsupported(foreign)) };
        let params = given.into_boxed_slice();
        let kind = match cx.types.kind(generic) {
            TypeKind::Generic(decl) => TypeKind::Nominal { decl: *decl, params },
            TypeKind::Tuple { elems, vararg: Some(Type::ANY) } if elems.is_empty() => {
                TypeKind::Tuple { elems: params, vararg: None }
            }
            _ if generic == Type::UNION => TypeKind::Union(params),
            _ if params.is_empty() => return self.scope.type_value(&cx, generic),
            _ => {
                let text = format!("`{}` takes no type parameters", cx.types.display(generic));
                return Err(self.unsupported(&text));
            }
        };
        let ty = self.scope.counted_type(&cx, kind)?;
        self.scope.type_value(&cx, ty)
    }

    fn field_type(&mut self, ty: Root<'f, 'h>, field: Root<'f, 'h>) -> Done<'f, 'h> {
        let desc = self.type_operand("fieldtype", ty)?;
        let (cx, of) = (desc.context().clone(), desc.ty().unwrap_or(Type::ANY));
        let name = self.symbol_text(field);
        let index = match &name {
            // A name that nothing holds cannot be a field's.
            Some(name) => cx.names.find(name).and_then(|name| cx.types.field_index(of, name)),
            None => self.int64(field).and_then(|n| usize::try_from(n.checked_sub(1)?).ok()),
        };
        match (index.and_then(|n| cx.types.field_type(of, n)), name) {
            (Some(found), _) => self.scope.type_value(&cx, found),
            (None, Some(_)) => {
                Err(self.scope.raise_fields(ExceptionKind::FieldError, &[Some(ty), Some(field)]))
            }
            (None, None) => Err(self.scope.raise_bounds(ty, field)),
        }
    }

    /// The elements of a tuple or named tuple; `None` for other objects.
    pub(crate) fn tuple_elements(
        &mut self,
        tuple: Root<'f, 'h>,
    ) -> Result<Option<Vec<Root<'f, 'h>>>, Raised> {
        let table = self.object(tuple).desc().field_table();
        if !table.is_tuple() {
            return Ok(None);
        }
        let mut elements = Vec::with_capacity(table.rows().len());
        for n in 0..table.rows().len() {
            let held = At::field_of(self.object(tuple), n).map_or(Held::Undefined, Place::held);
            match self.scope.box_held(held)? {
                Some(element) => elements.push(element),
                None => return Err(self.scope.raise_kind(ExceptionKind::UndefRefError)),
            }
        }
        Ok(Some(elements))
    }
}
