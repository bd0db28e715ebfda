//! Vectors of numbers as C handles: copied in and out, or over the numbers of C themselves.
//!
//! ```text
//!   brolga_object_numbers        C ── memcpy ──► vector
//!   brolga_object_copy_numbers   vector ── memcpy ──► C
//!   brolga_object_borrow         vector ──► the numbers of C, until `release`
//! ```
//!
//! The functions for `Float64` and `Int64` are those for all kinds with their types.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use brolga::heap::{Bits, Column, Root, Scope, TypeRef};

use crate::callback::{BrolgaFreeFn, Data};
use crate::error::{BrolgaCode, BrolgaError, fenced};
use crate::object::{BrolgaObject, enter};
use crate::out::{give, given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::{array, room};
use crate::value::BrolgaKind;

/// Evaluates an expression with the Rust type that has the bits of the numbers of a kind. The other kinds are errors.
macro_rules! with_bits {
    ($kind:expr, $bits:ident => $body:expr) => {{
        macro_rules! of {
            ($ty:ty) => {{
                type $bits = $ty;
                $body
            }};
        }
        match $kind {
            BrolgaKind::Bool | BrolgaKind::Int8 | BrolgaKind::Uint8 => of!(u8),
            BrolgaKind::Int16 | BrolgaKind::Uint16 => of!(u16),
            BrolgaKind::Int32 | BrolgaKind::Uint32 | BrolgaKind::Float32 => of!(u32),
            BrolgaKind::Int64 | BrolgaKind::Uint64 | BrolgaKind::Float64 => of!(u64),
            kind @ (BrolgaKind::Nothing | BrolgaKind::Char | BrolgaKind::Pointer | BrolgaKind::Object) => {
                Err(no_numbers(kind))
            }
        }
    }};
}

#[cold]
fn no_numbers(kind: BrolgaKind) -> BrolgaError {
    BrolgaError::new(BrolgaCode::Argument, format!("there are no vectors of numbers of the kind {kind:?}"))
}

/// The type of vectors of numbers of a kind.
fn vector_type(runtime: &BrolgaRuntime, kind: BrolgaKind) -> Result<TypeRef, BrolgaError> {
    let cx = &runtime.context;
    let element = kind.ty().ok_or_else(|| no_numbers(kind))?;
    let vector = cx.types.vector(element);
    let vector = vector.map_err(|error| BrolgaError::new(BrolgaCode::Internal, format!("{error:?}")))?;
    runtime.type_object(cx, vector)
}

/// An object that `make` makes in a scope.
fn made(
    runtime: &BrolgaRuntime,
    make: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>) -> Result<Root<'f, 'h>, BrolgaError>,
) -> Result<BrolgaObject, BrolgaError> {
    let kept = enter(runtime, |scope| {
        let made = make(scope)?;
        Ok(scope.persistent(made.get(scope)))
    })?;
    Ok(BrolgaObject::new(runtime, kept))
}

/// A vector with a copy of numbers.
///
/// # Safety
///
/// There are `length` numbers of the kind at `numbers`, or it is null.
unsafe fn copied(
    runtime: &BrolgaRuntime,
    kind: BrolgaKind,
    numbers: *const c_void,
    length: usize,
) -> Result<BrolgaObject, BrolgaError> {
    let ty = vector_type(runtime, kind)?;
    with_bits!(kind, T => {
        // SAFETY: by the contract.
        let numbers = unsafe { array(numbers.cast::<T>(), length, "numbers") }?;
        made(runtime, |scope| Ok(scope.vector_of(&ty, numbers)?))
    })
}

/// A vector over numbers of C.
///
/// # Safety
///
/// As [`brolga_object_borrow`].
unsafe fn borrowed(
    runtime: &BrolgaRuntime,
    kind: BrolgaKind,
    numbers: *mut c_void,
    length: usize,
    data: Data,
) -> Result<BrolgaObject, BrolgaError> {
    let ty = vector_type(runtime, kind)?;
    with_bits!(kind, T => {
        // SAFETY: by the contract.
        let column = unsafe { Column::from_raw(numbers.cast::<T>(), length, move || drop(data)) }?;
        made(runtime, |scope| Ok(scope.borrow(&ty, column)?))
    })
}

/// Copies numbers out of a vector, and returns its length.
///
/// # Safety
///
/// There is room for `capacity` numbers of the kind at `numbers`, or it is null.
unsafe fn copied_out(
    object: &BrolgaObject,
    kind: BrolgaKind,
    numbers: *mut c_void,
    capacity: usize,
) -> Result<usize, BrolgaError> {
    let ty = vector_type(&object.runtime, kind)?;
    // SAFETY: by the contract.
    with_bits!(kind, T => unsafe { copied_bits_out::<T>(object, &ty, numbers.cast(), capacity) })
}

/// As [`copied_out`], for a vector of this type.
///
/// # Safety
///
/// There is room for `capacity` numbers at `numbers`, or it is null.
unsafe fn copied_bits_out<T: Bits>(
    object: &BrolgaObject,
    ty: &TypeRef,
    numbers: *mut T,
    capacity: usize,
) -> Result<usize, BrolgaError> {
    // SAFETY: by the contract.
    let room = unsafe { room(numbers, capacity, "numbers") }?;
    object.look(|scope, root| {
        let vector = root.get(scope);
        if !scope.is_a(vector, ty) {
            let text = format!("a `{}` is not a `{}`", vector.desc().name(), ty.name());
            return Err(BrolgaError::new(BrolgaCode::Argument, text));
        }
        Ok(vector.copy_bits_to(room)?)
    })
}

/// Makes a `Vector` of `length` numbers, which are copied at once. `kind` is the `BrolgaKind` of the numbers: of integers, floats and `Bool`, whose numbers are 0 and 1.
///
/// # Safety
///
/// There are `length` numbers of the kind at `numbers`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_numbers(
    runtime: Option<&BrolgaRuntime>,
    kind: u32,
    numbers: *const c_void,
    length: usize,
    object: Option<&mut MaybeUninit<*mut BrolgaObject>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (runtime, place) = (given(runtime, "runtime")?, place(object, "object")?);
        // SAFETY: by the contract.
        give(place, unsafe { copied(runtime, BrolgaKind::of_number(kind)?, numbers, length) }?);
        Ok(())
    })
}

/// Copies the numbers of a `Vector` to `numbers` at once, as far as there is room for them, and returns its length. `kind` is as for `brolga_object_numbers`, and has
/// to match the vector. `numbers` may be null if `capacity` is 0.
///
/// # Safety
///
/// There is room for `capacity` numbers of the kind at `numbers`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_copy_numbers(
    object: Option<&BrolgaObject>,
    kind: u32,
    numbers: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (object, length) = (given(object, "object")?, place(length, "length")?);
        // SAFETY: by the contract.
        length.write(unsafe { copied_out(object, BrolgaKind::of_number(kind)?, numbers, capacity) }?);
        Ok(())
    })
}

/// Makes a `Vector` over `length` numbers of C, which are not copied: programs read and write them, and every access is checked against the length. They need no
/// doors for it, and their loops are as fast as over other vectors. `kind` is the kind of the numbers: an integer or a float.
///
/// The numbers belong to programs until `release` is called with `data`: once, on any thread, after the first collection that finds that nothing refers to the vector, or when the
/// run time is freed, or before this function returns an error. To have them back early, free the handles and call `brolga_runtime_collect`. A program may keep the vector in an object or a variable; then `release`
/// is not called. A program that makes the vector longer continues with a copy; one that removes elements at an end sets them to zero. The bytes do not count towards the limit of the heap. `release` may be null: then nothing tells when the numbers are free again.
///
/// # Safety
///
/// Until `release` is called there are `length` numbers at `numbers`, which may be written, or it is null and `length` is 0. C does not write them while a program may use them, and does not
/// read them while a program may write them: not while a function that has the vector runs. Vectors over the same numbers are safe, but a program may see changes by the other late. `release` returns, and calls
/// no function of this library.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_borrow(
    runtime: Option<&BrolgaRuntime>,
    kind: u32,
    numbers: *mut c_void,
    length: usize,
    release: BrolgaFreeFn,
    data: *mut c_void,
    object: Option<&mut MaybeUninit<*mut BrolgaObject>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        // On any failure from here on, `release` is called.
        let data = Data::new(data, release);
        let (runtime, place) = (given(runtime, "runtime")?, place(object, "object")?);
        // SAFETY: by the contract.
        give(place, unsafe { borrowed(runtime, BrolgaKind::of_number(kind)?, numbers, length, data) }?);
        Ok(())
    })
}

/// As `brolga_object_numbers`, for `Float64`.
///
/// # Safety
///
/// There are `length` numbers at `numbers`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_float64s(
    runtime: Option<&BrolgaRuntime>,
    numbers: *const f64,
    length: usize,
    object: Option<&mut MaybeUninit<*mut BrolgaObject>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    unsafe { brolga_object_numbers(runtime, BrolgaKind::Float64 as u32, numbers.cast(), length, object) }
}

/// As `brolga_object_numbers`, for `Int64`.
///
/// # Safety
///
/// There are `length` numbers at `numbers`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_int64s(
    runtime: Option<&BrolgaRuntime>,
    numbers: *const i64,
    length: usize,
    object: Option<&mut MaybeUninit<*mut BrolgaObject>>,
) -> Option<Box<BrolgaError>> {
    // SAFETY: by the contract.
    unsafe { brolga_object_numbers(runtime, BrolgaKind::Int64 as u32, numbers.cast(), length, object) }
}

/// As `brolga_object_copy_numbers`, for `Float64`.
///
/// # Safety
///
/// There is room for `capacity` numbers at `numbers`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_copy_float64s(
    object: Option<&BrolgaObject>,
    numbers: *mut f64,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<BrolgaError>> {
    let kind = BrolgaKind::Float64 as u32;
    // SAFETY: by the contract.
    unsafe { brolga_object_copy_numbers(object, kind, numbers.cast(), capacity, length) }
}

/// As `brolga_object_copy_numbers`, for `Int64`.
///
/// # Safety
///
/// There is room for `capacity` numbers at `numbers`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_copy_int64s(
    object: Option<&BrolgaObject>,
    numbers: *mut i64,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<BrolgaError>> {
    let kind = BrolgaKind::Int64 as u32;
    // SAFETY: by the contract.
    unsafe { brolga_object_copy_numbers(object, kind, numbers.cast(), capacity, length) }
}
