//! Native signatures: the low values that a compiled function takes and returns, and where they are passed.
//!
//! A signature is plain data: lists of low scalar kinds. Everything above (Julia types, aggregates, ghosts such as
//! `Nothing`) has been flattened into them. One rule holds on every target:
//!
//! | results               | are returned                                                                    |
//! |-----------------------|---------------------------------------------------------------------------------|
//! | at most 4 words       | in registers, one CLIF result per leaf                                          |
//! | more                  | through memory: the first parameter is a pointer to a word buffer (see below)   |
//!
//! The limit is what every instruction set of Cranelift's `tail` convention can return. x86-64 alone could return eight
//! integers and eight floats; results that do not fit are a hard error in Cranelift, so the rule is conservative.
//!
//! A *word buffer* passes values between Rust and compiled code, and through the hidden result pointer: one 8-byte
//! word for each leaf and two (low half first) for `I128` and `V128`, in order, without padding. A leaf narrower than its word
//! is in the low bytes; the bytes above it are unspecified.
//!
//! `F16` is passed as the 16-bit integer with its bits: no target computes with it, so every operation on it starts
//! or ends in an integer register anyway.

use std::fmt;
use std::sync::Arc;

use brolga_ir::{Arch, Context, Type as IrType};
use cranelift_codegen::ir::{AbiParam, MemFlagsData, Signature as ClifSignature, Type, types};
use cranelift_codegen::isa::CallConv;

use crate::same_type::TypeIn;

/// Results of up to this many words come back in registers.
pub const MAX_RESULT_WORDS: usize = 4;

/// The kind of one low value at a call boundary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Abi {
    /// 8-bit integer; also `Bool`, which holds 0 or 1.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// 128-bit integer.
    I128,
    /// Half-precision float, passed as the 16 bits of its representation.
    F16,
    /// Single-precision float.
    F32,
    /// Double-precision float.
    F64,
    /// An address.
    Ptr,
    /// The address of an object, or null.
    Object,
    /// 128 bits in lanes.
    V128,
}

impl Abi {
    /// All kinds. Files hold positions in this list.
    pub const ALL: [Abi; 11] = [
        Abi::I8,
        Abi::I16,
        Abi::I32,
        Abi::I64,
        Abi::I128,
        Abi::F16,
        Abi::F32,
        Abi::F64,
        Abi::Ptr,
        Abi::Object,
        Abi::V128,
    ];

    /// Words that the value takes in a word buffer.
    pub const fn words(self) -> usize {
        match self {
            Abi::I128 | Abi::V128 => 2,
            _ => 1,
        }
    }

    /// Bits of the value itself.
    pub const fn bits(self) -> u32 {
        match self {
            Abi::I8 => 8,
            Abi::I16 | Abi::F16 => 16,
            Abi::I32 | Abi::F32 => 32,
            Abi::I64 | Abi::F64 | Abi::Ptr | Abi::Object => 64,
            Abi::I128 | Abi::V128 => 128,
        }
    }

    /// How it is read and written in a word buffer, whose words are aligned to 8 bytes.
    pub fn word_flags(self) -> MemFlagsData {
        match self {
            Abi::V128 => MemFlagsData::new().with_notrap(),
            _ => MemFlagsData::trusted(),
        }
    }

    /// The Cranelift type that carries it. Hosts are 64-bit, so an address is an `i64`.
    pub fn clif(self) -> Type {
        match self {
            Abi::I8 => types::I8,
            Abi::I16 | Abi::F16 => types::I16,
            Abi::I32 => types::I32,
            Abi::I64 | Abi::Ptr | Abi::Object => types::I64,
            Abi::I128 => types::I128,
            Abi::V128 => types::I8X16,
            Abi::F32 => types::F32,
            Abi::F64 => types::F64,
        }
    }
}

/// The signature of a compiled function, flattened to low scalars.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Signature {
    /// Parameters in order, without the hidden result pointer.
    pub params: Vec<Abi>,
    /// Results in order.
    pub results: Vec<Abi>,
}

impl Signature {
    /// A signature from its two lists.
    pub fn new(params: impl Into<Vec<Abi>>, results: impl Into<Vec<Abi>>) -> Self {
        Signature { params: params.into(), results: results.into() }
    }

    /// Words that the parameters take in a word buffer.
    pub fn param_words(&self) -> usize {
        self.params.iter().map(|abi| abi.words()).sum()
    }

    /// Words that the results take in a word buffer.
    pub fn result_words(&self) -> usize {
        self.results.iter().map(|abi| abi.words()).sum()
    }

    /// Whether the results are returned through the hidden pointer before the parameters.
    pub fn returns_through_memory(&self) -> bool {
        self.result_words() > MAX_RESULT_WORDS
    }

    /// The Cranelift signature of a compiled function with this one: the `tail` convention, and the hidden result
    /// pointer as first parameter where there is one.
    pub fn clif(&self) -> ClifSignature {
        let mut clif = ClifSignature::new(CallConv::Tail);
        if self.returns_through_memory() {
            clif.params.push(AbiParam::new(Abi::Ptr.clif()));
        } else {
            clif.returns.extend(self.results.iter().map(|abi| AbiParam::new(abi.clif())));
        }
        clif.params.extend(self.params.iter().map(|abi| AbiParam::new(abi.clif())));
        clif
    }
}

/// The Cranelift signature of a function of C.
pub(crate) fn c_signature(call_conv: CallConv, params: &[Abi], results: &[Abi]) -> ClifSignature {
    let mut clif = ClifSignature::new(call_conv);
    clif.params.extend(params.iter().map(|abi| AbiParam::new(abi.clif())));
    clif.returns.extend(results.iter().map(|abi| AbiParam::new(abi.clif())));
    clif
}

/// The parameter of a function of C before which another one is inserted, an `i64` that no code reads.
///
/// On aarch64 an `i128` for which one register is left goes to memory, and so do all integers after it. Cranelift would pass
/// the next of them in that register, so the additional parameter occupies it.
pub(crate) fn spare_param(params: &[AbiParam], arch: Arch, convention: CallConv) -> Option<usize> {
    let is_aapcs64 = arch == Arch::Aarch64 && convention == CallConv::SystemV;
    is_aapcs64.then(|| spare_in_aapcs64(params))?
}

fn spare_in_aapcs64(params: &[AbiParam]) -> Option<usize> {
    let mut taken = 0;
    for (at, param) in params.iter().enumerate() {
        match param.value_type {
            types::I128 if taken == 7 => return Some(at),
            // It begins in an even-numbered register.
            types::I128 => taken = 2 + ((taken + 1) & !1),
            ty if ty.is_int() => taken += 1,
            _ => {}
        }
    }
    None
}

/// The byte offset of every leaf in a word buffer.
pub fn word_offsets(leaves: &[Abi]) -> impl Iterator<Item = (Abi, i32)> + '_ {
    leaves.iter().scan(0i32, |next, &abi| {
        let at = *next;
        *next = next.saturating_add(8 * abi.words() as i32);
        Some((abi, at))
    })
}

/// The type of one value at a typed call: its Julia name and the leaves that carry it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueType {
    /// The type as Julia prints it: `Int64`, `Ptr{UInt8}`, `Tuple{Int64, Bool}`.
    pub name: String,
    /// The low values that carry it, in order; none for a type with a single value such as `Nothing`.
    pub leaves: Vec<Abi>,
    /// The elements when the type is a tuple.
    pub elements: Option<Vec<ValueType>>,
    /// The fields of an immutable struct or a tuple, in order.
    pub fields: Vec<FieldType>,
    /// The referent of each leaf that is an object: these are checked before they are passed.
    pub objects: Vec<Option<ObjectType>>,
    /// The type, if it is one of high IR.
    pub ty: Option<TypeIn>,
    /// The memory at its address, if it is passed in memory.
    pub memory: Option<InMemory>,
}

/// A field of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldType {
    /// Its name; its number, from 1, in a tuple.
    pub name: String,
    /// Its distance from the start of the value in memory.
    pub offset: u32,
    pub ty: ValueType,
}

/// The bytes of a value that is passed in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InMemory {
    /// The number of bytes.
    pub bytes: u32,
    /// Whether references to objects are among them.
    pub has_objects: bool,
}

/// A type of objects, in its context.
#[derive(Clone)]
pub struct ObjectType {
    /// The context.
    pub cx: Arc<Context>,
    pub ty: IrType,
    /// Whether it may be missing: a field that may be undefined.
    pub is_optional: bool,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &ObjectType) -> bool {
        self.cx.is_same(&other.cx) && (self.ty, self.is_optional) == (other.ty, other.is_optional)
    }
}

impl Eq for ObjectType {}

impl fmt::Debug for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectType({})", self.cx.types.display(self.ty))
    }
}

impl ValueType {
    /// Whether it is the same type as another one: by the types, or by the names if one of the types is unknown. A type
    /// prints differently once its name denotes another type.
    fn is_like(&self, other: &ValueType) -> bool {
        match (&self.ty, &other.ty) {
            (Some(a), Some(b)) => a == b,
            _ => self.name == other.name,
        }
    }

    /// A type that one low value carries.
    pub fn scalar(name: impl Into<String>, abi: Abi) -> Self {
        ValueType {
            name: name.into(),
            leaves: vec![abi],
            elements: None,
            fields: Vec::new(),
            objects: vec![None],
            ty: None,
            memory: None,
        }
    }

    /// A type with a single value, which nothing carries.
    pub fn ghost(name: impl Into<String>) -> Self {
        ValueType {
            name: name.into(),
            leaves: Vec::new(),
            elements: None,
            fields: Vec::new(),
            objects: Vec::new(),
            ty: None,
            memory: None,
        }
    }

    /// A tuple of the given elements.
    pub fn tuple(elements: Vec<ValueType>) -> Self {
        let names: Vec<&str> = elements.iter().map(|e| e.name.as_str()).collect();
        ValueType {
            name: format!("Tuple{{{}}}", names.join(", ")),
            leaves: elements.iter().flat_map(|e| e.leaves.iter().copied()).collect(),
            objects: elements.iter().flat_map(|e| e.objects.iter().cloned()).collect(),
            elements: Some(elements),
            fields: Vec::new(),
            ty: None,
            memory: None,
        }
    }
}

/// A function as typed calls see it: its name, the Julia types of its parameters and result, and its native signature.
///
/// The signature belongs to the compiled function. It has the leaves of all parameters and of the result, except where a
/// value is passed in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionType {
    /// The name under which it is looked up.
    pub name: String,
    /// The name under which it is linked.
    pub symbol: String,
    /// The types of the parameters, the function object itself not among them.
    pub params: Vec<ValueType>,
    /// The type of the result.
    pub result: ValueType,
    /// The native signature.
    pub signature: Signature,
}

impl FunctionType {
    /// Whether callers of one may call the other: the types of the values, and how they are passed, are equal.
    pub fn is_called_like(&self, other: &FunctionType) -> bool {
        self.signature == other.signature
            && self.result.is_like(&other.result)
            && self.params.len() == other.params.len()
            && self.params.iter().zip(&other.params).all(|(a, b)| a.is_like(b))
    }

    /// The facts that [`FunctionType::is_called_like`] compares, for messages about a function that is not called like
    /// another one.
    pub fn describe_beside(&self, other: &FunctionType) -> String {
        let mut values =
            self.params.iter().chain([&self.result]).zip(other.params.iter().chain([&other.result]));
        let mut text = self.describe();
        if text == other.describe()
            && let Some((value, _)) = values.find(|(a, b)| !a.is_like(b))
        {
            text.push_str(&format!(
                ", with a `{}` of another program, which is laid out in another way",
                value.name
            ));
        }
        text
    }

    /// The names of the types, and how values are passed.
    pub fn describe(&self) -> String {
        let params: Vec<&str> = self.params.iter().map(|param| param.name.as_str()).collect();
        let Signature { params: low, results } = &self.signature;
        format!("({})::{} by {low:?} to {results:?}", params.join(", "), self.result.name)
    }

    /// A function all of whose values are passed as their leaves, linked under the name that it is looked up by.
    pub fn of_leaves(name: impl Into<String>, params: Vec<ValueType>, result: ValueType) -> Self {
        let signature = Signature {
            params: params.iter().flat_map(|p| p.leaves.iter().copied()).collect(),
            results: result.leaves.clone(),
        };
        let name = name.into();
        FunctionType { symbol: name.clone(), name, params, result, signature }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_beyond_four_words_go_through_memory() {
        assert!(!Signature::new([], [Abi::I128, Abi::I128]).returns_through_memory());
        let wide = Signature::new([Abi::F64], [Abi::I128, Abi::I128, Abi::I8]);
        assert!(wide.returns_through_memory());
        assert_eq!(wide.clif().params.len(), 2);
        assert!(wide.clif().returns.is_empty());
    }

    #[test]
    fn word_offsets_count_two_words_for_128_bits() {
        let offsets: Vec<_> = word_offsets(&[Abi::I8, Abi::I128, Abi::F32]).map(|(_, at)| at).collect();
        assert_eq!(offsets, [0, 8, 24]);
    }

    #[test]
    fn a_tuple_concatenates_its_leaves() {
        let ty = ValueType::tuple(vec![ValueType::scalar("Int64", Abi::I64), ValueType::ghost("Nothing")]);
        assert_eq!(ty.name, "Tuple{Int64, Nothing}");
        assert_eq!(ty.leaves, [Abi::I64]);
    }

    #[test]
    fn a_register_that_c_leaves_unused_is_taken() {
        let spare = |wide: &[usize], len| {
            let ty = |at| if wide.contains(&at) { types::I128 } else { types::I64 };
            spare_in_aapcs64(&(0..len).map(|at| AbiParam::new(ty(at))).collect::<Vec<_>>())
        };
        // x0 to x6, then memory.
        assert_eq!(spare(&[7], 9), Some(7));
        // x0, x2 and x3, x4, x5, x6, then memory.
        assert_eq!(spare(&[1, 5], 7), Some(5));
        // x6 and x7; memory, if no register is left.
        assert_eq!(spare(&[5], 7), None);
        assert_eq!(spare(&[6], 8), None);
        assert_eq!(spare(&[8, 9], 10), None);
    }
}
