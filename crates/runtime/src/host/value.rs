//! Values of typed host functions: how each is passed, its Rust type, and its type in programs.
//!
//! The traits are sealed, because `HostArg::look` trusts what compiled code has passed.

use std::fmt::Display;
use std::ptr::NonNull;

use brolga_ir::show::{bits_to_char, char_to_bits};
use brolga_ir::types::TypeError;
use brolga_ir::{Context, Type};

use super::later::{Make, Settlement};
use crate::heap::{Bits, Object, ObjectError, Persistent, bits_of};
use crate::thread::Thread;

pub(super) mod sealed {
    pub trait Sealed {}
}

/// The address of a program's object, as passed to C.
type ObjectAddress = *mut u8;

/// The bytes that a view covers, and whether it may change them.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    start: usize,
    end: usize,
    is_mutable: bool,
}

impl Shown {
    fn new<T>(first: NonNull<T>, length: usize, is_mutable: bool) -> Shown {
        let start = first.addr().get();
        Shown { start, end: start + length * size_of::<T>(), is_mutable }
    }

    /// Whether two views in one call conflict.
    pub(super) fn clashes(&self, other: &Shown) -> bool {
        (self.is_mutable || other.is_mutable) && self.start < other.end && other.start < self.end
    }
}

/// A Rust type that typed host functions accept (`&str`, `f64`): the table in the module documentation lists
/// them.
pub trait HostArg: sealed::Sealed {
    /// The register in which it is passed.
    #[doc(hidden)]
    type Register: Copy;
    /// The value with the lifetime of the call.
    type View<'a>;

    /// Whether it borrows memory of the heap.
    #[doc(hidden)]
    const IS_VIEW: bool = false;
    /// Whether it needs the running thread.
    #[doc(hidden)]
    const NEEDS_THREAD: bool = false;

    /// Its type in programs.
    #[doc(hidden)]
    fn ty(cx: &Context) -> Result<Type, TypeError>;

    /// The value, or why it is not a valid Rust value.
    ///
    /// # Safety
    ///
    /// The register is what compiled code passes for the type. An object stays alive and does not move for
    /// `'a`; if this is a view, no code of this thread writes to the object meanwhile. The thread is the
    /// running one, and is present if needed.
    #[doc(hidden)]
    unsafe fn look<'a>(
        register: Self::Register,
        thread: Option<&'a Thread>,
    ) -> Result<Self::View<'a>, String>;

    /// The bytes that the value covers, and may change or see changed through another view.
    ///
    /// # Safety
    ///
    /// As for [`HostArg::look`].
    #[doc(hidden)]
    unsafe fn shown(_register: Self::Register) -> Option<Shown> {
        None
    }
}

/// A Rust type that typed host functions return: the table in the module documentation lists them.
pub trait HostResult: sealed::Sealed {
    /// Its form as a C result: a pair of the value and a key, or a key.
    #[doc(hidden)]
    type Back;
    /// Whether the value itself is returned.
    #[doc(hidden)]
    const IS_DIRECT: bool;

    /// Its type in programs.
    #[doc(hidden)]
    fn ty(cx: &Context) -> Result<Type, TypeError>;

    /// The value, or a key for the object to be made from it.
    #[doc(hidden)]
    fn back(self, leave: impl FnOnce(Settlement) -> u64) -> Self::Back;

    /// No value.
    #[doc(hidden)]
    fn failed(key: u64) -> Self::Back;
}

/// The return type of a typed host function: a result, or a `Result` of it with an error that can be
/// displayed.
pub trait HostOutcome {
    /// The result.
    type Value: HostResult;

    /// The result, or the error's message.
    #[doc(hidden)]
    fn outcome(self) -> Result<Self::Value, String>;
}

impl<T: HostResult> HostOutcome for T {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        Ok(self)
    }
}

impl<T: HostResult, E: Display> HostOutcome for Result<T, E> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

/// A value and the key 0, or an arbitrary value and another key.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Keyed<T> {
    value: T,
    key: u64,
}

/// Values of one register that are passed as another type: the type in C, and the conversions from and to it.
macro_rules! registers {
    ($($rust:ty as $register:ty, $ty:expr, $from:expr, $to:expr;)*) => {$(
        impl sealed::Sealed for $rust {}

        impl HostArg for $rust {
            type Register = $register;
            type View<'a> = $rust;

            fn ty(_: &Context) -> Result<Type, TypeError> {
                Ok($ty)
            }

            unsafe fn look(register: $register, _: Option<&Thread>) -> Result<$rust, String> {
                let from: fn($register) -> Result<$rust, String> = $from;
                from(register)
            }
        }

        impl HostResult for $rust {
            type Back = Keyed<$register>;
            const IS_DIRECT: bool = true;

            fn ty(_: &Context) -> Result<Type, TypeError> {
                Ok($ty)
            }

            fn back(self, _: impl FnOnce(Settlement) -> u64) -> Keyed<$register> {
                let to: fn($rust) -> $register = $to;
                Keyed { value: to(self), key: 0 }
            }

            fn failed(key: u64) -> Keyed<$register> {
                Keyed { value: <$register>::default(), key }
            }
        }
    )*};
}

registers! {
    i8 as i8, Type::INT8, Ok, |value| value;
    i16 as i16, Type::INT16, Ok, |value| value;
    i32 as i32, Type::INT32, Ok, |value| value;
    i64 as i64, Type::INT64, Ok, |value| value;
    u8 as u8, Type::UINT8, Ok, |value| value;
    u16 as u16, Type::UINT16, Ok, |value| value;
    u32 as u32, Type::UINT32, Ok, |value| value;
    u64 as u64, Type::UINT64, Ok, |value| value;
    f32 as f32, Type::FLOAT32, Ok, |value| value;
    f64 as f64, Type::FLOAT64, Ok, |value| value;
    bool as u8, Type::BOOL, |bits| Ok(bits & 1 != 0), u8::from;
    char as u32, Type::CHAR,
        |bits| bits_to_char(bits).ok_or_else(|| format!("the Char 0x{bits:08x} is not a Unicode scalar value")),
        char_to_bits;
}

impl sealed::Sealed for () {}

impl HostResult for () {
    type Back = u64;
    const IS_DIRECT: bool = true;

    fn ty(_: &Context) -> Result<Type, TypeError> {
        Ok(Type::NOTHING)
    }

    fn back(self, _: impl FnOnce(Settlement) -> u64) -> u64 {
        0
    }

    fn failed(key: u64) -> u64 {
        key
    }
}

/// The object at an address passed by compiled code.
///
/// # Safety
///
/// As for [`HostArg::look`].
unsafe fn object(address: ObjectAddress) -> Result<Object, String> {
    let address = NonNull::new(address).ok_or_else(|| "an argument is an undefined reference".to_owned())?;
    // SAFETY: by the contract.
    Ok(unsafe { Object::from_pointer(address) })
}

impl sealed::Sealed for &str {}

impl HostArg for &str {
    type Register = ObjectAddress;
    type View<'a> = &'a str;
    const IS_VIEW: bool = true;

    fn ty(_: &Context) -> Result<Type, TypeError> {
        Ok(Type::STRING)
    }

    unsafe fn look(register: ObjectAddress, _: Option<&Thread>) -> Result<&str, String> {
        // SAFETY: by the contract. The bytes of a string never change.
        let bytes: Option<&[u8]> = unsafe { object(register) }?.string();
        let text = std::str::from_utf8(bytes.unwrap_or_default());
        text.map_err(|error| format!("the String is not UTF-8 from byte {} on", error.valid_up_to()))
    }
}

/// Elements of slices, for which all bit patterns are valid.
macro_rules! elements {
    ($($element:ty: $ty:expr;)*) => {$(
        impl sealed::Sealed for &[$element] {}

        impl HostArg for &[$element] {
            type Register = ObjectAddress;
            type View<'a> = &'a [$element];
            const IS_VIEW: bool = true;

            fn ty(cx: &Context) -> Result<Type, TypeError> {
                cx.types.vector($ty)
            }

            unsafe fn look(register: ObjectAddress, _: Option<&Thread>) -> Result<&[$element], String> {
                // SAFETY: by the contract.
                let (first, length) = unsafe { slice_of::<$element>(register) }?;
                // SAFETY: as above; the elements are in the object, aligned, and all bit patterns are valid.
                Ok(unsafe { std::slice::from_raw_parts(first.as_ptr(), length) })
            }

            unsafe fn shown(register: ObjectAddress) -> Option<Shown> {
                // SAFETY: by the contract.
                let (first, length) = unsafe { slice_of::<$element>(register) }.ok()?;
                Some(Shown::new(first, length, false))
            }
        }

        impl sealed::Sealed for &mut [$element] {}

        impl HostArg for &mut [$element] {
            type Register = ObjectAddress;
            type View<'a> = &'a mut [$element];
            const IS_VIEW: bool = true;

            fn ty(cx: &Context) -> Result<Type, TypeError> {
                cx.types.vector($ty)
            }

            unsafe fn look(register: ObjectAddress, _: Option<&Thread>) -> Result<&mut [$element], String> {
                // SAFETY: by the contract.
                let (first, length) = unsafe { slice_of::<$element>(register) }?;
                // SAFETY: as for the shared slice. `enter.rs` refuses overlapping slices.
                Ok(unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), length) })
            }

            unsafe fn shown(register: ObjectAddress) -> Option<Shown> {
                // SAFETY: by the contract.
                let (first, length) = unsafe { slice_of::<$element>(register) }.ok()?;
                Some(Shown::new(first, length, true))
            }
        }

        impl sealed::Sealed for Vec<$element> {}

        impl HostResult for Vec<$element> {
            type Back = u64;
            const IS_DIRECT: bool = false;

            fn ty(cx: &Context) -> Result<Type, TypeError> {
                cx.types.vector($ty)
            }

            fn back(self, leave: impl FnOnce(Settlement) -> u64) -> u64 {
                let make: Make = Box::new(move |scope, ty| scope.vector_of(ty, &self));
                leave(Settlement::Make(make))
            }

            fn failed(key: u64) -> u64 {
                key
            }
        }
    )*};
}

elements! {
    i8: Type::INT8;
    i16: Type::INT16;
    i32: Type::INT32;
    i64: Type::INT64;
    u8: Type::UINT8;
    u16: Type::UINT16;
    u32: Type::UINT32;
    u64: Type::UINT64;
    f32: Type::FLOAT32;
    f64: Type::FLOAT64;
}

/// The first element of a vector, and the number of elements.
///
/// # Safety
///
/// As for [`HostArg::look`].
unsafe fn slice_of<T: Bits>(register: ObjectAddress) -> Result<(NonNull<T>, usize), String> {
    // SAFETY: by the contract.
    let found = bits_of(unsafe { object(register) }?, T::SIZE);
    found.map(|(first, length)| (first.cast(), length)).map_err(|error| error.to_string())
}

impl sealed::Sealed for String {}

impl HostResult for String {
    type Back = u64;
    const IS_DIRECT: bool = false;

    fn ty(_: &Context) -> Result<Type, TypeError> {
        Ok(Type::STRING)
    }

    fn back(self, leave: impl FnOnce(Settlement) -> u64) -> u64 {
        leave(Settlement::Make(Box::new(move |scope, _| scope.string(self.as_bytes()))))
    }

    fn failed(key: u64) -> u64 {
        key
    }
}

impl sealed::Sealed for Persistent {}

impl HostArg for Persistent {
    type Register = ObjectAddress;
    type View<'a> = Persistent;
    const NEEDS_THREAD: bool = true;

    fn ty(_: &Context) -> Result<Type, TypeError> {
        Ok(Type::ANY)
    }

    unsafe fn look(register: ObjectAddress, thread: Option<&Thread>) -> Result<Persistent, String> {
        let runtime = thread.and_then(Thread::runtime).ok_or_else(|| "the runtime is gone".to_owned())?;
        // SAFETY: by the contract.
        Ok(runtime.heap().persistent(unsafe { object(register) }?))
    }
}

impl HostResult for Persistent {
    type Back = u64;
    const IS_DIRECT: bool = false;

    fn ty(_: &Context) -> Result<Type, TypeError> {
        Ok(Type::ANY)
    }

    fn back(self, leave: impl FnOnce(Settlement) -> u64) -> u64 {
        let make: Make = Box::new(move |scope, ty| {
            let object = scope.get_persistent(&self).map(|object| scope.root(object));
            object.ok_or_else(|| ObjectError::OtherHeap { name: ty.name().to_owned() })
        });
        leave(Settlement::Make(make))
    }

    fn failed(key: u64) -> u64 {
        key
    }
}
