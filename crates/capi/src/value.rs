//! Values of C: a kind, and a number, an address or an object.
//!
//! A number is passed as its bits; C writes the union member selected by the kind, and only that member is read.

use std::ffi::c_void;

use brolga::build::Type;
use brolga::heap::{Obj, Root, Scope};
use brolga::host::{bits_to_char, char_to_bits};

use crate::error::{BrolgaCode, BrolgaError};
use crate::object::BrolgaObject;
use crate::runtime::BrolgaRuntime;

/// The kind of a value.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaKind {
    /// `nothing`.
    Nothing = 0,
    /// `Bool`, in `boolean`.
    Bool = 1,
    /// `Int8`, in `int8`.
    Int8 = 2,
    /// `Int16`, in `int16`.
    Int16 = 3,
    /// `Int32`, in `int32`.
    Int32 = 4,
    /// `Int64`, in `int64`.
    Int64 = 5,
    /// `UInt8`, in `uint8`.
    Uint8 = 6,
    /// `UInt16`, in `uint16`.
    Uint16 = 7,
    /// `UInt32`, in `uint32`.
    Uint32 = 8,
    /// `UInt64`, in `uint64`.
    Uint64 = 9,
    /// `Float32`, in `float32`.
    Float32 = 10,
    /// `Float64`, in `float64`.
    Float64 = 11,
    /// `Char`, in `uint32`: the code point.
    Char = 12,
    /// `Ptr`, in `pointer`. The program's accesses through it are its own affair.
    Pointer = 13,
    /// Any other value, in `object`.
    Object = 14,
}

use BrolgaKind as Kind;

/// The kinds of values that are passed as bits, with their types.
const PLAIN: [(Kind, &str, Type); 13] = [
    (Kind::Nothing, "Nothing", Type::NOTHING),
    (Kind::Bool, "Bool", Type::BOOL),
    (Kind::Int8, "Int8", Type::INT8),
    (Kind::Int16, "Int16", Type::INT16),
    (Kind::Int32, "Int32", Type::INT32),
    (Kind::Int64, "Int64", Type::INT64),
    (Kind::Uint8, "UInt8", Type::UINT8),
    (Kind::Uint16, "UInt16", Type::UINT16),
    (Kind::Uint32, "UInt32", Type::UINT32),
    (Kind::Uint64, "UInt64", Type::UINT64),
    (Kind::Float32, "Float32", Type::FLOAT32),
    (Kind::Float64, "Float64", Type::FLOAT64),
    (Kind::Char, "Char", Type::CHAR),
];

impl BrolgaKind {
    /// The kind of values of a type, by its name: `Object` for every non-numeric type.
    pub(crate) fn of_name(name: &str) -> Kind {
        match PLAIN.iter().find(|(_, known, _)| *known == name) {
            Some((kind, _, _)) => *kind,
            None if name.starts_with("Ptr{") => Kind::Pointer,
            None => Kind::Object,
        }
    }

    /// The type of such a number.
    pub(crate) fn ty(self) -> Option<Type> {
        PLAIN.iter().find(|(kind, _, _)| *kind == self).map(|(_, _, ty)| *ty)
    }

    /// The kind of objects of a type: `Object` for every non-numeric type.
    pub(crate) fn of(ty: Option<Type>) -> Kind {
        PLAIN.iter().find(|(_, _, known)| ty == Some(*known)).map_or(Kind::Object, |(kind, _, _)| *kind)
    }

    /// The kind of a number.
    pub(crate) fn of_number(number: u32) -> Result<Kind, BrolgaError> {
        let others = [Kind::Pointer, Kind::Object];
        let mut kinds = PLAIN.iter().map(|(kind, _, _)| *kind).chain(others);
        kinds.find(|kind| *kind as u32 == number).ok_or_else(|| {
            BrolgaError::new(BrolgaCode::Argument, format!("{number} is not a kind of values"))
        })
    }
}

/// A number, an address or an object: the member that the kind of the value says.
#[repr(C)]
#[derive(Clone, Copy)]
pub union BrolgaBits {
    /// Of `BROLGA_KIND_BOOL`.
    pub boolean: bool,
    /// Of `BROLGA_KIND_INT8`.
    pub int8: i8,
    /// Of `BROLGA_KIND_INT16`.
    pub int16: i16,
    /// Of `BROLGA_KIND_INT32`.
    pub int32: i32,
    /// Of `BROLGA_KIND_INT64`.
    pub int64: i64,
    /// Of `BROLGA_KIND_UINT8`.
    pub uint8: u8,
    /// Of `BROLGA_KIND_UINT16`.
    pub uint16: u16,
    /// Of `BROLGA_KIND_UINT32` and `BROLGA_KIND_CHAR`.
    pub uint32: u32,
    /// Of `BROLGA_KIND_UINT64`.
    pub uint64: u64,
    /// Of `BROLGA_KIND_FLOAT32`.
    pub float32: f32,
    /// Of `BROLGA_KIND_FLOAT64`.
    pub float64: f64,
    /// Of `BROLGA_KIND_POINTER`.
    pub pointer: *mut c_void,
    /// Of `BROLGA_KIND_OBJECT`.
    pub object: *mut BrolgaObject,
}

/// A value: an argument, or the result of a call. The caller owns the object of a result and frees it with `brolga_object_free`; objects among arguments are borrowed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BrolgaValue {
    /// A `BrolgaKind`.
    pub kind: u32,
    /// The number, the address or the object.
    pub bits: BrolgaBits,
}

/// A decoded C value: bits in the low end, or an object.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    Plain(Kind, u64),
    Object(&'a BrolgaObject),
}

impl BrolgaValue {
    /// A value from the bits of a number; bits above its size are ignored.
    pub(crate) fn from_bits(kind: Kind, bits: u64) -> Result<BrolgaValue, BrolgaError> {
        let bits = match kind {
            Kind::Bool => bits & 1,
            Kind::Char => match bits_to_char(bits as u32) {
                Some(char) => u64::from(u32::from(char)),
                None => {
                    let text = format!("the Char 0x{:08x} is not a Unicode scalar value", bits as u32);
                    return Err(BrolgaError::new(BrolgaCode::Argument, text));
                }
            },
            _ => bits,
        };
        // Every member starts at the low end, on little-endian processors.
        Ok(BrolgaValue { kind: kind as u32, bits: BrolgaBits { uint64: bits } })
    }

    pub(crate) fn object(object: BrolgaObject) -> BrolgaValue {
        let object = Box::into_raw(Box::new(object));
        BrolgaValue { kind: Kind::Object as u32, bits: BrolgaBits { object } }
    }

    /// Decodes the value.
    ///
    /// # Safety
    ///
    /// The member for the kind is set; an object is null, or live while the result is used.
    pub(crate) unsafe fn read<'a>(&self) -> Result<Given<'a>, BrolgaError> {
        let kind = Kind::of_number(self.kind)?;
        if kind != Kind::Object {
            // SAFETY: by the contract.
            return Ok(Given::Plain(kind, unsafe { self.word(kind) }?));
        }
        // SAFETY: by the contract the member is set, and a non-null object is live.
        let object = unsafe { self.bits.object.as_ref() };
        Ok(Given::Object(object.ok_or_else(|| BrolgaError::null("value.object"))?))
    }

    /// The bits of a value of this kind, which is not `Object`.
    ///
    /// # Safety
    ///
    /// The member for the kind is set.
    #[inline]
    pub(crate) unsafe fn word(&self, kind: Kind) -> Result<u64, BrolgaError> {
        let bits = &self.bits;
        // SAFETY: each arm reads the bytes of the member for the kind, which is set by the contract; all of them are numbers, for
        // which every bit pattern is valid.
        Ok(unsafe {
            match kind {
                Kind::Nothing | Kind::Object => 0,
                Kind::Bool => u64::from(bits.uint8 & 1),
                Kind::Int8 | Kind::Uint8 => u64::from(bits.uint8),
                Kind::Int16 | Kind::Uint16 => u64::from(bits.uint16),
                Kind::Int32 | Kind::Uint32 | Kind::Float32 => u64::from(bits.uint32),
                Kind::Char => match char::from_u32(bits.uint32) {
                    Some(char) => u64::from(char_to_bits(char)),
                    None => return Err(no_char(bits.uint32)),
                },
                Kind::Int64 | Kind::Uint64 | Kind::Float64 => bits.uint64,
                Kind::Pointer => bits.pointer.expose_provenance() as u64,
            }
        })
    }
}

#[cold]
fn no_char(number: u32) -> BrolgaError {
    BrolgaError::new(BrolgaCode::Argument, format!("{number:#x} is not a Unicode scalar value"))
}

/// The object that holds a value.
pub(crate) fn boxed<'f, 'h>(
    scope: &mut Scope<'f, 'h>,
    runtime: &BrolgaRuntime,
    given: Given<'_>,
) -> Result<Root<'f, 'h>, BrolgaError> {
    let (kind, bits) = match given {
        Given::Plain(kind, bits) => (kind, bits),
        Given::Object(object) => return object.root(scope),
    };
    let Some(ty) = kind.ty() else {
        return Err(BrolgaError::new(
            BrolgaCode::Argument,
            "a pointer is passed by functions of numbers only",
        ));
    };
    if kind == Kind::Int64 {
        return Ok(scope.int(bits as i64)?);
    }
    let ty = runtime.type_object(&runtime.context, ty)?;
    let made = match kind {
        Kind::Nothing => {
            return scope
                .instance(&ty)
                .ok_or_else(|| BrolgaError::new(BrolgaCode::Internal, "`nothing` is missing"));
        }
        Kind::Bool | Kind::Int8 | Kind::Uint8 => scope.boxed(&ty, bits as u8),
        Kind::Int16 | Kind::Uint16 => scope.boxed(&ty, bits as u16),
        Kind::Int32 | Kind::Uint32 | Kind::Float32 | Kind::Char => scope.boxed(&ty, bits as u32),
        _ => scope.boxed(&ty, bits),
    };
    Ok(made?)
}

/// The value that an object holds: a number, or a handle to the object.
pub(crate) fn unboxed<'h>(
    scope: &Scope<'_, 'h>,
    runtime: &BrolgaRuntime,
    object: Obj<'_, 'h>,
) -> Result<BrolgaValue, BrolgaError> {
    let kind = Kind::of(object.ty());
    let bits = match kind {
        Kind::Nothing => 0,
        Kind::Bool | Kind::Int8 | Kind::Uint8 => u64::from(object.unboxed::<u8>()?),
        Kind::Int16 | Kind::Uint16 => u64::from(object.unboxed::<u16>()?),
        Kind::Int32 | Kind::Uint32 | Kind::Float32 | Kind::Char => u64::from(object.unboxed::<u32>()?),
        Kind::Int64 | Kind::Uint64 | Kind::Float64 => object.unboxed::<u64>()?,
        Kind::Pointer | Kind::Object => {
            return Ok(BrolgaValue::object(BrolgaObject::new(runtime, scope.persistent(object))));
        }
    };
    BrolgaValue::from_bits(kind, bits)
}

/// `nothing`.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_nothing() -> BrolgaValue {
    BrolgaValue { kind: Kind::Nothing as u32, bits: BrolgaBits { uint64: 0 } }
}

/// A `Bool`.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_bool(value: bool) -> BrolgaValue {
    BrolgaValue { kind: Kind::Bool as u32, bits: BrolgaBits { uint64: u64::from(value) } }
}

/// An `Int64`.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_int64(value: i64) -> BrolgaValue {
    BrolgaValue { kind: Kind::Int64 as u32, bits: BrolgaBits { int64: value } }
}

/// A `Float64`.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_float64(value: f64) -> BrolgaValue {
    BrolgaValue { kind: Kind::Float64 as u32, bits: BrolgaBits { float64: value } }
}

/// An object as an argument, which is lent.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_object(value: *mut BrolgaObject) -> BrolgaValue {
    BrolgaValue { kind: Kind::Object as u32, bits: BrolgaBits { object: value } }
}
