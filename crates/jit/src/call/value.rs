//! Rust types of typed calls: the Julia type of each, and the words that carry its values.
//!
//! | Rust                        | Julia                                    | words |
//! |-----------------------------|------------------------------------------|-------|
//! | `i8`…`i128`, `u8`…`u128`    | `Int8`…`Int128`, `UInt8`…`UInt128`       | 1; 2 for 128 bits |
//! | `f32`, `f64`                | `Float32`, `Float64`                     | 1     |
//! | `bool`                      | `Bool`                                   | 1     |
//! | `char`                      | `Char`                                   | 1     |
//! | `*mut T`, `*const T`        | any `Ptr{…}`                             | 1     |
//! | `()`                        | `Nothing`                                | 0     |
//! | `(A, B, …)` up to 12        | `Tuple{A, B, …}`                         | the sum |
//! | a [`Struct`], derived       | the struct of its name                   | the sum |
//!
//! The words of a value have their own type (`Value::Words`), made of `u64` arrays and pairs in C layout, so a call
//! passes them on the stack with their number fixed at compile time.

use brolga_codegen::sig::{FieldType, ValueType};
use brolga_ir::show::{bits_to_char, char_to_bits};
use brolga_runtime::Struct;

/// An object of any type, as a parameter or result of a typed call.
#[derive(Clone, Copy, Debug)]
pub enum Handle {}

/// A result that has no counterpart in Rust.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueError {
    /// A `Char` may hold bits that are not a character.
    #[error("the Char 0x{bits:08x} is not a Unicode scalar value")]
    NotAChar {
        /// Its bits.
        bits: u32,
    },
    /// A `String` may hold bytes that are not UTF-8.
    #[error("the String is not UTF-8 from byte {valid} on")]
    NotUtf8 {
        /// The number of leading bytes that are UTF-8.
        valid: usize,
    },
    /// The result is an undefined reference instead of an object.
    #[error("the result is an undefined reference")]
    Undefined,
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that stands for a Julia type.
pub trait Value: Sized + sealed::Sealed {
    /// The words that carry it: `u64`s in C layout, without padding.
    type Words: Copy;

    /// Whether it stands for this Julia type.
    fn stands_for(ty: &ValueType) -> bool;

    /// The words that carry this value.
    fn into_words(self) -> Self::Words;

    /// The value that words carry.
    fn from_words(words: Self::Words) -> Result<Self, ValueError>;

    /// Appends the bits of the leaves that carry this value.
    fn into_leaves(self, leaves: &mut Vec<u128>);

    /// Reads the value from its leaves, which come next; missing leaves read as zero.
    fn from_leaves(leaves: &mut dyn Iterator<Item = u128>) -> Result<Self, ValueError>;
}

/// The methods on leaves of a type with one leaf.
macro_rules! one_leaf {
    () => {
        fn into_leaves(self, leaves: &mut Vec<u128>) {
            let words = self.into_words();
            let wide = |(n, &word): (usize, &u64)| u128::from(word) << (64 * n);
            leaves.push(words.iter().enumerate().map(wide).fold(0, |all, word| all | word));
        }

        fn from_leaves(leaves: &mut dyn Iterator<Item = u128>) -> Result<Self, ValueError> {
            let bits = leaves.next().unwrap_or(0);
            Self::from_words(std::array::from_fn(|n| (bits >> (64 * n)) as u64))
        }
    };
}

/// Types with one leaf: the Julia type, the number of words, the words of a value, the value of words.
macro_rules! scalars {
    ($($rust:ident $julia:literal [$count:literal] $value:ident => $into:expr, $words:pat => $from:expr;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Value for $rust {
            type Words = [u64; $count];

            fn stands_for(ty: &ValueType) -> bool {
                ty.name == $julia
            }

            fn into_words(self) -> Self::Words {
                let $value = self;
                $into
            }

            fn from_words($words: Self::Words) -> Result<Self, ValueError> {
                $from
            }

            one_leaf!();
        }
    )*};
}

scalars! {
    i8 "Int8" [1] n => [n as u64], [word] => Ok(word as i8);
    i16 "Int16" [1] n => [n as u64], [word] => Ok(word as i16);
    i32 "Int32" [1] n => [n as u64], [word] => Ok(word as i32);
    i64 "Int64" [1] n => [n as u64], [word] => Ok(word as i64);
    u8 "UInt8" [1] n => [n.into()], [word] => Ok(word as u8);
    u16 "UInt16" [1] n => [n.into()], [word] => Ok(word as u16);
    u32 "UInt32" [1] n => [n.into()], [word] => Ok(word as u32);
    u64 "UInt64" [1] n => [n], [word] => Ok(word);
    i128 "Int128" [2] n => halves(n.cast_unsigned()), words => Ok(whole(words).cast_signed());
    u128 "UInt128" [2] n => halves(n), words => Ok(whole(words));
    f32 "Float32" [1] x => [x.to_bits().into()], [word] => Ok(f32::from_bits(word as u32));
    f64 "Float64" [1] x => [x.to_bits()], [word] => Ok(f64::from_bits(word));
    // Only the low byte of a word is the value.
    bool "Bool" [1] b => [b.into()], [word] => Ok(word as u8 != 0);
    char "Char" [1] c => [char_to_bits(c).into()], [word] => char_of(word as u32);
}

fn halves(n: u128) -> [u64; 2] {
    [n as u64, (n >> 64) as u64]
}

fn whole([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn char_of(bits: u32) -> Result<char, ValueError> {
    bits_to_char(bits).ok_or(ValueError::NotAChar { bits })
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<T> sealed::Sealed for $pointer {}
        impl<T> Value for $pointer {
            type Words = [u64; 1];

            fn stands_for(ty: &ValueType) -> bool {
                ty.name.starts_with("Ptr{")
            }

            fn into_words(self) -> [u64; 1] {
                [self.expose_provenance() as u64]
            }

            fn from_words([word]: [u64; 1]) -> Result<Self, ValueError> {
                Ok(std::ptr::with_exposed_provenance::<T>(word as usize).cast_mut())
            }

            one_leaf!();
        }
    )*};
}

pointers!(*mut T, *const T);

impl sealed::Sealed for () {}
impl Value for () {
    type Words = [u64; 0];

    fn stands_for(ty: &ValueType) -> bool {
        ty.name == "Nothing"
    }

    fn into_words(self) -> [u64; 0] {
        []
    }

    fn from_words(_: [u64; 0]) -> Result<Self, ValueError> {
        Ok(())
    }

    fn into_leaves(self, _: &mut Vec<u128>) {}

    fn from_leaves(_: &mut dyn Iterator<Item = u128>) -> Result<Self, ValueError> {
        Ok(())
    }
}

/// A [`Struct`] whose fields are [`Value`]s, which makes it a [`Value`]. `#[derive(Brolga)]` implements it.
pub trait StructValue: Struct<Fields: Value + Params> {}

impl<T: StructValue> sealed::Sealed for T {}
impl<T: StructValue> Value for T {
    type Words = <T::Fields as Value>::Words;

    fn stands_for(ty: &ValueType) -> bool {
        let is_same = |(at, field): (usize, &FieldType)| {
            T::FIELDS.get(at) == Some(&field.name.as_str())
                && T::OFFSETS.get(at) == Some(&(field.offset as usize))
                && <T::Fields as Params>::stands_for(at, &field.ty).1
        };
        ty.name == T::NAME
            && ty.elements.is_none()
            && ty.fields.len() == <T::Fields as Params>::COUNT
            && ty.fields.iter().enumerate().all(is_same)
    }

    fn into_words(self) -> Self::Words {
        Value::into_words(self.into_fields())
    }

    fn from_words(words: Self::Words) -> Result<T, ValueError> {
        <T::Fields as Value>::from_words(words).map(T::from_fields)
    }

    fn into_leaves(self, leaves: &mut Vec<u128>) {
        self.into_fields().into_leaves(leaves);
    }

    fn from_leaves(leaves: &mut dyn Iterator<Item = u128>) -> Result<T, ValueError> {
        T::Fields::from_leaves(leaves).map(T::from_fields)
    }
}

/// The parameters of a function: a tuple with one [`Value`] for each.
pub trait Params: sealed::Sealed {
    /// How many there are.
    const COUNT: usize;

    /// The words that carry all of them.
    type Words: Copy;

    /// The Rust type of parameter `index`, and whether it stands for a Julia type.
    fn stands_for(index: usize, ty: &ValueType) -> (&'static str, bool);

    /// The words that carry these values.
    fn into_words(self) -> Self::Words;

    /// Appends the bits of the leaves that carry them.
    fn append_leaves(self, leaves: &mut Vec<u128>);
}

impl Params for () {
    const COUNT: usize = 0;
    type Words = [u64; 0];

    fn stands_for(_: usize, _: &ValueType) -> (&'static str, bool) {
        ("", false)
    }

    fn into_words(self) -> [u64; 0] {
        []
    }

    fn append_leaves(self, _: &mut Vec<u128>) {}
}

/// The words of one value and the words of the values after it. Both parts consist of `u64`s, so there is no padding.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Pair<A, B>(A, B);

macro_rules! words_of {
    () => { [u64; 0] };
    ($first:ident $($rest:ident)*) => { Pair<$first::Words, words_of!($($rest)*)> };
}

macro_rules! join {
    () => { [] };
    ($first:ident $($rest:ident)*) => { Pair($first.into_words(), join!($($rest)*)) };
}

macro_rules! split {
    () => { _ };
    ($first:ident $($rest:ident)*) => { Pair($first, split!($($rest)*)) };
}

macro_rules! count {
    () => { 0 };
    ($first:ident $($rest:ident)*) => { 1 + count!($($rest)*) };
}

macro_rules! tuples {
    ($($first:ident $first_value:ident $(, $ty:ident $value:ident)*;)*) => {$(
        impl<$first: Value, $($ty: Value),*> sealed::Sealed for ($first, $($ty,)*) {}

        impl<$first: Value, $($ty: Value),*> Value for ($first, $($ty,)*) {
            type Words = words_of!($first $($ty)*);

            fn stands_for(ty: &ValueType) -> bool {
                let Some(elements) = &ty.elements else { return false };
                elements.len() == <Self as Params>::COUNT
                    && elements.iter().enumerate().all(|(i, ty)| <Self as Params>::stands_for(i, ty).1)
            }

            fn into_words(self) -> <Self as Value>::Words {
                <Self as Params>::into_words(self)
            }

            fn from_words(words: <Self as Value>::Words) -> Result<Self, ValueError> {
                let split!($first_value $($value)*) = words;
                Ok(($first::from_words($first_value)?, $($ty::from_words($value)?,)*))
            }

            fn into_leaves(self, leaves: &mut Vec<u128>) {
                let ($first_value, $($value,)*) = self;
                $first_value.into_leaves(leaves);
                $($value.into_leaves(leaves);)*
            }

            fn from_leaves(leaves: &mut dyn Iterator<Item = u128>) -> Result<Self, ValueError> {
                Ok(($first::from_leaves(leaves)?, $($ty::from_leaves(leaves)?,)*))
            }
        }

        impl<$first: Value, $($ty: Value),*> Params for ($first, $($ty,)*) {
            const COUNT: usize = count!($first $($ty)*);
            type Words = words_of!($first $($ty)*);

            fn stands_for(index: usize, ty: &ValueType) -> (&'static str, bool) {
                let all: [(&'static str, fn(&ValueType) -> bool); count!($first $($ty)*)] = [
                    (std::any::type_name::<$first>(), <$first as Value>::stands_for),
                    $((std::any::type_name::<$ty>(), <$ty as Value>::stands_for),)*
                ];
                all.get(index).map_or(("", false), |(name, check)| (name, check(ty)))
            }

            fn into_words(self) -> <Self as Params>::Words {
                let ($first_value, $($value,)*) = self;
                join!($first_value $($value)*)
            }

            fn append_leaves(self, leaves: &mut Vec<u128>) {
                self.into_leaves(leaves);
            }
        }
    )*};
}

tuples! {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_no_padding() {
        type Mixed = (i8, i128, (), (f32, bool));
        assert_eq!(size_of::<<Mixed as Value>::Words>(), 8 * 5);
        assert_eq!(size_of::<<Mixed as Params>::Words>(), 8 * 5);
    }

    #[test]
    fn values_survive_their_words() {
        fn check<V: Value + PartialEq + Copy + std::fmt::Debug>(value: V) {
            assert_eq!(V::from_words(value.into_words()), Ok(value));
            let mut leaves = Vec::new();
            value.into_leaves(&mut leaves);
            let mut rest = leaves.into_iter();
            assert_eq!(V::from_leaves(&mut rest), Ok(value));
            assert_eq!(rest.next(), None);
        }
        check(-5i8);
        check(i128::MIN);
        check(u128::MAX - 1);
        check(-0.5f32);
        check((true, 'θ', (3u16, '\0'), ()));
        check(std::ptr::without_provenance_mut::<u8>(40));
    }

    #[test]
    fn malformed_chars_are_errors() {
        for bits in [0xff00_0000u32, 0x8000_0000, 0x6161_0000, 0xe000_0000] {
            assert_eq!(char::from_words([bits.into()]), Err(ValueError::NotAChar { bits }));
        }
    }

    #[test]
    fn a_high_word_that_compiled_code_left_unset_does_not_matter() {
        assert_eq!(i32::from_words([0xdead_beef_ffff_ffff]), Ok(-1));
        assert_eq!(bool::from_words([0xdead_beef_0000_0100]), Ok(false));
        assert_eq!(char::from_words([0xdead_beef_6100_0000]), Ok('a'));
    }
}
