//! Strings, declarations and types, which the rest refers to by number.
//!
//! Declarations come first, in the order in which they were made, because printing keeps that order; each says its number.
//! Each entry refers to earlier ones only. A
//! definition follows the types that it names and the definition of its supertype. Unions follow the
//! definitions of their members without fields, because their normal form depends on which members have a single value.

use super::bytes::{Sink, Source, position};
use super::{BinaryError, Refusal};
use crate::context::Context;
use crate::function_name::{FunctionName, is_module_path};
use crate::names::Name;
use crate::types::{
    Decl, DeclBody, DeclKind, FieldDecl, LowType, PrimitiveRepr, Type, TypeError, TypeKind, Types,
};
use rustc_hash::{FxHashMap, FxHashSet};

const DEFINE: u8 = 2;
const BOTTOM: u8 = 3;
const ANY: u8 = 4;
const TOKEN: u8 = 5;
const LOW: u8 = 6;
const NOMINAL: u8 = 7;
const GENERIC: u8 = 8;
const TUPLE: u8 = 9;
const VARARG_TUPLE: u8 = 10;
const NAMED_TUPLE: u8 = 11;
const UNION: u8 = 12;
const TYPE_OF: u8 = 13;
const FUNCTION: u8 = 14;
const PARAM: u8 = 15;
const INT: u8 = 16;
const SYM: u8 = 17;
const BITS_VALUE: u8 = 18;
const VALUES: u8 = 20;
const NTUPLE: u8 = 19;
const UNION_ALL: u8 = 21;

const ABSTRACT: u8 = 0;
const PRIMITIVE: u8 = 1;
const STRUCT: u8 = 2;
const MUTABLE_STRUCT: u8 = 3;
const OPAQUE: u8 = 4;

/// Unions in supertypes of singletons in unions, and so on: rare in programs, but they must not exhaust the stack.
const MAX_NESTING: usize = 32;

const REPRS: [PrimitiveRepr; 6] = [
    PrimitiveRepr::Signed,
    PrimitiveRepr::Unsigned,
    PrimitiveRepr::Float,
    PrimitiveRepr::Bool,
    PrimitiveRepr::Char,
    PrimitiveRepr::Bits,
];

// ----- writing -----

/// The tables of a file being written: numbers are given in the order in which things are first named.
pub(super) struct Names<'a> {
    cx: &'a Context,
    strings: Sink,
    string_numbers: FxHashMap<Box<str>, u64>,
    entries: Sink,
    entry_count: usize,
    types: FxHashMap<Type, u64>,
    decls: FxHashMap<Decl, u64>,
    /// Declarations whose definition may still have to be written.
    undefined: Vec<Decl>,
    defined: FxHashSet<Decl>,
    /// How many definitions are being written for the sake of unions, one inside the other.
    nesting: usize,
}

impl<'a> Names<'a> {
    pub(super) fn new(cx: &'a Context) -> Self {
        Names {
            cx,
            strings: Sink::default(),
            string_numbers: FxHashMap::default(),
            entries: Sink::default(),
            entry_count: 0,
            types: FxHashMap::default(),
            decls: FxHashMap::default(),
            undefined: Vec::new(),
            defined: FxHashSet::default(),
            nesting: 0,
        }
    }

    pub(super) fn text(&mut self, out: &mut Sink, text: &str) {
        let number = match self.string_numbers.get(text) {
            Some(&number) => number,
            None => {
                let number = self.string_numbers.len() as u64;
                self.string_numbers.insert(text.into(), number);
                self.strings.block(text.as_bytes());
                number
            }
        };
        out.number(number);
    }

    pub(super) fn name(&mut self, out: &mut Sink, name: Name) {
        self.text(out, self.cx.names.text(name));
    }

    pub(super) fn ty(&mut self, out: &mut Sink, ty: Type) {
        let number = self.type_number(ty);
        out.number(number);
        // A definition names types, which may name declarations.
        while let Some(decl) = self.undefined.pop() {
            self.define_with_supertypes(decl);
        }
    }

    pub(super) fn tys(&mut self, out: &mut Sink, types: &[Type]) {
        out.count(types.len());
        for &ty in types {
            self.ty(out, ty);
        }
    }

    pub(super) fn write(mut self, out: &mut Sink) {
        let mut decls: Vec<(Decl, u64)> = self.decls.iter().map(|(&decl, &number)| (decl, number)).collect();
        decls.sort_unstable();
        let mut heads = Sink::default();
        for &(decl, number) in &decls {
            let data = self.cx.types.decl(decl);
            heads.number(number);
            heads.byte(u8::from(decl.is_builtin()));
            self.name(&mut heads, data.name);
            if !decl.is_builtin() {
                heads.count(data.params.len());
                for &param in &data.params {
                    self.name(&mut heads, param);
                }
            }
        }
        out.count(self.string_numbers.len());
        out.bytes.extend(self.strings.bytes);
        out.count(decls.len());
        out.bytes.extend(heads.bytes);
        out.count(self.entry_count);
        out.bytes.extend(self.entries.bytes);
    }

    fn entry(&mut self, entry: Sink) {
        self.entries.bytes.extend(entry.bytes);
        self.entry_count += 1;
    }

    /// Types nest at most [`MAX_DEPTH`](crate::types::MAX_DEPTH) deep, so this may recurse.
    fn type_number(&mut self, ty: Type) -> u64 {
        if let Some(&number) = self.types.get(&ty) {
            return number;
        }
        let mut entry = Sink::default();
        match self.cx.types.kind(ty) {
            TypeKind::Bottom => entry.byte(BOTTOM),
            TypeKind::Any => entry.byte(ANY),
            TypeKind::Token => entry.byte(TOKEN),
            TypeKind::Low(low) => {
                entry.byte(LOW);
                entry.byte(position(&LowType::ALL, low));
            }
            TypeKind::Nominal { decl, params } => {
                let decl = self.decl_number(*decl);
                entry.byte(NOMINAL);
                entry.number(decl);
                self.parts(&mut entry, params);
            }
            TypeKind::Generic(decl) => {
                let decl = self.decl_number(*decl);
                entry.byte(GENERIC);
                entry.number(decl);
            }
            TypeKind::Tuple { elems, vararg: None } => {
                entry.byte(TUPLE);
                self.parts(&mut entry, elems);
            }
            TypeKind::Tuple { elems, vararg: Some(rest) } => {
                entry.byte(VARARG_TUPLE);
                self.parts(&mut entry, elems);
                let rest = self.type_number(*rest);
                entry.number(rest);
            }
            TypeKind::NamedTuple { names, tuple } => {
                entry.byte(NAMED_TUPLE);
                entry.count(names.len());
                for &name in names {
                    self.name(&mut entry, name);
                }
                let tuple = self.type_number(*tuple);
                entry.number(tuple);
            }
            TypeKind::Union(members) => {
                self.define_singletons(members);
                entry.byte(UNION);
                self.parts(&mut entry, members);
            }
            TypeKind::TypeOf(of) => {
                entry.byte(TYPE_OF);
                let of = self.type_number(*of);
                entry.number(of);
            }
            TypeKind::Function(name) => {
                entry.byte(FUNCTION);
                self.name(&mut entry, name.module);
                self.name(&mut entry, name.name);
            }
            TypeKind::Param(index) => {
                entry.byte(PARAM);
                entry.number(u64::from(*index));
            }
            TypeKind::Int(value) => {
                entry.byte(INT);
                entry.signed(*value);
            }
            TypeKind::Sym(name) => {
                entry.byte(SYM);
                self.name(&mut entry, *name);
            }
            TypeKind::Bits { ty, bits } => {
                let of = self.type_number(*ty);
                entry.byte(BITS_VALUE);
                entry.number(of);
                entry.wide(*bits);
            }
            TypeKind::Values(elems) => {
                entry.byte(VALUES);
                self.parts(&mut entry, elems);
            }
            TypeKind::NTuple { count, elem } => {
                let (count, elem) = (self.type_number(*count), self.type_number(*elem));
                entry.byte(NTUPLE);
                entry.number(count);
                entry.number(elem);
            }
            TypeKind::UnionAll { bounds, body } => {
                let (lowers, uppers): (Vec<Type>, Vec<Type>) = bounds.iter().copied().unzip();
                entry.byte(UNION_ALL);
                self.parts(&mut entry, &lowers);
                self.parts(&mut entry, &uppers);
                let body = self.type_number(*body);
                entry.number(body);
            }
        }
        // A definition that was needed on the way may name the type itself.
        if let Some(&number) = self.types.get(&ty) {
            return number;
        }
        let number = self.types.len() as u64;
        self.types.insert(ty, number);
        self.entry(entry);
        number
    }

    fn parts(&mut self, entry: &mut Sink, parts: &[Type]) {
        entry.count(parts.len());
        for &part in parts {
            let number = self.type_number(part);
            entry.number(number);
        }
    }

    fn decl_number(&mut self, decl: Decl) -> u64 {
        if let Some(&number) = self.decls.get(&decl) {
            return number;
        }
        let number = self.decls.len() as u64;
        self.decls.insert(decl, number);
        self.undefined.push(decl);
        number
    }

    /// A supertype has to be defined before what is below it.
    fn define_with_supertypes(&mut self, decl: Decl) {
        let mut chain = Vec::new();
        let mut at = Some(decl);
        while let Some(decl) = at.filter(|&d| !d.is_builtin() && self.defined.insert(d)) {
            chain.push(decl);
            let above = self.cx.types.body(decl).and_then(|b| self.cx.types.nominal_parts(b.supertype));
            at = above.map(|(above, _)| above);
        }
        while let Some(decl) = chain.pop() {
            self.define(decl);
        }
    }

    /// The normal form of a union has types of one value first, so those among its members are defined before it.
    fn define_singletons(&mut self, members: &[Type]) {
        if self.nesting == MAX_NESTING {
            return;
        }
        self.nesting += 1;
        for &member in members.iter().filter(|&&m| self.cx.types.is_singleton(m)) {
            if let Some((decl, _)) = self.cx.types.nominal_parts(member) {
                self.decl_number(decl);
                self.define_with_supertypes(decl);
            }
        }
        self.nesting -= 1;
    }

    fn define(&mut self, decl: Decl) {
        let Some(body) = self.cx.types.body(decl) else { return };
        let number = self.decl_number(decl);
        let mut entry = Sink::default();
        entry.byte(DEFINE);
        entry.number(number);
        let supertype = self.type_number(body.supertype);
        entry.number(supertype);
        match &body.kind {
            DeclKind::Abstract => entry.byte(ABSTRACT),
            DeclKind::Opaque => entry.byte(OPAQUE),
            DeclKind::Primitive { bits, repr } => {
                entry.byte(PRIMITIVE);
                entry.number(u64::from(*bits));
                entry.byte(position(&REPRS, repr));
            }
            DeclKind::Struct { mutable, fields } => {
                entry.byte(if *mutable { MUTABLE_STRUCT } else { STRUCT });
                entry.count(fields.len());
                for field in fields {
                    self.name(&mut entry, field.name);
                    let ty = self.type_number(field.ty);
                    entry.number(ty);
                    entry.byte(u8::from(field.is_const) | u8::from(field.is_atomic) << 1);
                }
            }
        }
        self.entry(entry);
    }
}

// ----- reading -----

/// The tables of a file being read.
pub(super) struct Tables {
    names: Vec<Name>,
    texts: Vec<Box<str>>,
    types: Vec<Type>,
    /// The types that parameters of declarations occur in.
    open: FxHashSet<Type>,
    decls: Vec<Decl>,
}

impl Tables {
    pub(super) fn read(source: &mut Source<'_>, cx: &Context) -> Result<Tables, BinaryError> {
        let mut tables =
            Tables { names: vec![], texts: vec![], types: vec![], open: FxHashSet::default(), decls: vec![] };
        for _ in 0..source.count()? {
            let Ok(text) = std::str::from_utf8(source.block()?) else { return source.refuse(Refusal::Utf8) };
            tables.names.push(cx.names.intern(text));
            tables.texts.push(text.into());
        }
        let count = source.count()?;
        let mut decls = vec![None; count];
        for _ in 0..count {
            let number = source.index("declaration", count)?;
            decls[number] = Some(tables.head(source, &cx.types)?);
        }
        for (number, decl) in decls.into_iter().enumerate() {
            match decl {
                Some(decl) => tables.decls.push(decl),
                None => {
                    let number = number as u64;
                    return source.refuse(Refusal::Reference { what: "declaration", number });
                }
            }
        }
        for _ in 0..source.count()? {
            tables.entry(source, &cx.types)?;
        }
        let is_undefined = |&&decl: &&Decl| !decl.is_builtin() && cx.types.body(decl).is_none();
        if let Some(&decl) = tables.decls.iter().find(is_undefined) {
            let name = cx.names.text(cx.types.decl(decl).name);
            return source.refuse(Refusal::Type(format!("the type `{name}` is declared and not defined")));
        }
        Ok(tables)
    }

    fn head(&self, source: &mut Source<'_>, types: &Types) -> Result<Decl, BinaryError> {
        let start = source.offset();
        if source.flag()? {
            let name = self.name(source)?;
            return match types.find_builtin(name) {
                Some(decl) => Ok(decl),
                None => {
                    let name = types.names().text(name).to_owned();
                    source.refuse(Refusal::Name { what: "builtin type", name })
                }
            };
        }
        let name = self.written(source)?;
        let params = self.names(source)?;
        types.declare(name, &params).map_err(|error| wrong(types, start, &error))
    }

    pub(super) fn text(&self, source: &mut Source<'_>) -> Result<&str, BinaryError> {
        let number = source.index("string", self.texts.len())?;
        Ok(&self.texts[number])
    }

    pub(super) fn name(&self, source: &mut Source<'_>) -> Result<Name, BinaryError> {
        let number = source.index("string", self.names.len())?;
        Ok(self.names[number])
    }

    /// A type of a value: parameters of declarations stand for none.
    pub(super) fn ty(&self, source: &mut Source<'_>) -> Result<Type, BinaryError> {
        let ty = self.part(source)?;
        match self.open.contains(&ty) {
            true => source.refuse(Refusal::Type("a type parameter stands outside of a declaration".into())),
            false => Ok(ty),
        }
    }

    /// A type inside of another one, of a declaration, or of what says how variables are bound.
    pub(super) fn part(&self, source: &mut Source<'_>) -> Result<Type, BinaryError> {
        let number = source.index("type", self.types.len())?;
        Ok(self.types[number])
    }

    pub(super) fn parts(&self, source: &mut Source<'_>) -> Result<Vec<Type>, BinaryError> {
        (0..source.count()?).map(|_| self.part(source)).collect()
    }

    /// A name and what it says.
    pub(super) fn named(&self, source: &mut Source<'_>) -> Result<(Name, &str), BinaryError> {
        let number = source.index("string", self.names.len())?;
        Ok((self.names[number], &self.texts[number]))
    }

    /// A name that can be written: control characters cannot, except in symbols and strings.
    pub(super) fn written(&self, source: &mut Source<'_>) -> Result<Name, BinaryError> {
        let (name, text) = self.named(source)?;
        if text.chars().any(char::is_control) {
            return source.refuse(Refusal::Name { what: "thing", name: text.escape_debug().to_string() });
        }
        Ok(name)
    }

    pub(super) fn tys(&self, source: &mut Source<'_>) -> Result<Vec<Type>, BinaryError> {
        (0..source.count()?).map(|_| self.ty(source)).collect()
    }

    fn decl(&self, source: &mut Source<'_>) -> Result<Decl, BinaryError> {
        let number = source.index("declaration", self.decls.len())?;
        Ok(self.decls[number])
    }

    fn names(&self, source: &mut Source<'_>) -> Result<Vec<Name>, BinaryError> {
        (0..source.count()?).map(|_| self.written(source)).collect()
    }

    fn entry(&mut self, source: &mut Source<'_>, types: &Types) -> Result<(), BinaryError> {
        let start = source.offset();
        let wrong = |error: TypeError| wrong(types, start, &error);
        let ty = match source.byte()? {
            DEFINE => {
                let decl = self.decl(source)?;
                let body = self.body(source)?;
                return types.define(decl, body.supertype, body.kind).map_err(wrong);
            }
            BOTTOM => Type::BOTTOM,
            ANY => Type::ANY,
            TOKEN => Type::TOKEN,
            LOW => Type::low(source.choice("low type", &LowType::ALL)?),
            NOMINAL => {
                let decl = self.decl(source)?;
                types.nominal(decl, &self.parts(source)?).map_err(wrong)?
            }
            GENERIC => {
                let decl = self.decl(source)?;
                types.nominal(decl, &[]).map_err(wrong)?
            }
            TUPLE => types.tuple(&self.parts(source)?).map_err(wrong)?,
            VARARG_TUPLE => {
                let elems = self.parts(source)?;
                types.tuple_vararg(&elems, self.part(source)?).map_err(wrong)?
            }
            NAMED_TUPLE => {
                let names = self.names(source)?;
                types.named_tuple(&names, self.part(source)?).map_err(wrong)?
            }
            UNION => types.union(&self.parts(source)?).map_err(wrong)?,
            TYPE_OF => types.type_of(self.part(source)?).map_err(wrong)?,
            FUNCTION => {
                let (module, text) = self.named(source)?;
                if !is_module_path(text) {
                    let name = text.escape_debug().to_string();
                    return source.refuse(Refusal::Name { what: "module", name });
                }
                types.function_named(FunctionName { module, name: self.written(source)? })
            }
            PARAM => types.param(source.small()?),
            INT => types.int(source.signed()?),
            SYM => types.sym(self.name(source)?),
            BITS_VALUE => {
                let of = self.part(source)?;
                let bits = source.wide()?;
                match types.primitive(of) {
                    Some((width, _)) if width >= 128 || bits >> width == 0 => types.bits_value(of, bits),
                    _ => return source.refuse(Refusal::Number),
                }
            }
            VALUES => {
                let elems = self.parts(source)?;
                if !elems.iter().all(|&elem| types.is_value(elem)) {
                    return source.refuse(Refusal::Number);
                }
                types.tuple_value(&elems).map_err(wrong)?
            }
            NTUPLE => {
                let count = self.part(source)?;
                types.ntuple(count, self.part(source)?).map_err(wrong)?
            }
            UNION_ALL => {
                let (lowers, uppers) = (self.parts(source)?, self.parts(source)?);
                if lowers.len() != uppers.len() {
                    return source.refuse(Refusal::Number);
                }
                let bounds: Vec<(Type, Type)> = lowers.into_iter().zip(uppers).collect();
                types.union_all(&bounds, self.part(source)?).map_err(wrong)?
            }
            tag => return source.refuse(Refusal::Tag { what: "declaration or type", tag }),
        };
        let is_open = match types.kind(ty) {
            TypeKind::Param(_) => true,
            TypeKind::Nominal { params, .. } => self.any_open(params),
            TypeKind::Tuple { elems, vararg } => self.any_open(elems) || self.any_open(vararg.as_slice()),
            TypeKind::NamedTuple { tuple, .. } => self.open.contains(tuple),
            TypeKind::Union(members) => self.any_open(members),
            TypeKind::TypeOf(of) => self.open.contains(of),
            TypeKind::NTuple { count, elem } => self.any_open(&[*count, *elem]),
            _ => false,
        };
        if is_open {
            self.open.insert(ty);
        }
        self.types.push(ty);
        Ok(())
    }

    fn any_open(&self, types: &[Type]) -> bool {
        types.iter().any(|ty| self.open.contains(ty))
    }

    fn body(&self, source: &mut Source<'_>) -> Result<DeclBody, BinaryError> {
        let supertype = self.part(source)?;
        let kind = match source.byte()? {
            ABSTRACT => DeclKind::Abstract,
            OPAQUE => DeclKind::Opaque,
            PRIMITIVE => {
                let bits = source.small()?;
                let Ok(bits) = u16::try_from(bits) else { return source.refuse(Refusal::Number) };
                DeclKind::Primitive { bits, repr: source.choice("kind of bits", &REPRS)? }
            }
            tag @ (STRUCT | MUTABLE_STRUCT) => {
                let fields = (0..source.count()?).map(|_| self.field(source)).collect::<Result<_, _>>()?;
                DeclKind::Struct { mutable: tag == MUTABLE_STRUCT, fields }
            }
            tag => return source.refuse(Refusal::Tag { what: "definition", tag }),
        };
        Ok(DeclBody { supertype, kind })
    }

    fn field(&self, source: &mut Source<'_>) -> Result<FieldDecl, BinaryError> {
        let name = self.written(source)?;
        let ty = self.part(source)?;
        match source.byte()? {
            flags @ 0..4 => Ok(FieldDecl { name, ty, is_const: flags & 1 != 0, is_atomic: flags & 2 != 0 }),
            tag => source.refuse(Refusal::Tag { what: "kind of field", tag }),
        }
    }
}

fn wrong(types: &Types, offset: usize, error: &TypeError) -> BinaryError {
    BinaryError { offset, refusal: Refusal::Type(error.display(types).to_string()) }
}
