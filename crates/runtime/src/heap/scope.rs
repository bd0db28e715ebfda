//! Access to heap objects from safe Rust.
//!
//! ```text
//!   runtime.enter(|scope| { … })        the thread may access the heap; collections wait for its safepoints
//!      scope.frame(|scope| { … })       roots made inside are dropped at its end
//!
//!   Root<'f, 'h>    a rooted reference: valid until its frame ends, across collections
//!   Obj<'a, 'h>     a bare reference: borrowed from the scope, so that it ends before the next safepoint
//! ```
//!
//! Every method that may collect takes `&mut Scope`, and an [`Obj`] borrows the scope, so an unrooted reference cannot be
//! used after a safepoint: it does not compile. `'h` is the *brand* of one entry into one heap. It is unique, so references
//! to different heaps cannot be mixed.
//!
//! An unrooted reference cannot be used after an allocation:
//!
//! ```compile_fail,E0502
//! # use brolga_runtime::{Runtime, RuntimeOptions};
//! # let runtime = Runtime::new(RuntimeOptions::default());
//! runtime.enter(|scope| {
//!     let a = scope.string(b"a").unwrap();
//!     let bare = a.get(scope);
//!     let b = scope.string(b"b").unwrap();
//!     println!("{:?}", bare.text());
//! });
//! ```
//!
//! A root cannot leave its frame, and no reference can leave its scope:
//!
//! ```compile_fail
//! # use brolga_runtime::{Runtime, RuntimeOptions};
//! # let runtime = Runtime::new(RuntimeOptions::default());
//! runtime.enter(|scope| {
//!     let escaped = scope.frame(|scope| scope.string(b"a").unwrap());
//! });
//! ```
//!
//! ```compile_fail
//! # use brolga_runtime::{Runtime, RuntimeOptions};
//! # let runtime = Runtime::new(RuntimeOptions::default());
//! let escaped = runtime.enter(|scope| scope.string(b"a").unwrap());
//! ```
//!
//! References to two heaps cannot be mixed:
//!
//! ```compile_fail
//! # use brolga_runtime::{Runtime, RuntimeOptions};
//! # let one = Runtime::new(RuntimeOptions::default());
//! # let two = Runtime::new(RuntimeOptions::default());
//! one.enter(|one| {
//!     let text = one.string(b"a").unwrap();
//!     two.enter(|two| text.get(two).text().map(str::len));
//! });
//! ```
//!
//! Roots survive collections:
//!
//! ```
//! # use brolga_runtime::{Runtime, RuntimeOptions};
//! # let runtime = Runtime::new(RuntimeOptions::default());
//! runtime.enter(|scope| {
//!     let a = scope.string(b"a").unwrap();
//!     let b = scope.string(b"b").unwrap();
//!     scope.collect();
//!     assert_eq!((a.get(scope).text(), b.get(scope).text()), (Some("a"), Some("b")));
//! }).unwrap();
//! ```

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use brolga_ir::types::{Field, FieldRepr, Type};

use super::desc::{ObjectKind, TypeDesc, TypeRef};
use super::handles::{Persistent, RootCell, WeakHandle};
use super::heap::{Heap, OutOfMemory};
use super::layout::{LENGTH, STRING_BYTES};
use super::mutator::{Mutator, Paused};
use super::object::Object;
use super::policy::Collection;

/// Invariant in `'h`, and neither `Send` nor `Sync`.
type Brand<'h> = PhantomData<*mut &'h ()>;

/// The right of the current thread to access one heap.
pub struct Scope<'f, 'h> {
    pub(super) heap: &'h Heap,
    pub(super) mutator: &'h Mutator,
    frame: PhantomData<std::cell::Cell<&'f ()>>,
}

/// A reference that keeps its object alive until its frame ends.
#[derive(Clone, Copy, Debug)]
pub struct Root<'f, 'h> {
    slot: usize,
    frame: PhantomData<&'f ()>,
    brand: Brand<'h>,
}

/// A reference that is valid until the next safepoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Obj<'a, 'h> {
    pub(crate) object: Object,
    borrow: PhantomData<&'a ()>,
    brand: Brand<'h>,
}

/// Why an object could not be created, read or written. The caller's fault, except for [`OutOfMemory`].
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum ObjectError {
    /// Out of memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The type belongs to another heap.
    #[error("the type `{name}` was described by another heap")]
    OtherHeap {
        /// The type.
        name: String,
    },
    /// Objects of this kind do not support the operation.
    #[error("a `{name}` has no {what}")]
    WrongKind {
        /// The object's type.
        name: String,
        /// The expected kind.
        what: &'static str,
    },
    /// There is no such field or element.
    #[error("index {index} is outside of {length}")]
    Index {
        /// The index, from 0.
        index: usize,
        /// The number of fields or elements.
        length: usize,
    },
    /// A value does not have the type of its place.
    #[error("a `{got}` is not a value of type `{expected}`")]
    WrongType {
        /// The type of the place.
        expected: String,
        /// The type of the value.
        got: String,
    },
    /// The bits are not a valid value of the type of their place: a `Bool` is 0 or 1, and a selector names a member of
    /// its union.
    #[error("these bits are not a value of type `{expected}`")]
    NoValue {
        /// The type of the place.
        expected: String,
    },
    /// An address at which there are no numbers of the host.
    #[error("there are no {length} aligned numbers of {size} bytes at this address")]
    NoColumn {
        /// How many there should be.
        length: usize,
        /// The size of one.
        size: usize,
    },
    /// The field does not have the size of the Rust type, or contains references.
    #[error("{what} does not hold {size} bytes of bits")]
    NotBits {
        /// The place.
        what: &'static str,
        /// The size of the Rust type.
        size: usize,
    },
}

/// Refuses bits that are not a valid value of `ty`, a type in the context of the description `by`.
pub(super) fn check_bits(by: &TypeDesc, ty: Type, bytes: &[u8]) -> Result<(), ObjectError> {
    let types = &by.context().types;
    match types.holds(ty, bytes) {
        true => Ok(()),
        false => Err(ObjectError::NoValue { expected: types.display(ty).to_string() }),
    }
}

/// A number that can be stored in a field without references.
pub trait Bits: Copy + private::Sealed {
    /// The number of bytes.
    const SIZE: usize = size_of::<Self>();
    /// From bytes in native order.
    fn from_bytes(bytes: &[u8]) -> Self;
    /// The bytes in native order, followed by zeros.
    fn to_bytes(self) -> [u8; 16];
}

mod private {
    pub trait Sealed {}
}

macro_rules! bits {
    ($($ty:ty)*) => {
        $(impl private::Sealed for $ty {}
        impl Bits for $ty {
            fn from_bytes(bytes: &[u8]) -> $ty {
                let mut own = [0; size_of::<$ty>()];
                own.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                <$ty>::from_ne_bytes(own)
            }
            fn to_bytes(self) -> [u8; 16] {
                let mut all = [0; 16];
                all[..size_of::<$ty>()].copy_from_slice(&self.to_ne_bytes());
                all
            }
        })*
    };
}

bits!(i8 u8 i16 u16 i32 u32 i64 u64 i128 u128 f32 f64);

impl<'f, 'h> Root<'f, 'h> {
    /// The referent.
    pub fn get<'a>(self, scope: &'a Scope<'_, 'h>) -> Obj<'a, 'h> {
        // `'f` keeps the frame open, so the slot exists and is filled; the default is unreachable.
        let object = scope.mutator.locals.borrow().get(self.slot).copied().flatten();
        scope.obj(object.unwrap_or_else(|| scope.heap.types().nothing()))
    }
}

impl<'f, 'h> Scope<'f, 'h> {
    fn new(heap: &'h Heap, mutator: &'h Mutator) -> Scope<'f, 'h> {
        Scope { heap, mutator, frame: PhantomData }
    }

    /// The heap.
    pub fn heap(&self) -> &'h Heap {
        self.heap
    }

    pub(crate) fn obj<'a>(&'a self, object: Object) -> Obj<'a, 'h> {
        Obj { object, borrow: PhantomData, brand: PhantomData }
    }

    pub(crate) fn add_root(&self, object: Object) -> Root<'f, 'h> {
        let mut locals = self.mutator.locals.borrow_mut();
        locals.push(Some(object));
        Root { slot: locals.len() - 1, frame: PhantomData, brand: PhantomData }
    }

    pub(crate) fn mutator(&self) -> &'h Mutator {
        self.mutator
    }

    // ----- roots -----

    /// Keeps an object alive until the frame ends.
    pub fn root(&self, obj: Obj<'_, 'h>) -> Root<'f, 'h> {
        self.add_root(obj.object)
    }

    /// Makes a root refer to another object.
    pub fn set_root(&self, root: Root<'_, 'h>, obj: Obj<'_, 'h>) {
        if let Some(slot) = self.mutator.locals.borrow_mut().get_mut(root.slot) {
            *slot = Some(obj.object);
        }
    }

    /// Calls `body` with a new frame, whose roots are dropped when it returns.
    pub fn frame<R>(&mut self, body: impl for<'g> FnOnce(&mut Scope<'g, 'h>) -> R) -> R {
        with_frame(self.heap, self.mutator, body)
    }

    /// Keeps an object alive beyond the scope, until the handle is dropped.
    pub fn persistent(&self, obj: Obj<'_, 'h>) -> Persistent {
        self.heap.handles.persistent(obj.object)
    }

    /// The object of a handle; `None` if it belongs to another heap.
    pub fn get_persistent<'a>(&'a self, handle: &Persistent) -> Option<Obj<'a, 'h>> {
        self.heap.handles.get_persistent(handle).map(|object| self.obj(object))
    }

    /// The referent of a cell, in this thread if the cell is a thread-local variable's; `None` if it is empty
    /// or belongs to another heap.
    pub fn get_cell<'a>(&'a self, cell: &RootCell) -> Option<Obj<'a, 'h>> {
        self.heap.handles.get_cell(&self.mutator.cells, cell).map(|object| self.obj(object))
    }

    /// Makes a cell refer to another object or empties it, in this thread if it is a thread-local variable's;
    /// false if it belongs to another heap.
    pub fn set_cell(&self, cell: &RootCell, obj: Option<Obj<'_, 'h>>) -> bool {
        self.heap.handles.set_cell(&self.mutator.cells, cell, obj.map(|obj| obj.object))
    }

    /// As [`Scope::set_cell`], for all threads: those that have a value of a thread-local variable begin
    /// again with this one, as later ones do.
    pub fn begin_cell(&self, cell: &RootCell, obj: Option<Obj<'_, 'h>>) -> bool {
        self.heap.handles.begin_cell(cell, obj.map(|obj| obj.object))
    }

    /// A handle that does not keep the object alive.
    pub fn weak_handle(&self, obj: Obj<'_, 'h>) -> WeakHandle {
        self.heap.handles.weak(obj.object)
    }

    /// The object of a weak handle; `None` if it has died or belongs to another heap.
    pub fn get_weak<'a>(&'a self, handle: &WeakHandle) -> Option<Obj<'a, 'h>> {
        self.heap.handles.get_weak(handle).map(|object| self.obj(object))
    }

    /// Roots an object that compiled code returned, by its address.
    ///
    /// # Safety
    ///
    /// It is an object of this heap that compiled code returned to this thread since its last safepoint.
    pub unsafe fn adopt(&self, address: NonNull<u8>) -> Root<'f, 'h> {
        // SAFETY: by the contract.
        self.add_root(unsafe { Object::from_pointer(address) })
    }

    // ----- safepoints -----

    /// Runs a full collection.
    pub fn collect(&mut self) {
        self.collect_kind(Collection::Full);
    }

    /// Runs a collection of this kind; on a heap without generations every collection is full.
    pub fn collect_kind(&mut self, kind: Collection) {
        while !self.heap.collect(self.mutator, kind) {}
    }

    /// Lets another thread collect if one is waiting. For long computations that allocate nothing.
    pub fn safepoint(&mut self) {
        self.heap.safepoint(self.mutator);
    }

    /// Calls `body`, which may take long and must not access the heap. During it neither collections nor the
    /// freeing of retired code wait for this thread, except for code that has a frame on its stack.
    pub fn blocking<R>(&mut self, body: impl FnOnce() -> R) -> R {
        struct Back<'a>(&'a Heap, &'a Mutator, Paused);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.resume(self.1, self.2);
                self.1.in_scope.set(true);
            }
        }
        self.mutator.in_scope.set(false);
        let _stay = self.mutator.stay();
        let back = Back(self.heap, self.mutator, self.heap.pause(self.mutator));
        let result = body();
        drop(back);
        result
    }

    /// Calls `body`, which runs compiled code. That code may enter further scopes on this thread.
    pub fn call_out<R>(&mut self, body: impl FnOnce() -> R) -> R {
        struct Back<'a>(&'a Mutator);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.in_scope.set(true);
            }
        }
        let _back = Back(self.mutator);
        self.mutator.in_scope.set(false);
        body()
    }

    // ----- making objects -----

    /// An object of a struct type, with all bits zero and all pointers null. Refused for immutable types that
    /// contain a `MemoryRef`, whose readers dereference it without a check.
    pub fn object(&mut self, ty: &TypeRef) -> Result<Root<'f, 'h>, ObjectError> {
        if !ty.is_mutable() && ty.ty().is_some_and(|of| ty.context().types.always_refers_to_memory(of)) {
            return Err(wrong_kind(ty, "value without a value of the `MemoryRef` in it"));
        }
        self.zeroed_object(ty)
    }

    /// Like [`Scope::object`], for any struct type: the caller must fill the object before it can be read.
    pub(crate) fn zeroed_object(&mut self, ty: &TypeRef) -> Result<Root<'f, 'h>, ObjectError> {
        self.check_owner(ty)?;
        let ObjectKind::Struct(layout) = ty.kind() else { return Err(wrong_kind(ty, "fields")) };
        let object = self.heap.allocate(self.mutator, ty, layout.size as usize)?;
        Ok(self.add_root(object))
    }

    /// An object of a struct type without references, from its bytes.
    pub(crate) fn struct_of_bytes(
        &mut self,
        ty: &TypeRef,
        bytes: &[u8],
    ) -> Result<Root<'f, 'h>, ObjectError> {
        let fits = matches!(ty.kind(), ObjectKind::Struct(layout)
            if layout.pointers.is_empty() && layout.size as usize == bytes.len());
        if !fits {
            return Err(ObjectError::NotBits { what: "the type", size: bytes.len() });
        }
        check_bits(ty, ty.ty().unwrap_or(Type::ANY), bytes)?;
        let root = self.zeroed_object(ty)?;
        root.get(self).object.write_bits(0, bytes);
        Ok(root)
    }

    /// A boxed value of a primitive type.
    pub fn boxed<T: Bits>(&mut self, ty: &TypeRef, value: T) -> Result<Root<'f, 'h>, ObjectError> {
        let fits = matches!(ty.kind(), ObjectKind::Struct(layout)
            if layout.fields.is_empty() && layout.size as usize == T::SIZE);
        if !fits {
            return Err(ObjectError::NotBits { what: "the type", size: T::SIZE });
        }
        let bytes = value.to_bytes();
        check_bits(ty, ty.ty().unwrap_or(Type::ANY), &bytes[..T::SIZE])?;
        let root = self.zeroed_object(ty)?;
        root.get(self).object.write_bits(0, &bytes[..T::SIZE]);
        Ok(root)
    }

    /// A boxed `Int64`. Small integers share preallocated boxes.
    pub fn int(&mut self, value: i64) -> Result<Root<'f, 'h>, ObjectError> {
        match self.heap.types().small_int(value) {
            Some(object) => Ok(self.add_root(object)),
            None => self.boxed(self.heap.types().int64(), value),
        }
    }

    /// A `String`.
    pub fn string(&mut self, content: &[u8]) -> Result<Root<'f, 'h>, ObjectError> {
        let ty = self.heap.types().string();
        let bytes = ty.size_with_length(|| content.len() as u64);
        let object = self.heap.allocate(self.mutator, ty, bytes)?;
        object.set_word_at(LENGTH, content.len() as u64);
        // SAFETY: the object has room for length, content and a zero byte, and no other code can reach it
        // yet.
        unsafe { object.fill_new(STRING_BYTES, content) };
        Ok(self.add_root(object))
    }

    /// A `String` of `length` zero bytes.
    pub(crate) fn zeroed_string(&mut self, length: usize) -> Result<Root<'f, 'h>, ObjectError> {
        let ty = self.heap.types().string();
        let bytes = ty.size_with_length(|| length as u64);
        if bytes > isize::MAX as usize {
            return Err(OutOfMemory { requested: bytes }.into());
        }
        let object = self.heap.allocate(self.mutator, ty, bytes)?;
        object.set_word_at(LENGTH, length as u64);
        Ok(self.add_root(object))
    }

    /// A `WeakRef`: an object that refers to another without keeping it alive.
    pub fn weak_ref(&mut self, to: Root<'_, 'h>) -> Result<Root<'f, 'h>, ObjectError> {
        let object = self.heap.new_weak_ref(self.mutator, to.get(self).object)?;
        Ok(self.add_root(object))
    }

    /// Counts bytes that an object owns outside the heap towards the next collection. Pair it with a
    /// [`Finalizer::Release`](super::Finalizer::Release) that frees them and calls [`Heap::release_external`].
    pub fn add_external(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        self.heap.add_external(self.mutator, bytes)
    }

    pub(super) fn check_owner(&self, ty: &TypeRef) -> Result<(), ObjectError> {
        if Arc::ptr_eq(ty.owner(), self.heap.types().owner()) {
            return Ok(());
        }
        Err(ObjectError::OtherHeap { name: ty.name().into() })
    }

    pub(super) fn allocate(&mut self, ty: &TypeRef, bytes: usize) -> Result<Root<'f, 'h>, ObjectError> {
        self.check_owner(ty)?;
        let object = self.heap.allocate(self.mutator, ty, bytes)?;
        Ok(self.add_root(object))
    }

    // ----- writing -----

    /// Stores a reference, with the write barrier.
    pub(super) fn store(&self, object: Object, offset: usize, value: Option<Object>) {
        object.set_pointer_at(offset, value);
        self.heap.after_store_at(self.mutator, object, offset);
    }

    /// The write barrier, after references were stored into an object.
    pub(crate) fn after_store(&self, object: Object) {
        self.heap.after_store(self.mutator, object);
    }
}

pub(super) fn wrong_kind(desc: &TypeDesc, what: &'static str) -> ObjectError {
    ObjectError::WrongKind { name: desc.name().into(), what }
}

impl<'a, 'h> Obj<'a, 'h> {
    /// The object's type.
    pub fn desc(self) -> &'a TypeDesc {
        self.object.desc()
    }

    /// The object's type in the IR; `None` for weak references.
    pub fn ty(self) -> Option<Type> {
        self.desc().ty()
    }

    /// The address, valid until the next safepoint: moving heaps change it.
    pub fn address(self) -> usize {
        self.object.address()
    }

    /// A reference to another object, valid as long as this one.
    pub(super) fn with(self, object: Object) -> Obj<'a, 'h> {
        Obj { object, ..self }
    }

    fn find_field(self, index: usize) -> Result<Field, ObjectError> {
        let ObjectKind::Struct(layout) = self.desc().kind() else {
            return Err(wrong_kind(self.desc(), "fields"));
        };
        let length = layout.fields.len();
        layout.fields.get(index).copied().ok_or(ObjectError::Index { index, length })
    }

    /// The referent of a pointer field; `None` if it is undefined.
    pub fn field(self, index: usize) -> Result<Option<Obj<'a, 'h>>, ObjectError> {
        let field = self.find_field(index)?;
        if field.repr != FieldRepr::Pointer {
            return Err(wrong_kind(self.desc(), "reference in this field"));
        }
        Ok(self.object.pointer_at(field.offset as usize).map(|object| self.with(object)))
    }

    /// The bits of a field without pointers.
    pub fn bits<T: Bits>(self, index: usize) -> Result<T, ObjectError> {
        let field = self.find_bits(index, T::SIZE)?;
        let mut bytes = [0; 16];
        self.object.read_bits(field.offset as usize, &mut bytes[..T::SIZE]);
        Ok(T::from_bytes(&bytes))
    }

    /// Stores into a field without pointers of a mutable struct; the field must not be `const`.
    pub fn set_bits<T: Bits>(self, index: usize, value: T) -> Result<(), ObjectError> {
        let desc = self.desc();
        let decl = desc.ty().and_then(|ty| desc.context().types.fields(ty)?.get(index));
        if !desc.is_mutable() || decl.is_some_and(|decl| decl.is_const) {
            self.find_bits(index, T::SIZE)?;
            return Err(wrong_kind(desc, "field at this index that may change"));
        }
        self.init_bits(index, value)
    }

    /// Initialises a field without pointers, which may be immutable, of an object that no other code has seen yet.
    pub fn init_bits<T: Bits>(self, index: usize, value: T) -> Result<(), ObjectError> {
        let field = self.find_bits(index, T::SIZE)?;
        let bytes = value.to_bytes();
        check_bits(self.desc(), field.ty, &bytes[..T::SIZE])?;
        self.object.write_bits(field.offset as usize, &bytes[..T::SIZE]);
        Ok(())
    }

    fn find_bits(self, index: usize, size: usize) -> Result<Field, ObjectError> {
        let field = self.find_field(index)?;
        let ObjectKind::Struct(layout) = self.desc().kind() else { return Ok(field) };
        let bytes = field.offset..field.offset + field.size;
        let has_pointer = layout.pointers.iter().any(|at| bytes.contains(at));
        if field.repr != FieldRepr::Inline || has_pointer || field.size as usize != size {
            return Err(ObjectError::NotBits { what: "the field", size });
        }
        Ok(field)
    }

    /// The value of a boxed primitive.
    pub fn unboxed<T: Bits>(self) -> Result<T, ObjectError> {
        let fits = matches!(self.desc().kind(), ObjectKind::Struct(layout)
            if layout.fields.is_empty() && layout.size as usize == T::SIZE);
        if !fits {
            return Err(ObjectError::NotBits { what: "the box", size: T::SIZE });
        }
        let mut bytes = [0; 16];
        self.object.read_bits(0, &mut bytes[..T::SIZE]);
        Ok(T::from_bytes(&bytes))
    }

    /// The bytes of a `String` or `Symbol`.
    pub fn string_bytes(self) -> Option<&'a [u8]> {
        self.object.string()
    }

    /// The text of a `String` or `Symbol` that is UTF-8.
    pub fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.string_bytes()?).ok()
    }

    /// The referent of a `WeakRef`; `None` after it has died, and for objects of other types.
    pub fn referent(self) -> Option<Obj<'a, 'h>> {
        let weak = matches!(self.desc().kind(), ObjectKind::Weak);
        weak.then(|| self.object.pointer_at(0)).flatten().map(|object| self.with(object))
    }
}

/// Calls `body` with a frame whose roots are dropped at its end, even if it panics.
pub(super) fn with_frame<'h, R>(
    heap: &'h Heap,
    mutator: &'h Mutator,
    body: impl for<'g> FnOnce(&mut Scope<'g, 'h>) -> R,
) -> R {
    struct Pop<'a>(&'a Mutator, usize);
    impl Drop for Pop<'_> {
        fn drop(&mut self) {
            self.0.locals.borrow_mut().truncate(self.1);
        }
    }
    let _pop = Pop(mutator, mutator.locals.borrow().len());
    body(&mut Scope::new(heap, mutator))
}

/// Calls `body` with a scope on a running mutator; `None` if it is already in a scope.
pub(crate) fn with_scope<R>(
    heap: &Heap,
    mutator: &Mutator,
    body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>) -> R,
) -> Option<R> {
    struct Leave<'a>(&'a Mutator);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.in_scope.set(false);
        }
    }
    if mutator.in_scope.replace(true) {
        return None;
    }
    let _leave = Leave(mutator);
    Some(with_frame(heap, mutator, |scope| body(scope)))
}
