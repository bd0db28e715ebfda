//! Rust structs that correspond to structs of programs, as arguments and results of host functions.
//!
//! ```text
//!   argument   program's Point ──► its scalars, each a word (IR of the engine) ──► words in C ──► tuple of fields ──► Point
//!   result     Point ──► tuple of fields ──► bytes, each field at its offset ──► an object of the program's type
//! ```
//!
//! Implementations of [`Struct`] are not trusted: words and bytes are made from the tuple of fields, whose
//! types are known here, and the bytes of a result are checked before they become an object.
//!
//! Cost: an argument is a copy of its words; a result is an object (`later.rs`).

use brolga_ir::show::{bits_to_char, char_to_bits};
use brolga_ir::types::{DeclKind, FieldDecl, TypeError};
use brolga_ir::{Context, Type};

use super::later::{Make, Settlement};
use super::value::{HostArg, HostResult, sealed};
use crate::thread::Thread;

/// A Rust struct with C layout that corresponds to an immutable struct of programs. `#[derive(Brolga)]`
/// implements it.
///
/// A program's struct corresponds if it has the same name, and fields with the same names, types and offsets,
/// in the same order.
pub trait Struct: Sized {
    /// The fields, in order, as a tuple.
    type Fields;
    /// The name in programs.
    const NAME: &'static str;
    /// The names of the fields.
    const FIELDS: &'static [&'static str];
    /// The offset of each field, in bytes.
    const OFFSETS: &'static [usize];

    /// Splits it into its fields.
    fn into_fields(self) -> Self::Fields;

    /// Builds it from its fields.
    fn from_fields(fields: Self::Fields) -> Self;
}

/// The type of a field of a struct that host functions take or return: numbers of up to 64 bits, `bool`,
/// `char`, other structs.
pub trait HostField: Sized {
    /// Its words in C: `u64`s without padding.
    #[doc(hidden)]
    type Words: Copy;

    /// Its type in programs.
    #[doc(hidden)]
    fn ty(cx: &Context) -> Result<Type, TypeError>;

    /// The value encoded by words, or why it is not a valid Rust value.
    #[doc(hidden)]
    fn from_words(words: Self::Words) -> Result<Self, String>;

    /// Writes it to the beginning of the bytes, in the layout of programs. Bytes that do not fit are dropped.
    #[doc(hidden)]
    fn write(self, bytes: &mut [u8]);
}

/// The fields of a struct, as a tuple of [`HostField`]s.
pub trait HostFields: Sized {
    /// Their words in C.
    #[doc(hidden)]
    type Words: Copy;

    /// Their types in programs.
    #[doc(hidden)]
    fn types(cx: &Context) -> Result<Vec<Type>, TypeError>;

    /// The values encoded by words.
    #[doc(hidden)]
    fn from_words(words: Self::Words) -> Result<Self, String>;

    /// Writes each field at its offset.
    #[doc(hidden)]
    fn write(self, offsets: &[usize], bytes: &mut [u8]);
}

/// The words of one field and of those after it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Row<A, B>(A, B);

/// Copies bytes to the beginning of others.
fn put(bytes: &mut [u8], value: &[u8]) {
    if let Some(place) = bytes.get_mut(..value.len()) {
        place.copy_from_slice(value);
    }
}

/// Fields of one word: conversion from the word, and to bytes.
macro_rules! scalars {
    ($($rust:ty: $ty:expr, $from:expr, $to:expr;)*) => {$(
        impl HostField for $rust {
            type Words = [u64; 1];

            fn ty(_: &Context) -> Result<Type, TypeError> {
                Ok($ty)
            }

            fn from_words([word]: [u64; 1]) -> Result<$rust, String> {
                let from: fn(u64) -> Result<$rust, String> = $from;
                from(word)
            }

            fn write(self, bytes: &mut [u8]) {
                put(bytes, &$to(self));
            }
        }
    )*};
}

scalars! {
    i8: Type::INT8, |word| Ok(word as i8), i8::to_ne_bytes;
    i16: Type::INT16, |word| Ok(word as i16), i16::to_ne_bytes;
    i32: Type::INT32, |word| Ok(word as i32), i32::to_ne_bytes;
    i64: Type::INT64, |word| Ok(word as i64), i64::to_ne_bytes;
    u8: Type::UINT8, |word| Ok(word as u8), u8::to_ne_bytes;
    u16: Type::UINT16, |word| Ok(word as u16), u16::to_ne_bytes;
    u32: Type::UINT32, |word| Ok(word as u32), u32::to_ne_bytes;
    u64: Type::UINT64, Ok, u64::to_ne_bytes;
    f32: Type::FLOAT32, |word| Ok(f32::from_bits(word as u32)), f32::to_ne_bytes;
    f64: Type::FLOAT64, |word| Ok(f64::from_bits(word)), f64::to_ne_bytes;
    bool: Type::BOOL, |word| Ok(word & 1 != 0), |value| u8::from(value).to_ne_bytes();
    char: Type::CHAR,
        |word| {
            let bits = word as u32;
            bits_to_char(bits).ok_or_else(|| format!("the Char 0x{bits:08x} is not a Unicode scalar value"))
        },
        |value| char_to_bits(value).to_ne_bytes();
}

/// The program's struct with this name, if it has these fields; it is declared if there is none.
fn declared(cx: &Context, name: &str, names: &[&str], of: &[Type]) -> Result<Type, TypeError> {
    let types = &cx.types;
    let fields = names.iter().zip(of).map(|(name, &ty)| FieldDecl::new(cx.names.intern(name), ty));
    let fields: Box<[FieldDecl]> = fields.collect();
    let name = cx.names.intern(name);
    let decl = types.declare(name, &[])?;
    let is_same = |there: &[FieldDecl]| {
        let both = there.iter().zip(&fields);
        there.len() == fields.len()
            && both.fold(true, |same, (a, b)| same && (a.name, a.ty) == (b.name, b.ty))
    };
    match types.body(decl).map(|body| &body.kind) {
        // Its supertype may be other than `Any`.
        Some(DeclKind::Struct { mutable: false, fields: there }) if is_same(there) => {}
        Some(_) => return Err(TypeError::Redeclared { name }),
        None => types.define(decl, Type::ANY, DeclKind::Struct { mutable: false, fields })?,
    }
    types.nominal(decl, &[])
}

impl<T: Struct<Fields: HostFields>> HostField for T {
    type Words = <T::Fields as HostFields>::Words;

    fn ty(cx: &Context) -> Result<Type, TypeError> {
        declared(cx, T::NAME, T::FIELDS, &T::Fields::types(cx)?)
    }

    fn from_words(words: Self::Words) -> Result<T, String> {
        T::Fields::from_words(words).map(T::from_fields)
    }

    fn write(self, bytes: &mut [u8]) {
        self.into_fields().write(T::OFFSETS, bytes);
    }
}

macro_rules! words {
    () => { [u64; 0] };
    ($first:ident $($rest:ident)*) => { Row<$first::Words, words!($($rest)*)> };
}

macro_rules! split {
    () => { _ };
    ($first:ident $($rest:ident)*) => { Row($first, split!($($rest)*)) };
}

macro_rules! fields {
    ($($($ty:ident $value:ident),+;)*) => {$(
        impl<$($ty: HostField),+> HostFields for ($($ty,)+) {
            type Words = words!($($ty)+);

            fn types(cx: &Context) -> Result<Vec<Type>, TypeError> {
                Ok(vec![$($ty::ty(cx)?),+])
            }

            fn from_words(words: Self::Words) -> Result<Self, String> {
                let split!($($value)+) = words;
                Ok(($($ty::from_words($value)?,)+))
            }

            fn write(self, offsets: &[usize], bytes: &mut [u8]) {
                let ($($value,)+) = self;
                let mut places = offsets.iter();
                $(
                    if let Some(place) = places.next().and_then(|&at| bytes.get_mut(at..)) {
                        $value.write(place);
                    }
                )+
            }
        }
    )*};
}

fields! {
    A a;
    A a, B b;
    A a, B b, C c;
    A a, B b, C c, D d;
    A a, B b, C c, D d, E e;
    A a, B b, C c, D d, E e, F f;
    A a, B b, C c, D d, E e, F f, G g;
    A a, B b, C c, D d, E e, F f, G g, H h;
    A a, B b, C c, D d, E e, F f, G g, H h, I i;
    A a, B b, C c, D d, E e, F f, G g, H h, I i, J j;
    A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k;
    A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l;
}

impl<T: Struct<Fields: HostFields>> sealed::Sealed for T {}

impl<T: Struct<Fields: HostFields>> HostArg for T {
    type Register = <T as HostField>::Words;
    type View<'a> = T;

    fn ty(cx: &Context) -> Result<Type, TypeError> {
        <T as HostField>::ty(cx)
    }

    unsafe fn look(register: Self::Register, _: Option<&Thread>) -> Result<T, String> {
        T::from_words(register)
    }
}

impl<T: Struct<Fields: HostFields> + Send + 'static> HostResult for T {
    type Back = u64;
    const IS_DIRECT: bool = false;

    fn ty(cx: &Context) -> Result<Type, TypeError> {
        <T as HostField>::ty(cx)
    }

    fn back(self, leave: impl FnOnce(Settlement) -> u64) -> u64 {
        let make: Make = Box::new(move |scope, ty| {
            let mut bytes = vec![0; size_of::<T>()];
            self.write(&mut bytes);
            scope.struct_of_bytes(ty, &bytes)
        });
        leave(Settlement::Make(make))
    }

    fn failed(key: u64) -> u64 {
        key
    }
}
