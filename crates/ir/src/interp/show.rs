//! Values as Julia's `show` and `print` write them.
//!
//! Scalars, strings and symbols are the business of [`crate::show`]; here they are put together. Inside a container whose
//! element type says what an element is, the element is written without its own mark, so each part is written knowing the
//! type that its surroundings announce:
//!
//! ```text
//! Float32[1.0, 2.0]          announced Float32, so `1.0` and not `1.0f0`
//! Any[1.0f0, true]           announced Any
//! [(1, 0x02)]                Int64 and UInt8 are told by their digits, so no prefix
//! ```
//!
//! A list of things still to be written replaces recursion. A mutable struct that is inside itself is written as
//! `#= circular reference @-n =#`, where *n* counts the levels up to it.
//!
//! Not done: the special forms of `Complex`, `Rational` and ranges, which print as plain structs.

use super::error::Eval;
use super::heap::Object;
use super::value::{ObjId, Val};
use super::{Interp, Outcome};
use crate::show::{Element, Shown, printed};
use crate::types::{PrimitiveRepr, Type, TypeKind};
use rustc_hash::FxHashMap;
use std::fmt::Write;

enum Item {
    /// A value, and the type that is announced for it.
    Val(Option<Val>, Type),
    Text(&'static str),
    Owned(String),
    /// An object is done.
    Leave,
}

/// The objects that are being written, outermost first.
#[derive(Default)]
struct Open {
    path: Vec<ObjId>,
    levels: FxHashMap<ObjId, usize>,
}

impl Open {
    /// Goes into an object; if it is open already, how many levels up.
    fn enter(&mut self, id: ObjId) -> Option<usize> {
        if let Some(level) = self.levels.get(&id) {
            return Some(self.path.len() - level);
        }
        self.levels.insert(id, self.path.len());
        self.path.push(id);
        None
    }

    fn leave(&mut self) {
        if let Some(id) = self.path.pop() {
            self.levels.remove(&id);
        }
    }
}

impl Interp<'_> {
    /// The text that Julia's `show` writes for a value.
    pub fn show(&mut self, val: &Val) -> Result<String, Outcome> {
        let mut out = String::new();
        match self.show_into(&mut out, val) {
            Ok(()) => Ok(out),
            Err(stop) => Err(self.outcome_without_place(stop)),
        }
    }

    /// The bytes that Julia's `print` writes: text without quotes, numbers without marks.
    pub(super) fn print_bytes(&mut self, val: &Val) -> Eval<Vec<u8>> {
        if let Val::Object { id, .. } = *val
            && let Some(text) = self.text(id)?
        {
            return Ok(text);
        }
        if let Val::Symbol(name) = *val {
            return Ok(self.module.cx.names.text(name).into());
        }
        if let Some(shown) = self.shown(val) {
            return Ok(printed(shown));
        }
        let mut out = String::new();
        self.show_into(&mut out, val)?;
        Ok(out.into_bytes())
    }

    fn show_into(&mut self, out: &mut String, val: &Val) -> Eval<()> {
        let mut open = Open::default();
        let mut work = vec![Item::Val(Some(val.clone()), Type::ANY)];
        while let Some(item) = work.pop() {
            match item {
                Item::Text(text) => out.push_str(text),
                Item::Owned(text) => out.push_str(&text),
                Item::Leave => open.leave(),
                Item::Val(None, _) => out.push_str("#undef"),
                Item::Val(Some(val), announced) => {
                    let mut parts = self.parts(out, &val, announced, &mut open)?;
                    work.extend(parts.drain(..).rev());
                }
            }
        }
        Ok(())
    }

    /// Writes a value without parts; gives the pieces of any other, in order.
    fn parts(&mut self, out: &mut String, val: &Val, announced: Type, open: &mut Open) -> Eval<Vec<Item>> {
        let ty = val.ty(self.types());
        if let Some(shown) = self.shown(val) {
            // Writing to a string cannot fail.
            let _ = if announced == ty { write!(out, "{}", Element(shown)) } else { write!(out, "{shown}") };
            return Ok(Vec::new());
        }
        match val {
            Val::Bits { bits, .. } => {
                let text = self.types().display(ty);
                let _ = match self.types().pointee(ty) {
                    Some(_) => write!(out, "{text} @0x{bits:016x}"),
                    None => write!(
                        out,
                        "{text}(0x{bits:0digits$x})",
                        digits = self.types().primitive(ty).map_or(32, |(bits, _)| usize::from(bits) / 4)
                    ),
                };
            }
            Val::Singleton(_) => self.show_singleton(out, ty),
            Val::Symbol(name) => {
                let _ = write!(out, "{}", Shown::Symbol(self.module.cx.names.text(*name)));
            }
            Val::Type(of) => {
                let _ = write!(out, "{}", self.types().display(*of));
            }
            Val::Module(name) => out.push_str(self.module.cx.names.text(*name)),
            Val::Token(_) => out.push_str("#token"),
            Val::MemoryRef { memory, offset, .. } => {
                let _ = write!(out, "{}(", self.types().display(ty));
                let elem = self.types().memory_ref_element(ty).unwrap_or(Type::ANY);
                let object = self.types().memory(elem).ok().map(|ty| Val::Object { ty, id: *memory });
                let position = format!(", {})", offset.wrapping_add(1));
                return Ok(vec![Item::Val(object, Type::ANY), Item::Owned(position)]);
            }
            Val::Struct(data) => return Ok(self.struct_parts(ty, announced, data.fields())),
            Val::Object { id, .. } => {
                if let Some(up) = open.enter(*id) {
                    let _ = write!(out, "#= circular reference @-{up} =#");
                    return Ok(Vec::new());
                }
                let mut parts = self.object_parts(ty, announced, *id)?;
                parts.push(Item::Leave);
                return Ok(parts);
            }
        }
        Ok(Vec::new())
    }

    fn show_singleton(&self, out: &mut String, ty: Type) {
        let types = self.types();
        let text = match types.kind(ty) {
            TypeKind::Function(name) => self.module.cx.names.text(*name).to_owned(),
            TypeKind::TypeOf(of) => types.display(*of).to_string(),
            TypeKind::Tuple { .. } => "()".to_owned(),
            TypeKind::NamedTuple { .. } => "NamedTuple()".to_owned(),
            _ if ty == Type::NOTHING => "nothing".to_owned(),
            _ => match types.display(ty).to_string().as_str() {
                "Missing" => "missing".to_owned(),
                name => format!("{name}()"),
            },
        };
        out.push_str(&text);
    }

    /// The pieces of a struct, tuple or named tuple.
    fn struct_parts(&self, ty: Type, announced: Type, fields: &[Option<Val>]) -> Vec<Item> {
        let types = self.types();
        let names = &self.module.cx.names;
        let mut parts = Vec::with_capacity(2 * fields.len() + 2);
        let announced_field = |n: usize| match types.kind(announced) {
            TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. } => types.field_type(announced, n),
            _ => None,
        };
        let is_pair = types.nominal_parts(ty).is_some_and(|(decl, _)| {
            let data = types.decl(decl);
            names.text(data.name) == "Pair" && names.text(data.module).is_empty()
        });
        if is_pair && fields.len() == 2 {
            parts.push(Item::Val(fields[0].clone(), Type::ANY));
            parts.push(Item::Text(" => "));
            parts.push(Item::Val(fields[1].clone(), Type::ANY));
            return parts;
        }
        let labels = match types.kind(ty) {
            TypeKind::NamedTuple { names, .. } => Some(names),
            TypeKind::Tuple { .. } => None,
            _ => {
                parts.push(Item::Owned(types.display(ty).to_string()));
                None
            }
        };
        parts.push(Item::Text("("));
        for (n, field) in fields.iter().enumerate() {
            if n > 0 {
                parts.push(Item::Text(", "));
            }
            if let Some(&label) = labels.and_then(|l| l.get(n)) {
                let mut text = String::new();
                let _ = crate::ident::write_name(&mut text, names.text(label));
                parts.push(Item::Owned(text + " = "));
            }
            parts.push(Item::Val(field.clone(), announced_field(n).unwrap_or(Type::ANY)));
        }
        let is_tuple = matches!(types.kind(ty), TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. });
        parts.push(Item::Text(if is_tuple && fields.len() == 1 { ",)" } else { ")" }));
        parts
    }

    fn object_parts(&mut self, ty: Type, announced: Type, id: ObjId) -> Eval<Vec<Item>> {
        if let Some(bytes) = self.text(id)? {
            return Ok(vec![Item::Owned(Shown::Str(&bytes).to_string())]);
        }
        let (memory, offset, dims) = match self.heap.get(id) {
            Some(Object::Struct(fields)) => {
                let fields = fields.clone();
                return Ok(self.struct_parts(ty, announced, &fields));
            }
            Some(Object::Array(array)) => (array.memory, array.offset, array.dims.clone()),
            Some(Object::Memory(memory)) => (id, 0, vec![memory.length as i64]),
            _ => return Ok(Vec::new()),
        };
        let elem = self.heap.memory(memory).map_or(Type::ANY, |m| m.elem);
        let length = self.extent(id).map_or(0, |(_, length)| length as i64);
        let mut parts = Vec::new();
        if dims.len() > 1 && length == 0 {
            let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
            parts.push(Item::Owned(format!("{}(undef, {})", self.types().display(ty), dims.join(", "))));
            return Ok(parts);
        }
        if announced != ty && (length == 0 || !self.is_told_by_its_text(elem)) {
            parts.push(Item::Owned(self.types().display(elem).to_string()));
        }
        parts.push(Item::Text(if dims.is_empty() { "fill(" } else { "[" }));
        let rows = dims.first().copied().unwrap_or(1);
        let columns = dims.get(1).copied().unwrap_or(1);
        if dims.len() <= 1 {
            for n in 0..length {
                if n > 0 {
                    parts.push(Item::Text(", "));
                }
                parts.push(Item::Val(self.element(memory, offset.wrapping_add(n))?, elem));
            }
        } else {
            let page_size = rows.saturating_mul(columns).max(1);
            for page in 0..length / page_size {
                if page > 0 {
                    // As many semicolons as the number of the highest dimension that just ended.
                    let mut size = 1;
                    let ended = dims[2..].iter().take_while(|&&d| {
                        size = i64::saturating_mul(size, d);
                        page % size == 0
                    });
                    parts.push(Item::Owned(";".repeat(3 + ended.count()) + " "));
                }
                for row in 0..rows {
                    if row > 0 {
                        parts.push(Item::Text("; "));
                    }
                    for column in 0..columns {
                        if column > 0 {
                            parts.push(Item::Text(" "));
                        }
                        // Saturated numbers are outside every memory, and so found.
                        let at = page.saturating_mul(page_size).saturating_add(column.saturating_mul(rows));
                        let at = offset.saturating_add(at).saturating_add(row);
                        parts.push(Item::Val(self.element(memory, at)?, elem));
                    }
                }
            }
        }
        parts.push(Item::Text(if dims.is_empty() { ")" } else { "]" }));
        Ok(parts)
    }

    /// Whether the text of an element shows its type, so that an array needs no prefix.
    fn is_told_by_its_text(&self, ty: Type) -> bool {
        let types = self.types();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            let told = matches!(ty, Type::INT64 | Type::FLOAT64 | Type::CHAR | Type::STRING | Type::SYMBOL)
                || types.is_singleton(ty);
            if told {
                continue;
            }
            match (types.tuple_elements(ty), types.array_parts(ty)) {
                (Some(elems), _) => work.extend(elems),
                (None, Some((elem, _))) => work.push(elem),
                (None, None) => return false,
            }
        }
        true
    }

    /// The scalar form of a value of a builtin primitive type.
    fn shown(&self, val: &Val) -> Option<Shown<'static>> {
        let Val::Bits { ty, bits } = *val else { return None };
        let low = match ty.as_low() {
            Some(low) if low.is_float() => Some((low.bits() as u16, PrimitiveRepr::Float)),
            Some(low) => Some((low.bits() as u16, PrimitiveRepr::Signed)),
            None => None,
        };
        let (width, repr) = low.or_else(|| self.types().primitive(ty))?;
        Some(match (repr, width) {
            (PrimitiveRepr::Bool, _) => Shown::Bool(bits != 0),
            (PrimitiveRepr::Char, _) => Shown::Char(bits as u32),
            (PrimitiveRepr::Signed, _) => {
                let unused = 128 - u32::from(width);
                Shown::Signed((bits << unused).cast_signed() >> unused)
            }
            (PrimitiveRepr::Unsigned, _) => Shown::Unsigned { bits: width, value: bits },
            (PrimitiveRepr::Float, 16) => Shown::F16(bits as u16),
            (PrimitiveRepr::Float, 32) => Shown::F32(f32::from_bits(bits as u32)),
            (PrimitiveRepr::Float, 64) => Shown::F64(f64::from_bits(bits as u64)),
            (PrimitiveRepr::Float | PrimitiveRepr::Bits, _) => return None,
        })
    }
}
