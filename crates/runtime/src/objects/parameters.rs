//! Static parameters of a running call: the values of the variables of its method's `where`.

use std::sync::Arc;

use brolga_ir::types::{Statics, Type, TypeKind};
use brolga_ir::{Context, Name};

use crate::heap::Root;
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::throw::Raised;
use super::variables::Variables;

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// The value with the number in the second operand, from the `where` in the first operand and the
    /// arguments after them.
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
        let variables = Variables::new(cx.clone(), statics, vararg);
        let (cx, values) = variables.bind(self.runtime.heap(), &objects).unwrap_or((cx, Vec::new()));
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
            TypeKind::Bits { ty, bits } => {
                let desc = self.scope.desc_of(cx, ty)?;
                match self.scope.instance(&desc) {
                    Some(only) => Ok(only),
                    None => self.scope.box_bits(cx, ty, bits),
                }
            }
            _ => self.scope.type_value(cx, value),
        }
    }

    pub(crate) fn static_defined(&mut self, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let (_, _, value) = self.bound(all)?;
        self.scope.bool(value.is_some())
    }
}
