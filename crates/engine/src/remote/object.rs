//! Rust values that are copied to an executor and back.
//!
//! | Rust | Julia |
//! |---|---|
//! | `i8`…`i128`, `u8`…`u128`, `f32`, `f64`, `bool`, `char`, `()` | as for calls in process |
//! | [`String`] | `String`; a result has to be UTF-8 |
//! | [`Vec`] of numbers or `bool`s | `Vector` of them |

use brolga_codegen::sig::{Abi, FunctionType, ValueType};
use brolga_executor::GraphError;
use brolga_interp::{Interp, Val};
use brolga_ir::Type;
use brolga_jit::{LookupError, Value, ValueError};

mod sealed {
    pub trait Sealed {}
}

/// A Rust type for arguments or results that are copied.
pub trait RemoteValue: Sized + sealed::Sealed {
    /// Whether it represents this Julia type.
    fn stands_for(ty: &ValueType) -> bool;

    /// The value, made in an interpreter.
    #[doc(hidden)]
    fn into_value(self, interp: &mut Interp<'_>) -> Result<Val, GraphError>;

    /// The Rust value of a value.
    #[doc(hidden)]
    fn of_value(interp: &mut Interp<'_>, value: &Val) -> Result<Self, ValueError>;
}

/// The parameters of a function: a tuple of up to eight [`RemoteValue`]s.
pub trait RemoteParams: sealed::Sealed {
    /// Checks that the types represent a function's types.
    #[doc(hidden)]
    fn check(ty: &FunctionType) -> Result<(), LookupError>;

    /// Appends the values.
    #[doc(hidden)]
    fn append(self, interp: &mut Interp<'_>, values: &mut Vec<Val>) -> Result<(), GraphError>;
}

/// A number, with the type that its bits are of.
trait Number: Value + Copy {
    const TYPE: Type;
}

fn bits_of<T: Value>(value: T) -> u128 {
    let mut leaves = Vec::with_capacity(1);
    value.into_leaves(&mut leaves);
    leaves.first().copied().unwrap_or(0)
}

macro_rules! numbers {
    ($($rust:ty => $ty:ident),*) => {$(
        impl Number for $rust {
            const TYPE: Type = Type::$ty;
        }

        impl sealed::Sealed for $rust {}
        impl RemoteValue for $rust {
            fn stands_for(ty: &ValueType) -> bool {
                <$rust as Value>::stands_for(ty)
            }

            fn into_value(self, interp: &mut Interp<'_>) -> Result<Val, GraphError> {
                Ok(Val::bits(&interp.module().cx.types, Type::$ty, bits_of(self)))
            }

            fn of_value(_: &mut Interp<'_>, value: &Val) -> Result<Self, ValueError> {
                match value {
                    Val::Bits { ty: Type::$ty, bits } => <$rust as Value>::from_leaves(&mut std::iter::once(*bits)),
                    _ => Err(ValueError::Undefined),
                }
            }
        }
    )*};
}

numbers! {
    i8 => INT8, i16 => INT16, i32 => INT32, i64 => INT64, i128 => INT128,
    u8 => UINT8, u16 => UINT16, u32 => UINT32, u64 => UINT64, u128 => UINT128,
    f32 => FLOAT32, f64 => FLOAT64, bool => BOOL, char => CHAR
}

impl sealed::Sealed for String {}
impl RemoteValue for String {
    fn stands_for(ty: &ValueType) -> bool {
        ty.name == "String"
    }

    fn into_value(self, interp: &mut Interp<'_>) -> Result<Val, GraphError> {
        Ok(interp.string(self.as_bytes())?)
    }

    fn of_value(interp: &mut Interp<'_>, value: &Val) -> Result<String, ValueError> {
        let bytes = interp.string_bytes(value).ok().flatten().ok_or(ValueError::Undefined)?;
        String::from_utf8(bytes)
            .map_err(|error| ValueError::NotUtf8 { valid: error.utf8_error().valid_up_to() })
    }
}

impl<T: Number> sealed::Sealed for Vec<T> {}
impl<T: Number> RemoteValue for Vec<T> {
    fn stands_for(ty: &ValueType) -> bool {
        let element = ty.name.strip_prefix("Vector{").and_then(|rest| rest.strip_suffix('}'));
        element.is_some_and(|name| T::stands_for(&ValueType::scalar(name, Abi::I64)))
    }

    fn into_value(self, interp: &mut Interp<'_>) -> Result<Val, GraphError> {
        let types = &interp.module().cx.types;
        let elements: Vec<Val> =
            self.into_iter().map(|element| Val::bits(types, T::TYPE, bits_of(element))).collect();
        let length = i64::try_from(elements.len()).unwrap_or(i64::MAX);
        Ok(interp.array(T::TYPE, &[length], &elements)?)
    }

    fn of_value(interp: &mut Interp<'_>, value: &Val) -> Result<Vec<T>, ValueError> {
        use brolga_ir::show::View;
        let Ok(View::Elements { elements, .. }) = interp.view(value) else {
            return Err(ValueError::Undefined);
        };
        let element = |element: Option<Val>| match element {
            Some(Val::Bits { ty, bits }) if ty == T::TYPE => T::from_leaves(&mut std::iter::once(bits)),
            _ => Err(ValueError::Undefined),
        };
        elements.into_iter().map(element).collect()
    }
}

impl sealed::Sealed for () {}
impl RemoteValue for () {
    fn stands_for(ty: &ValueType) -> bool {
        <() as Value>::stands_for(ty)
    }

    fn into_value(self, _: &mut Interp<'_>) -> Result<Val, GraphError> {
        Ok(Val::NOTHING)
    }

    fn of_value(_: &mut Interp<'_>, value: &Val) -> Result<(), ValueError> {
        match value {
            Val::Singleton(Type::NOTHING) => Ok(()),
            _ => Err(ValueError::Undefined),
        }
    }
}

/// The name of a Rust type, and whether it represents a type.
type Given = (&'static str, fn(&ValueType) -> bool);

fn check(ty: &FunctionType, given: &[Given]) -> Result<(), LookupError> {
    let name = || ty.name.clone();
    if given.len() != ty.params.len() {
        return Err(LookupError::Count { name: name(), expected: ty.params.len(), given: given.len() });
    }
    for (at, (param, (rust, stands_for))) in ty.params.iter().zip(given).enumerate() {
        if !stands_for(param) {
            let (index, julia) = (at + 1, param.name.clone());
            return Err(LookupError::Argument { name: name(), index, julia, rust });
        }
    }
    Ok(())
}

impl RemoteParams for () {
    fn check(ty: &FunctionType) -> Result<(), LookupError> {
        check(ty, &[])
    }

    fn append(self, _: &mut Interp<'_>, _: &mut Vec<Val>) -> Result<(), GraphError> {
        Ok(())
    }
}

macro_rules! params {
    ($($param:ident)+) => {
        impl<$($param: RemoteValue),+> sealed::Sealed for ($($param,)+) {}
        impl<$($param: RemoteValue),+> RemoteParams for ($($param,)+) {
            fn check(ty: &FunctionType) -> Result<(), LookupError> {
                check(ty, &[$((std::any::type_name::<$param>(), $param::stands_for)),+])
            }

            #[expect(non_snake_case, reason = "a parameter is named after its type")]
            fn append(self, interp: &mut Interp<'_>, values: &mut Vec<Val>) -> Result<(), GraphError> {
                let ($($param,)+) = self;
                $(values.push($param.into_value(interp)?);)+
                Ok(())
            }
        }
    };
}

params!(A);
params!(A B);
params!(A B C);
params!(A B C D);
params!(A B C D E);
params!(A B C D E F);
params!(A B C D E F G);
params!(A B C D E F G H);
