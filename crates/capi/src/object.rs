//! Heap objects as C handles, and strings. `numbers.rs` has vectors of numbers, `field.rs` structs.
//!
//! A handle is a GC root, so an object lives at least as long as its handles. C never sees its address: contents are copied.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use brolga::heap::{Persistent, Root, Scope};

use crate::error::for_c;
use crate::error::{BrolgaCode, BrolgaError, fenced, in_full};
use crate::out::{give, given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::{array, fill};

/// A handle to an object, which keeps it.
pub struct BrolgaObject {
    pub(crate) runtime: BrolgaRuntime,
    kept: Persistent,
}

impl BrolgaObject {
    pub(crate) fn new(runtime: &BrolgaRuntime, kept: Persistent) -> BrolgaObject {
        BrolgaObject { runtime: runtime.clone(), kept }
    }

    /// The object in a scope of its run time.
    pub(crate) fn root<'f, 'h>(&self, scope: &Scope<'f, 'h>) -> Result<Root<'f, 'h>, BrolgaError> {
        let object = scope.get_persistent(&self.kept);
        let foreign = || BrolgaError::new(BrolgaCode::Argument, "the object belongs to another run time");
        Ok(scope.root(object.ok_or_else(foreign)?))
    }

    /// Reads the object.
    pub(crate) fn look<R>(
        &self,
        body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>, Root<'f, 'h>) -> Result<R, BrolgaError>,
    ) -> Result<R, BrolgaError> {
        enter(&self.runtime, |scope| {
            let root = self.root(scope)?;
            body(scope, root)
        })
    }
}

/// Runs `body` in a scope in which objects can be used.
pub(crate) fn enter<R>(
    runtime: &BrolgaRuntime,
    body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>) -> Result<R, BrolgaError>,
) -> Result<R, BrolgaError> {
    let entered = runtime.runtime.enter(body);
    entered.unwrap_or_else(|error| Err(BrolgaError::new(BrolgaCode::Machine, in_full(&error))))
}

/// Makes a `String` of `length` bytes.
///
/// # Safety
///
/// There are `length` bytes at `bytes`, or it is null; `runtime` and `object` are as for all functions of this library.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_string(
    runtime: Option<&BrolgaRuntime>,
    bytes: *const c_char,
    length: usize,
    object: Option<&mut MaybeUninit<*mut BrolgaObject>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (runtime, place) = (given(runtime, "runtime")?, place(object, "object")?);
        // SAFETY: by the contract.
        let bytes = unsafe { array(bytes.cast::<u8>(), length, "bytes") }?;
        let kept = enter(runtime, |scope| {
            let string = scope.string(bytes)?;
            Ok(scope.persistent(string.get(scope)))
        })?;
        give(place, BrolgaObject::new(runtime, kept));
        Ok(())
    })
}

/// Copies the bytes of a `String` or `Symbol` to `bytes` as far as there is room for them, and returns their number. No zero byte is added.
/// `bytes` may be null if `capacity` is 0.
///
/// # Safety
///
/// There is room for `capacity` bytes at `bytes`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_object_copy_string(
    object: Option<&BrolgaObject>,
    bytes: *mut c_char,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (object, length) = (given(object, "object")?, place(length, "length")?);
        length.write(object.look(|scope, root| {
            let object = root.get(scope);
            let no_string = || {
                let text = format!("a `{}` is not a string", object.desc().name());
                BrolgaError::new(BrolgaCode::Argument, text)
            };
            let found = object.string_bytes().ok_or_else(no_string)?;
            // SAFETY: by the contract.
            unsafe { fill(bytes.cast::<u8>(), capacity, found, "bytes") }?;
            Ok(found.len())
        })?);
        Ok(())
    })
}

/// Returns the name of the object's type. The caller frees the text with `brolga_text_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_object_type(
    object: Option<&BrolgaObject>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (object, text) = (given(object, "object")?, place(text, "text")?);
        let name = object.look(|scope, root| Ok(root.get(scope).desc().name().to_owned()))?;
        text.write(for_c(&name).into_raw());
        Ok(())
    })
}

/// Returns another handle to the same object: for a host function that returns one of its arguments, which are lent.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_object_clone(
    object: Option<&BrolgaObject>,
    clone: Option<&mut MaybeUninit<*mut BrolgaObject>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (object, place) = (given(object, "object")?, place(clone, "clone")?);
        let kept = object.look(|scope, root| Ok(scope.persistent(root.get(scope))))?;
        give(place, BrolgaObject::new(&object.runtime, kept));
        Ok(())
    })
}

/// Frees a handle; a later collection frees the object, if nothing else keeps it. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_object_free(object: Option<Box<BrolgaObject>>) {
    drop(object);
}
