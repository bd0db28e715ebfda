//! How values and signatures of high IR become registers: the contract between `lower`, typed calls and the tests.
//!
//! A low function takes and returns only registers. A high type is flattened to *leaves*, each one low value:
//!
//! ```text
//! Float64                                   f64
//! Tuple{Int8, Tuple{Float32, Nothing}}      i8 @0, f32 @4                      @n: byte n of the value in memory
//! Union{Nothing, Int16}                     i64 @0 (2 bytes), i8 @2            payload word, selector
//! NTuple{9, Int64}                          ptr                                to 72 bytes that no code changes
//! Tuple{Int64, String}                      i64 @0, tracked @8
//! Any, Vector{Int64}, Union{Nothing, Node}  tracked                            to an object
//! ```
//!
//! | type | [`FormKind`] | leaves |
//! |---|---|---|
//! | `Union{}` | never | none: no value exists |
//! | no bits: `Nothing`, `typeof(f)`, `Type{T}`, a tuple of such | ghost | none |
//! | primitive types, `Ptr` | scalar | one |
//! | immutable structs, tuples, named tuples | aggregate | the fields' leaves, in order |
//! | unions of pointer-free types | union | payload words of 64 bits, then the selector byte |
//! | pointer-free types with more than [`MAX_LEAVES`] leaves, or [`MAX_UNION_WORDS`] payload words | memory | one address |
//! | other types with more than [`MAX_LEAVES`] leaves | scalar | one reference to an object that holds the value |
//! | everything else: mutable types, and types whose concrete type only the object records | scalar | one reference |
//! | primitive types of a width no register has | [`NotNative`] | |
//!
//! **Objects.** A reference is never null, with one exception: a leaf of an aggregate for a field that is stored as a pointer
//! is null while the field is undefined. Such a leaf is a reference even where the field's type is not one:
//! an immutable type that contains itself. No memory on the stack holds both references and bits.
//!
//! **Unions.** The selector counts the members in their printing order, from 0. A payload word holds the bytes of the
//! member in memory order, least significant first; bytes that the member does not use are unspecified.
//!
//! **Memory.** The address points at the value in its C layout (a union: payload, then selector). The receiver
//! may read it until the call returns and must not write.
//!
//! **Signatures.** Arguments in order, argument 0 being the function object: a ghost for plain functions, an ordinary
//! value for closures. A result in memory form is written through an address passed before all arguments; any
//! other result becomes one low result per leaf.
//!
//! Cost: linear in the leaves and the fields before the limit is passed. Recursion follows the nesting of types, which
//! the type table bounds.

use crate::func::{Param, Signature};
use crate::types::{FieldRepr, LayoutError, LowType, PtrClass, Repr, Type, Types};
use std::fmt;

/// Values with more leaves travel in memory.
pub const MAX_LEAVES: usize = 8;
/// Unions with more payload words of eight bytes travel in memory.
pub const MAX_UNION_WORDS: u32 = 4;

/// The low type of a reference to an object.
const REFERENCE: LowType = LowType::Ptr(PtrClass::Tracked);

/// One register of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The register's type.
    pub low: LowType,
    /// Byte offset in the memory form of the whole value.
    pub offset: u32,
    /// Number of its bytes stored there: all, except for the last payload word of a union.
    pub bytes: u32,
    pub role: LeafRole,
}

/// The meaning of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafRole {
    /// A value of this scalar type.
    Value(Type),
    /// Eight bytes of a union's data.
    Payload,
    /// The number of a union's member.
    Selector,
    /// The address of a value in memory form.
    Address,
}

/// The native form of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    pub ty: Type,
    pub kind: FormKind,
    /// The registers that carry a value, in order.
    pub leaves: Box<[Leaf]>,
    /// Bytes of a value in memory.
    pub size: u32,
    /// Alignment of a value in memory.
    pub align: u32,
}

/// How a native form is composed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormKind {
    /// No value exists.
    Never,
    /// The type says it all.
    Ghost,
    /// One register.
    Scalar,
    /// The fields' leaves, in order.
    Aggregate(Box<[Part]>),
    /// Payload words and a selector for these members.
    Union(Box<[Type]>),
    /// The address of the value in memory.
    Memory,
}

/// A field of an aggregate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Index of its first leaf in the aggregate.
    pub first: usize,
    /// Byte offset from the start of the aggregate in memory.
    pub offset: u32,
    /// Its own form; its leaf offsets are relative to the field.
    pub form: Form,
}

/// Why values of a type cannot be handled by native code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotNative {
    /// A primitive type of a width no register has.
    Width(Type),
    /// A token is not a value.
    Token,
    /// The type has no layout.
    NoLayout(LayoutError),
}

/// The reason as a clause that names the type by number. [`NotNative::display`] prints the type's name.
impl fmt::Display for NotNative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotNative::Width(ty) => write!(f, "`{ty:?}` has a width that no register has"),
            NotNative::Token => f.write_str("a token is not a value"),
            NotNative::NoLayout(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotNative {}

impl NotNative {
    /// The reason as a clause: what is missing, without the place.
    pub fn display<'a>(&'a self, types: &'a Types) -> impl fmt::Display + 'a {
        struct Show<'a>(&'a NotNative, &'a Types);
        impl fmt::Display for Show<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self.0 {
                    NotNative::Width(ty) => {
                        write!(f, "`{}` has a width that no register has", self.1.display(ty))
                    }
                    NotNative::Token => f.write_str("a token is not a value"),
                    NotNative::NoLayout(ref error) => error.display(self.1).fmt(f),
                }
            }
        }
        Show(self, types)
    }
}

impl Form {
    /// Whether values are passed by address.
    pub fn is_memory(&self) -> bool {
        self.kind == FormKind::Memory
    }

    /// Whether values are passed as a reference to an object.
    pub fn is_object(&self) -> bool {
        self.kind == FormKind::Scalar && self.leaves.iter().all(|leaf| leaf.low == REFERENCE)
    }

    /// The form of an object reference, or of a value held in an object.
    pub fn object(ty: Type) -> Form {
        Form::scalar(ty, REFERENCE)
    }

    /// The low types of the leaves.
    pub fn low_types(&self) -> impl ExactSizeIterator<Item = Type> + '_ {
        self.leaves.iter().map(|leaf| Type::low(leaf.low))
    }

    fn new(ty: Type, kind: FormKind, leaves: Vec<Leaf>, size: u32, align: u32) -> Form {
        Form { ty, kind, leaves: leaves.into(), size, align }
    }

    fn memory(ty: Type, size: u32, align: u32) -> Form {
        let low = LowType::Ptr(PtrClass::Raw);
        let leaf = Leaf { low, offset: 0, bytes: low.bytes(), role: LeafRole::Address };
        Form::new(ty, FormKind::Memory, vec![leaf], size, align)
    }

    fn scalar(ty: Type, low: LowType) -> Form {
        let leaf = Leaf { low, offset: 0, bytes: low.bytes(), role: LeafRole::Value(ty) };
        Form::new(ty, FormKind::Scalar, vec![leaf], low.bytes(), low.bytes())
    }
}

pub fn form(types: &Types, ty: Type) -> Result<Form, NotNative> {
    match types.repr(ty) {
        Repr::Never => Ok(Form::new(ty, FormKind::Never, Vec::new(), 0, 1)),
        Repr::Ghost => Ok(Form::new(ty, FormKind::Ghost, Vec::new(), 0, 1)),
        Repr::Scalar(low) => Ok(Form::scalar(ty, low)),
        Repr::Aggregate => aggregate(types, ty),
        Repr::BitsUnion => union(types, ty),
        Repr::Boxed => Ok(Form::object(ty)),
        Repr::OddPrimitive => Err(NotNative::Width(ty)),
        Repr::Token => Err(NotNative::Token),
    }
}

fn aggregate(types: &Types, ty: Type) -> Result<Form, NotNative> {
    let layout = types.layout(ty).map_err(NotNative::NoLayout)?;
    if layout.size == 0 {
        return Ok(Form::new(ty, FormKind::Ghost, Vec::new(), 0, layout.align));
    }
    let mut leaves = Vec::new();
    let mut parts = Vec::with_capacity(layout.fields.len());
    for field in &layout.fields {
        let form = match field.repr {
            FieldRepr::Pointer => Form::object(field.ty),
            FieldRepr::Inline | FieldRepr::BitsUnion { .. } => form(types, field.ty)?,
        };
        let first = leaves.len();
        let held = form.is_object() && field.repr == FieldRepr::Inline;
        if form.is_memory() || held || first + form.leaves.len() > MAX_LEAVES {
            check_contents(types, ty)?;
            let memory = layout.is_bits();
            return Ok(if memory { Form::memory(ty, layout.size, layout.align) } else { Form::object(ty) });
        }
        leaves.extend(form.leaves.iter().map(|leaf| Leaf { offset: leaf.offset + field.offset, ..*leaf }));
        parts.push(Part { first, offset: field.offset, form });
    }
    Ok(Form::new(ty, FormKind::Aggregate(parts.into()), leaves, layout.size, layout.align))
}

fn union(types: &Types, ty: Type) -> Result<Form, NotNative> {
    let members = types.members(&ty);
    let (payload, align) =
        types.union_extent(members).ok_or(NotNative::NoLayout(LayoutError::NotConcrete(ty)))?;
    let words = payload.div_ceil(8);
    if words > MAX_UNION_WORDS {
        check_contents(types, ty)?;
        return Ok(Form::memory(ty, payload + 1, align));
    }
    let mut leaves: Vec<Leaf> = (0..words)
        .map(|word| {
            let offset = 8 * word;
            Leaf { low: LowType::I64, offset, bytes: (payload - offset).min(8), role: LeafRole::Payload }
        })
        .collect();
    leaves.push(Leaf { low: LowType::I8, offset: payload, bytes: 1, role: LeafRole::Selector });
    Ok(Form::new(ty, FormKind::Union(members.into()), leaves, payload + 1, align))
}

/// Checks that everything inside a type that is passed as a whole is native. Visits each type once.
fn check_contents(types: &Types, ty: Type) -> Result<(), NotNative> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut work = vec![ty];
    while let Some(ty) = work.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match types.repr(ty) {
            Repr::OddPrimitive => return Err(NotNative::Width(ty)),
            Repr::Aggregate => {
                for field in &types.layout(ty).map_err(NotNative::NoLayout)?.fields {
                    if field.repr != FieldRepr::Pointer {
                        work.push(field.ty);
                    }
                }
            }
            Repr::BitsUnion => work.extend(types.members(&ty)),
            Repr::Never | Repr::Ghost | Repr::Scalar(_) | Repr::Boxed | Repr::Token => {}
        }
    }
    Ok(())
}

/// A high signature in native terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NativeSignature {
    /// The arguments in order, the function object first.
    pub params: Vec<Form>,
    pub result: Form,
}

/// A part of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Argument number *n*, 0 being the function object.
    Argument(usize),
    Result,
}

impl NativeSignature {
    /// The native form of a high signature, or all reasons why it has none.
    pub fn new(types: &Types, sig: &Signature) -> Result<Self, Vec<(Position, NotNative)>> {
        let mut errors = Vec::new();
        let mut params = Vec::with_capacity(sig.params.len());
        for (n, param) in sig.params.iter().enumerate() {
            match form(types, param.ty) {
                Ok(form) => params.push(form),
                Err(why) => errors.push((Position::Argument(n), why)),
            }
        }
        // A high function has one result; without one it returns `nothing`.
        match form(types, sig.results.first().copied().unwrap_or(Type::NOTHING)) {
            Ok(result) if errors.is_empty() => return Ok(Self { params, result }),
            Ok(_) => {}
            Err(why) => errors.push((Position::Result, why)),
        }
        Err(errors)
    }

    /// The types of the low arguments: the result's address if it is in memory form, then all leaves.
    pub fn low_params(&self) -> impl Iterator<Item = Type> + '_ {
        let hidden = self.result.is_memory().then_some(Type::PTR);
        hidden.into_iter().chain(self.params.iter().flat_map(Form::low_types))
    }

    pub fn low_results(&self) -> impl Iterator<Item = Type> + '_ {
        self.result.low_types().take(if self.result.is_memory() { 0 } else { usize::MAX })
    }

    pub fn low(&self) -> Signature {
        Signature {
            params: self.low_params().map(|ty| Param { name: None, ty }).collect(),
            results: self.low_results().collect(),
            vararg: false,
            ..Signature::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::types::{DeclKind, PrimitiveRepr};

    fn lows(form: &Form) -> Vec<(&'static str, u32, u32)> {
        form.leaves.iter().map(|l| (l.low.name(), l.offset, l.bytes)).collect()
    }

    #[test]
    fn the_picture_in_the_header() {
        let cx = Context::new();
        let t = &cx.types;
        assert_eq!(lows(&form(t, Type::FLOAT64).unwrap()), [("f64", 0, 8)]);
        let inner = t.tuple(&[Type::FLOAT32, Type::NOTHING]).unwrap();
        let outer = t.tuple(&[Type::INT8, inner]).unwrap();
        assert_eq!(lows(&form(t, outer).unwrap()), [("i8", 0, 1), ("f32", 4, 4)]);
        let small = t.union(&[Type::NOTHING, Type::INT16]).unwrap();
        assert_eq!(lows(&form(t, small).unwrap()), [("i64", 0, 2), ("i8", 2, 1)]);
        let nine = form(t, t.tuple(&[Type::INT64; 9]).unwrap()).unwrap();
        assert_eq!((lows(&nine), nine.is_memory(), nine.size), (vec![("ptr", 0, 8)], true, 72));
    }

    #[test]
    fn eight_leaves_are_registers_and_nine_are_memory() {
        let cx = Context::new();
        let t = &cx.types;
        assert_eq!(form(t, t.tuple(&[Type::INT8; 8]).unwrap()).unwrap().leaves.len(), 8);
        assert!(form(t, t.tuple(&[Type::INT8; 9]).unwrap()).unwrap().is_memory());
        let four = t.tuple(&[Type::INT64; 4]).unwrap();
        let wide = t.union(&[Type::NOTHING, four]).unwrap();
        assert_eq!(form(t, wide).unwrap().leaves.len(), 5);
        let five = t.tuple(&[Type::INT64; 5]).unwrap();
        let wider = form(t, t.union(&[Type::NOTHING, five]).unwrap()).unwrap();
        assert_eq!((wider.is_memory(), wider.size, wider.align), (true, 41, 8));
    }

    #[test]
    fn ghosts_have_no_leaves_at_any_depth() {
        let cx = Context::new();
        let t = &cx.types;
        let mut ty = Type::NOTHING;
        for _ in 0..3 {
            ty = t.tuple(&[ty; 20]).unwrap();
        }
        let f = form(t, ty).unwrap();
        assert_eq!((f.kind, f.leaves.len()), (FormKind::Ghost, 0));
        let f = form(t, t.tuple(&[ty, Type::BOOL]).unwrap()).unwrap();
        assert_eq!(lows(&f), [("i8", 0, 1)]);
    }

    #[test]
    fn values_passed_as_objects_are_one_reference() {
        let cx = Context::new();
        let t = &cx.types;
        let reference = [("tracked", 0, 8)];
        let mixed = t.union(&[Type::NOTHING, Type::STRING]).unwrap();
        let open = t.tuple_vararg(&[], Type::INT64).unwrap();
        for ty in [Type::SYMBOL, Type::STRING, Type::ANY, t.vector(Type::INT64).unwrap(), mixed, open] {
            let f = form(t, ty).unwrap();
            assert_eq!((lows(&f), f.is_object()), (reference.to_vec(), true), "{}", t.display(ty));
        }
        let pair = form(t, t.tuple(&[Type::INT64, Type::STRING]).unwrap()).unwrap();
        assert_eq!((lows(&pair), pair.is_object()), (vec![("i64", 0, 8), ("tracked", 8, 8)], false));
        let element = form(t, t.memory_ref(Type::INT64).unwrap()).unwrap();
        assert_eq!(lows(&element), [("ptr", 0, 8), ("tracked", 8, 8)]);
        let blob = form(t, t.tuple(&[Type::STRING]).unwrap()).unwrap();
        assert!(!blob.is_object() && lows(&blob) == reference);
    }

    #[test]
    fn large_values_with_references_are_objects() {
        let cx = Context::new();
        let t = &cx.types;
        let mut elems = vec![Type::INT64; 20];
        assert!(form(t, t.tuple(&elems).unwrap()).unwrap().is_memory());
        elems.push(Type::STRING);
        let large = t.tuple(&elems).unwrap();
        assert!(form(t, large).unwrap().is_object());
        assert!(form(t, t.tuple(&[large, Type::INT8]).unwrap()).unwrap().is_object());
    }

    #[test]
    fn signatures_flatten_and_large_results_come_first() {
        let cx = Context::new();
        let t = &cx.types;
        let f = t.function(cx.names.intern("f"));
        let pair = t.tuple(&[Type::INT64, Type::BOOL]).unwrap();
        let large = t.tuple(&[Type::INT64; 12]).unwrap();
        let sig = |result| Signature {
            params: [f, pair, large].map(|ty| Param { name: None, ty }).into(),
            results: vec![result],
            vararg: false,
            ..Signature::default()
        };
        let native = NativeSignature::new(t, &sig(pair)).unwrap();
        assert_eq!(native.low_params().collect::<Vec<_>>(), [Type::I64, Type::I8, Type::PTR]);
        assert_eq!(native.low().results, [Type::I64, Type::I8]);
        let native = NativeSignature::new(t, &sig(large)).unwrap();
        assert_eq!(native.low_params().next(), Some(Type::PTR));
        assert_eq!(native.low_params().count(), 4);
        assert_eq!(native.low_results().count(), 0);
        let odd = t.declare(cx.names.intern("Odd"), &[]).unwrap();
        let bits = DeclKind::Primitive { bits: 24, repr: PrimitiveRepr::Bits };
        t.define(odd, Type::ANY, bits).unwrap();
        let odd = t.nominal(odd, &[]).unwrap();
        let errors = NativeSignature::new(t, &sig(odd)).unwrap_err();
        assert_eq!(errors, [(Position::Result, NotNative::Width(odd))]);
        assert_eq!(NativeSignature::new(t, &sig(Type::ANY)).unwrap().low().results, [Type::TRACKED]);
    }
}
