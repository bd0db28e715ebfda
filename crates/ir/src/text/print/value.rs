//! Constants and names as text.
//!
//! A value whose type follows from its context is written bare, any other shows its type: `Int32(5)`, `0x05`,
//! `1.5f0`. A float whose digits would not restore its bits (a NaN with a payload) is written as its bits,
//! `reinterpret(Float64, 0x…)`. As an operand, a constant with parts is `$(QuoteNode(…))`.

use std::fmt::{self, Write};

use super::super::lex::is_operator;
use super::super::resolve::Term;
use super::super::wanted::integer_type;
use crate::base_fn::BaseFn;
use crate::builtin::Builtin;
use crate::constant::{Address, Const};
use crate::context::Context;
use crate::entity::Value;
use crate::func::Func;
use crate::function_name::{BASE, FunctionName};
use crate::ident::{is_identifier, write_name};
use crate::intrinsic::Intrinsic;
use crate::names::Name;
use crate::op::Level;
use crate::show::Shown;
use crate::types::{LowType, PrimitiveRepr, Type, TypeKind};

/// Whether the text of a constant does not show its type.
pub(super) fn is_plain(cx: &Context, constant: &Const) -> bool {
    let Const::Bits { ty, .. } = *constant else { return false };
    match ty.as_low() {
        Some(low) => low.is_int(),
        None => matches!(cx.types.primitive(ty), Some((_, PrimitiveRepr::Signed))),
    }
}

/// Writes the constants and names of one level.
#[derive(Clone, Copy)]
pub(super) struct ValueText<'a> {
    pub(super) cx: &'a Context,
    pub(super) level: Level,
}

impl ValueText<'_> {
    /// A name qualified by a module: `Base.add_int`, `Main.:+`, `Main.var"#f#1"`.
    pub(super) fn qualified(self, w: &mut dyn Write, module: &str, name: &str) -> fmt::Result {
        write!(w, "{module}.")?;
        if !is_identifier(name) && is_operator(name) { write!(w, ":{name}") } else { name_text(w, name) }
    }

    /// A function as a value or callee.
    pub(super) fn function(self, w: &mut dyn Write, function: FunctionName) -> fmt::Result {
        let (module, name) = (self.cx.names.text(function.module), self.cx.names.text(function.name));
        let module = if module != BASE {
            module
        } else if Intrinsic::from_name(name).is_some() {
            "Core.Intrinsics"
        } else if Builtin::from_name(name).is_some() {
            "Core"
        } else {
            BaseFn::from_name(name).map_or(BASE, |f| f.module())
        };
        self.qualified(w, module, name)
    }

    /// A constant that is not plain, or a plain one where type `wanted` is expected.
    pub(super) fn constant(
        self,
        w: &mut dyn Write,
        func: Option<&Func>,
        constant: &Const,
        wanted: Option<Type>,
    ) -> fmt::Result {
        match constant {
            Const::Bits { ty, bits } => self.bits(w, *ty, *bits, wanted),
            Const::Singleton(ty) => self.singleton(w, *ty, true),
            Const::String(text) => write!(w, "{}", Shown::Str(self.cx.names.text(*text).as_bytes())),
            Const::Symbol(name) => write!(w, "{}", Shown::Symbol(self.cx.names.text(*name))),
            Const::Type { of, .. } => write!(w, "{}", self.cx.types.display(*of)),
            Const::Module(name) => {
                let name = self.cx.names.text(*name);
                w.write_str(match name {
                    "Checked" | "Math" => "Base.",
                    "Intrinsics" => "Core.",
                    _ => "",
                })?;
                w.write_str(name)
            }
            Const::Aggregate { ty, fields } => {
                w.write_str("$(QuoteNode(")?;
                self.aggregate(w, func, *ty, fields)?;
                w.write_str("))")
            }
            Const::Address(address) => self.address(w, func, *address),
            Const::Undef(ty) => write!(w, "#undef::{}", self.cx.types.display(*ty)),
        }
    }

    fn bits(self, w: &mut dyn Write, ty: Type, bits: u128, wanted: Option<Type>) -> fmt::Result {
        let types = &self.cx.types;
        let by_bits = |w: &mut dyn Write, width: u32| {
            let digits = width.div_ceil(4) as usize;
            write!(w, "reinterpret({}, 0x{bits:0digits$x})", types.display(ty))
        };
        let bare = integer_type(types, self.level, wanted) == ty;
        if let Some(low) = ty.as_low() {
            return match low {
                LowType::F64 if is_canonical(64, bits) => {
                    write!(w, "{}", Shown::F64(f64::from_bits(bits as u64)))
                }
                LowType::F32 if is_canonical(32, bits) => {
                    write!(w, "{}", Shown::F32(f32::from_bits(bits as u32)))
                }
                LowType::F16 | LowType::F32 | LowType::F64 => by_bits(w, low.bits()),
                LowType::Ptr(_) => write!(w, "{low}(0x{bits:016x})"),
                LowType::V128 => write!(w, "{low}(0x{bits:032x})"),
                _ if bare => write!(w, "{}", signed(bits, low.bits())),
                _ => write!(w, "{low}({})", signed(bits, low.bits())),
            };
        }
        if let Some(pointee) = types.pointee(ty) {
            return write!(w, "Ptr{{{}}} @0x{bits:016x}", types.display(pointee));
        }
        match types.primitive(ty) {
            Some((width, PrimitiveRepr::Signed)) => {
                let value = Shown::Signed(signed(bits, u32::from(width)));
                if bare { write!(w, "{value}") } else { write!(w, "{}({value})", types.display(ty)) }
            }
            Some((width, PrimitiveRepr::Unsigned)) => {
                write!(w, "{}", Shown::Unsigned { bits: width, value: bits })
            }
            Some((_, PrimitiveRepr::Bool)) if bits <= 1 => write!(w, "{}", bits == 1),
            Some((_, PrimitiveRepr::Char)) => write!(w, "{}", Shown::Char(bits as u32)),
            Some((width, PrimitiveRepr::Float)) if is_canonical(width, bits) => match width {
                16 => write!(w, "{}", Shown::F16(bits as u16)),
                32 => write!(w, "{}", Shown::F32(f32::from_bits(bits as u32))),
                _ => write!(w, "{}", Shown::F64(f64::from_bits(bits as u64))),
            },
            Some((width, _)) => by_bits(w, u32::from(width)),
            None => by_bits(w, 128),
        }
    }

    /// The only value of a type. A struct is quoted as an operand, but not as a part.
    fn singleton(self, w: &mut dyn Write, ty: Type, operand: bool) -> fmt::Result {
        match self.cx.types.kind(ty) {
            _ if ty == Type::NOTHING => w.write_str("nothing"),
            TypeKind::Function(name) => self.function(w, *name),
            TypeKind::Tuple { .. } => w.write_str("()"),
            TypeKind::NamedTuple { .. } => w.write_str("(;)"),
            _ if operand => write!(w, "$(QuoteNode({}()))", self.cx.types.display(ty)),
            _ => write!(w, "{}()", self.cx.types.display(ty)),
        }
    }

    fn address(self, w: &mut dyn Write, func: Option<&Func>, address: Address) -> fmt::Result {
        let text = |name: Name| self.cx.names.text(name);
        match address {
            Address::Symbol(name) => write!(w, "symbol_addr({})", Shown::Symbol(text(name))),
            Address::Module(name) => write!(w, "module_addr({})", Shown::Symbol(text(name))),
            Address::Global(name) => write!(w, "global_addr({})", Shown::Symbol(text(name))),
            Address::Foreign(name) => write!(w, "foreign_addr({})", Shown::Symbol(text(name))),
            Address::String(name) => write!(w, "string_addr({})", Shown::Str(text(name).as_bytes())),
            Address::Data(index) => {
                let bytes = func.and_then(|f| f.data().get(index as usize)).map_or(&[][..], |b| b);
                write!(w, "data_addr({})", Shown::Str(bytes))
            }
            Address::Type(ty) => write!(w, "type_addr({})", self.cx.types.display(ty)),
            Address::Instance(ty) => write!(w, "instance_addr({})", self.cx.types.display(ty)),
            Address::Boxed(ty, bits) => write!(w, "boxed_addr({}, {bits})", self.cx.types.display(ty)),
        }
    }

    /// A constant with parts. Its nesting is limited, as is the nesting of its type.
    fn aggregate(self, w: &mut dyn Write, func: Option<&Func>, ty: Type, fields: &[Value]) -> fmt::Result {
        self.parts(w, ty, fields.len(), |w, index| match func.and_then(|func| func.as_const(fields[index])) {
            Some(Const::Aggregate { ty, fields }) => self.aggregate(w, func, *ty, fields),
            Some(Const::Singleton(ty)) => self.singleton(w, *ty, false),
            Some(constant) => self.constant(w, func, constant, None),
            None => w.write_str("#undef"),
        })
    }

    fn parts(
        self,
        w: &mut dyn Write,
        ty: Type,
        count: usize,
        mut part: impl FnMut(&mut dyn Write, usize) -> fmt::Result,
    ) -> fmt::Result {
        let names = match self.cx.types.kind(ty) {
            TypeKind::NamedTuple { names, .. } => Some(names),
            TypeKind::Tuple { .. } => None,
            _ => {
                write!(w, "{}", self.cx.types.display(ty))?;
                None
            }
        };
        let is_tuple = matches!(self.cx.types.kind(ty), TypeKind::NamedTuple { .. } | TypeKind::Tuple { .. });
        w.write_str("(")?;
        for index in 0..count {
            if index > 0 {
                w.write_str(", ")?;
            }
            if let Some(&name) = names.and_then(|names| names.get(index)) {
                name_text(w, self.cx.names.text(name))?;
                w.write_str(" = ")?;
            }
            part(w, index)?;
        }
        w.write_str(if is_tuple && count == 1 { ",)" } else { ")" })
    }

    /// A constant of a check or a global.
    pub(super) fn term(self, w: &mut dyn Write, term: &Term) -> fmt::Result {
        match term {
            Term::Const(Const::Singleton(ty)) => self.singleton(w, *ty, false),
            Term::Const(constant) => self.constant(w, None, constant, None),
            Term::Bytes(bytes) => write!(w, "{}", Shown::Str(bytes)),
            Term::Aggregate { ty, fields } => {
                self.parts(w, *ty, fields.len(), |w, index| self.term(w, &fields[index]))
            }
            Term::Array { ty, dims, items } => {
                let elem = self.cx.types.array_parts(*ty).map_or(Type::ANY, |(elem, _)| elem);
                write!(w, "{}[", self.cx.types.display(elem))?;
                let (rows, columns) = match dims[..] {
                    [rows, columns] => (rows, columns),
                    _ => (1, items.len()),
                };
                let matrix = dims.len() == 2;
                for place in 0..items.len() {
                    let (row, column) = (place / columns, place % columns);
                    if place > 0 {
                        w.write_str(if !matrix {
                            ", "
                        } else if column == 0 {
                            "; "
                        } else {
                            " "
                        })?;
                    }
                    match &items[if matrix { column * rows + row } else { place }] {
                        Term::Const(constant) if is_plain(self.cx, constant) => {
                            self.constant(w, None, constant, Some(elem))?;
                        }
                        item => self.term(w, item)?,
                    }
                }
                w.write_str("]")
            }
        }
    }
}

/// Whether a float is not a NaN, or is the NaN written without its bits.
fn is_canonical(width: u16, bits: u128) -> bool {
    match width {
        16 => bits & 0x7fff <= 0x7c00 || bits == 0x7e00,
        32 => !f32::from_bits(bits as u32).is_nan() || bits == 0x7fc0_0000,
        _ => !f64::from_bits(bits as u64).is_nan() || bits == 0x7ff8_0000_0000_0000,
    }
}

/// The bits as a signed integer of a width.
fn signed(bits: u128, width: u32) -> i128 {
    let unused = 128 - width.clamp(1, 128);
    ((bits << unused) as i128) >> unused
}

/// The name of a function where it is defined or tested, without its module if that is `Main`.
pub(super) fn function_name(w: &mut dyn Write, cx: &Context, function: FunctionName) -> fmt::Result {
    if function.is_main(&cx.names) {
        return name_text(w, cx.names.text(function.name));
    }
    let values = ValueText { cx, level: Level::High };
    values.qualified(w, cx.names.text(function.module), cx.names.text(function.name))
}

/// A name, quoted if necessary.
pub(super) fn name_text(mut w: &mut dyn Write, name: &str) -> fmt::Result {
    write_name(&mut w, name)
}
