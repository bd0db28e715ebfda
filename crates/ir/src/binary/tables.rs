//! Strings, declarations and types, which the other sections refer to by number.
//!
//! Declarations come first, in the order in which they were made, because printing keeps that order; each says its number.
//! A type is made of types with lower numbers. Definitions have their own list, in the order in which they
//! are made: a supertype's definition comes first, and singleton members are defined before a type that names
//! a union of them, because the normal form of a union depends on which members have a single value.
//!
//! **Reading.** Declarations and definitions are read first. A string or type is read when it is first named, with those that it is made of, and
//! kept; so a reader of one function reads what that function names.

use super::bytes::{Sink, Source, position};
use super::sections::{DECLS, DEFINITIONS, Directory, List, ListSink, STRINGS, TYPES};
use super::{BinaryError, Refusal};
use crate::constant::Const;
use crate::context::Context;
use crate::function_name::{FunctionName, is_module_path};
use crate::names::Name;
use crate::types::{
    Decl, DeclBody, DeclKind, FieldDecl, LowType, MAX_DEPTH, PrimitiveRepr, Type, TypeError, TypeKind, Types,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::sync::OnceLock;

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

/// Bounds the chain of supertypes of singletons in unions, and so on: long ones are rare, but must not
/// exhaust the stack.
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

/// The tables of a file being written: numbers are assigned in order of first use.
pub(super) struct Names<'a> {
    cx: &'a Context,
    strings: ListSink,
    string_numbers: FxHashMap<Box<str>, u64>,
    definitions: Sink,
    entries: ListSink,
    types: FxHashMap<Type, u64>,
    decls: FxHashMap<Decl, u64>,
    /// Declarations whose definition may still have to be written.
    undefined: Vec<Decl>,
    defined: FxHashSet<Decl>,
    /// The nesting depth of definitions being written for unions.
    nesting: usize,
}

impl<'a> Names<'a> {
    pub(super) fn new(cx: &'a Context) -> Self {
        Names {
            cx,
            strings: ListSink::default(),
            string_numbers: FxHashMap::default(),
            definitions: Sink::default(),
            entries: ListSink::default(),
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
                self.strings.push(text.as_bytes());
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

    /// The sections of strings, declarations, definitions and types.
    pub(super) fn finish(mut self) -> [Vec<u8>; 4] {
        let mut decls: Vec<(Decl, u64)> = self.decls.iter().map(|(&decl, &number)| (decl, number)).collect();
        decls.sort_unstable();
        let mut heads = Sink::default();
        heads.count(decls.len());
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
        [self.strings.finish(), heads.bytes, self.definitions.bytes, self.entries.finish()]
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
        // A definition written in between may have named the type itself.
        if let Some(&number) = self.types.get(&ty) {
            return number;
        }
        let number = self.types.len() as u64;
        self.types.insert(ty, number);
        self.entries.push(&entry.bytes);
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

    /// Defines a declaration after its supertypes.
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

    /// The normal form of a union puts singletons first, so those among its members are defined before it.
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
        self.definitions.bytes.extend(entry.bytes);
    }
}

// ----- reading -----

/// Maximum nesting of types read on demand: every constructor of a type is one level, as is the union around
/// one.
const MAX_NESTED: u16 = 2 * MAX_DEPTH;

/// A type of a file, and whether a parameter of a declaration occurs in it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ty: Type,
    is_open: bool,
}

/// The strings and types of a file read so far.
#[derive(Debug)]
pub(super) struct Interned {
    strings: List,
    names: Box<[OnceLock<Name>]>,
    entries: List,
    types: Box<[OnceLock<Entry>]>,
    decls: Vec<Decl>,
}

/// The tables of a file being read, with the names and types of a context.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    bytes: &'a [u8],
    cx: &'a Context,
    interned: &'a Interned,
}

fn unset<T>(count: usize) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Interned {
    /// Reads declarations and definitions, and the strings and types that these name.
    pub(super) fn read(bytes: &[u8], directory: &Directory, cx: &Context) -> Result<Interned, BinaryError> {
        let (strings, entries) = (directory.list(bytes, STRINGS)?, directory.list(bytes, TYPES)?);
        let (names, types) = (unset(strings.count()), unset(entries.count()));
        let mut interned = Interned { strings, names, entries, types, decls: Vec::new() };
        let mut heads = directory.source(bytes, DECLS);
        let count = heads.count()?;
        let mut decls = vec![None; count];
        for _ in 0..count {
            let number = heads.index("declaration", count)?;
            decls[number] = Some(Tables { bytes, cx, interned: &interned }.head(&mut heads)?);
        }
        heads.finish()?;
        for (number, decl) in decls.into_iter().enumerate() {
            match decl {
                Some(decl) => interned.decls.push(decl),
                None => {
                    let number = number as u64;
                    return heads.refuse(Refusal::Reference { what: "declaration", number });
                }
            }
        }
        let mut definitions = directory.source(bytes, DEFINITIONS);
        while !definitions.is_empty() {
            Tables { bytes, cx, interned: &interned }.definition(&mut definitions)?;
        }
        let is_undefined = |&&decl: &&Decl| !decl.is_builtin() && cx.types.body(decl).is_none();
        if let Some(&decl) = interned.decls.iter().find(is_undefined) {
            let name = cx.names.text(cx.types.decl(decl).name);
            let refusal = Refusal::Type(format!("the type `{name}` is declared and not defined"));
            return definitions.refuse(refusal);
        }
        Ok(interned)
    }
}

impl<'a> Tables<'a> {
    pub(super) fn new(bytes: &'a [u8], cx: &'a Context, interned: &'a Interned) -> Tables<'a> {
        Tables { bytes, cx, interned }
    }

    /// Reads everything not yet read, so that no meaningless part is accepted.
    pub(super) fn read_all(self) -> Result<(), BinaryError> {
        (0..self.interned.names.len()).try_for_each(|number| self.name_at(number).map(drop))?;
        (0..self.interned.types.len()).try_for_each(|number| self.entry(number, 0).map(drop))
    }

    fn text_at(self, number: usize) -> Result<&'a str, BinaryError> {
        let strings = &self.interned.strings;
        std::str::from_utf8(strings.item(self.bytes, number)?)
            .map_err(|_| BinaryError { offset: strings.start(self.bytes, number), refusal: Refusal::Utf8 })
    }

    fn name_at(self, number: usize) -> Result<Name, BinaryError> {
        let place = &self.interned.names[number];
        match place.get() {
            Some(&name) => Ok(name),
            None => {
                let name = self.cx.names.intern(self.text_at(number)?);
                Ok(*place.get_or_init(|| name))
            }
        }
    }

    /// The type with a number, which is made of types with lower numbers. `nested` is the depth of this
    /// recursion.
    fn entry(self, number: usize, nested: u16) -> Result<Entry, BinaryError> {
        let place = &self.interned.types[number];
        if let Some(&entry) = place.get() {
            return Ok(entry);
        }
        let mut source = self.interned.entries.source(self.bytes, number)?;
        if nested > MAX_NESTED {
            return source.refuse(Refusal::TooDeep);
        }
        let parts = Parts { tables: self, below: number, nested: nested + 1, is_open: Cell::new(false) };
        let entry = parts.entry(&mut source)?;
        source.finish()?;
        Ok(*place.get_or_init(|| entry))
    }

    /// The parts of a definition, or of types in functions and globals: any types.
    fn parts_of_any(self) -> Parts<'a> {
        Parts { tables: self, below: self.interned.types.len(), nested: 0, is_open: Cell::new(false) }
    }

    fn head(self, source: &mut Source<'_>) -> Result<Decl, BinaryError> {
        let (start, types) = (source.offset(), &self.cx.types);
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
        let written = self.written(source)?;
        let name = types.names().declare(types.names().text(written));
        let params = self.names(source)?;
        types.declare(name, &params).map_err(|error| wrong(types, start, &error))
    }

    fn string(self, source: &mut Source<'_>) -> Result<usize, BinaryError> {
        source.index("string", self.interned.names.len())
    }

    pub(super) fn text(self, source: &mut Source<'_>) -> Result<&'a str, BinaryError> {
        self.text_at(self.string(source)?)
    }

    pub(super) fn name(self, source: &mut Source<'_>) -> Result<Name, BinaryError> {
        self.name_at(self.string(source)?)
    }

    /// The type of a value, in which parameters of declarations are not allowed.
    pub(super) fn ty(self, source: &mut Source<'_>) -> Result<Type, BinaryError> {
        let number = source.index("type", self.interned.types.len())?;
        match self.entry(number, 0)? {
            Entry { is_open: true, .. } => {
                source.refuse(Refusal::Type("a type parameter is outside a declaration".into()))
            }
            Entry { ty, .. } => Ok(ty),
        }
    }

    pub(super) fn type_constant(self, source: &mut Source<'_>) -> Result<Const, BinaryError> {
        Ok(self.cx.types.type_constant(self.ty(source)?))
    }

    /// A type inside another type, a declaration, or the bindings of variables.
    pub(super) fn part(self, source: &mut Source<'_>) -> Result<Type, BinaryError> {
        self.parts_of_any().part(source)
    }

    pub(super) fn parts(self, source: &mut Source<'_>) -> Result<Vec<Type>, BinaryError> {
        self.parts_of_any().parts(source)
    }

    /// A name and its text.
    pub(super) fn named(self, source: &mut Source<'_>) -> Result<(Name, &'a str), BinaryError> {
        let number = self.string(source)?;
        Ok((self.name_at(number)?, self.text_at(number)?))
    }

    /// A name that can be printed: control characters are allowed only in symbols and strings.
    pub(super) fn written(self, source: &mut Source<'_>) -> Result<Name, BinaryError> {
        let (name, text) = self.named(source)?;
        if text.chars().any(char::is_control) {
            return source.refuse(Refusal::Name { what: "thing", name: text.escape_debug().to_string() });
        }
        Ok(name)
    }

    pub(super) fn tys(self, source: &mut Source<'_>) -> Result<Vec<Type>, BinaryError> {
        (0..source.count()?).map(|_| self.ty(source)).collect()
    }

    fn decl(self, source: &mut Source<'_>) -> Result<Decl, BinaryError> {
        let number = source.index("declaration", self.interned.decls.len())?;
        Ok(self.interned.decls[number])
    }

    fn names(self, source: &mut Source<'_>) -> Result<Vec<Name>, BinaryError> {
        (0..source.count()?).map(|_| self.written(source)).collect()
    }

    fn definition(self, source: &mut Source<'_>) -> Result<(), BinaryError> {
        let start = source.offset();
        let decl = self.decl(source)?;
        let body = self.body(source)?;
        let types = &self.cx.types;
        types.define(decl, body.supertype, body.kind).map_err(|error| wrong(types, start, &error))
    }

    fn body(self, source: &mut Source<'_>) -> Result<DeclBody, BinaryError> {
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

    fn field(self, source: &mut Source<'_>) -> Result<FieldDecl, BinaryError> {
        let name = self.written(source)?;
        let ty = self.part(source)?;
        match source.byte()? {
            flags @ 0..4 => Ok(FieldDecl { name, ty, is_const: flags & 1 != 0, is_atomic: flags & 2 != 0 }),
            tag => source.refuse(Refusal::Tag { what: "kind of field", tag }),
        }
    }
}

/// The types that another one, or a definition, is made of.
struct Parts<'a> {
    tables: Tables<'a>,
    /// Their numbers must be below this one.
    below: usize,
    nested: u16,
    /// Whether any part read so far is open.
    is_open: Cell<bool>,
}

impl Parts<'_> {
    fn part(&self, source: &mut Source<'_>) -> Result<Type, BinaryError> {
        let number = source.index("type", self.below)?;
        let Entry { ty, is_open } = self.tables.entry(number, self.nested)?;
        self.is_open.set(self.is_open.get() || is_open);
        Ok(ty)
    }

    fn parts(&self, source: &mut Source<'_>) -> Result<Vec<Type>, BinaryError> {
        (0..source.count()?).map(|_| self.part(source)).collect()
    }

    fn entry(&self, source: &mut Source<'_>) -> Result<Entry, BinaryError> {
        let (tables, start) = (self.tables, source.offset());
        let types = &tables.cx.types;
        let wrong = |error: TypeError| wrong(types, start, &error);
        let ty = match source.byte()? {
            BOTTOM => Type::BOTTOM,
            ANY => Type::ANY,
            TOKEN => Type::TOKEN,
            LOW => Type::low(source.choice("low type", &LowType::ALL)?),
            NOMINAL => {
                let decl = tables.decl(source)?;
                types.nominal(decl, &self.parts(source)?).map_err(wrong)?
            }
            GENERIC => {
                let decl = tables.decl(source)?;
                types.nominal(decl, &[]).map_err(wrong)?
            }
            TUPLE => types.tuple(&self.parts(source)?).map_err(wrong)?,
            VARARG_TUPLE => {
                let elems = self.parts(source)?;
                types.tuple_vararg(&elems, self.part(source)?).map_err(wrong)?
            }
            NAMED_TUPLE => {
                let names = tables.names(source)?;
                types.named_tuple(&names, self.part(source)?).map_err(wrong)?
            }
            UNION => types.union(&self.parts(source)?).map_err(wrong)?,
            TYPE_OF => types.type_of(self.part(source)?).map_err(wrong)?,
            FUNCTION => {
                let (_, module) = tables.named(source)?;
                if !is_module_path(module) {
                    let name = module.escape_debug().to_string();
                    return source.refuse(Refusal::Name { what: "module", name });
                }
                let name = tables.written(source)?;
                types.function_named(FunctionName::of(&tables.cx.names, module, tables.cx.names.text(name)))
            }
            PARAM => types.param(source.small()?),
            INT => types.int(source.signed()?),
            SYM => types.sym(tables.name(source)?),
            BITS_VALUE => {
                let of = self.part(source)?;
                let bits = source.wide()?;
                match types.primitive(of) {
                    Some((width, _)) if width >= 128 || bits >> width == 0 => types.bits_value(of, bits),
                    None if bits == 0 && types.is_singleton(of) => types.bits_value(of, 0),
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
            TypeKind::Nominal { .. }
            | TypeKind::Tuple { .. }
            | TypeKind::NamedTuple { .. }
            | TypeKind::Union(_)
            | TypeKind::TypeOf(_)
            | TypeKind::NTuple { .. } => self.is_open.get(),
            _ => false,
        };
        Ok(Entry { ty, is_open })
    }
}

fn wrong(types: &Types, offset: usize, error: &TypeError) -> BinaryError {
    let refusal = match error {
        TypeError::Redeclared { name } => Refusal::Redeclared(types.names().text(*name).to_owned()),
        _ => Refusal::Type(error.display(types).to_string()),
    };
    BinaryError { offset, refusal }
}
