//! Columns: numbers of the host that programs use as a vector, without a copy.
//!
//! ```text
//!   Vector │ data ──────────────┐ │ memory │ length │
//!                               │     │
//!                               │     ▼
//!   Memory │ length │ data ─────┤                          an object of two words: it has no elements of its own
//!                               ▼
//!   memory of the host          e e e e e e e e e         released when no program can reach the `Memory`
//! ```
//!
//! For programs it is an ordinary vector: every access is checked against its length, so a program needs no door, and loops
//! are compiled as over other vectors. Programs read and write the numbers of the host themselves.
//!
//! | a program | the numbers of the host |
//! |---|---|
//! | stores an element, sorts, fills | change |
//! | makes the vector longer | stay: there is no room after them, so the vector continues in memory of the heap, with a copy |
//! | removes elements at an end | those become zero, as in every vector |
//! | copies the vector, or a part of it | stay; the copy is in the heap |
//!
//! **Lifetime.** The numbers belong to programs from [`Column::new`] on, until the release is called: once, after a collection has
//! found that nothing refers to the `Memory`, or when the heap is dropped. The vector may be kept by any object, by any variable and
//! by frames of other threads, and code may hold addresses of elements in registers, so only a collection finds the last use.
//! Therefore there is no function that takes the numbers back at once: to end a column early, drop its handles and [collect](Scope::collect).
//! The release has been called then, unless something still refers to the vector.
//!
//! **Not done.** Columns that may only be read: a store would have to look at the vector first, in every loop of every program. Memory that
//! must not change is copied, or mapped privately (`MAP_PRIVATE`), so that a store changes a page of the process alone.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::array::check_size;
use super::desc::ObjectKind;
use super::finalize::Finalizer;
use super::layout::{LENGTH, MEMORY_DATA, MEMORY_ELEMENTS};
use super::scope::{Bits, ObjectError, Root, Scope, check_bits, wrong_kind};

/// Returns the numbers to the host.
type Release = Box<dyn FnOnce() + Send>;

/// Numbers of the host for programs, as a vector ([`Scope::borrow`]). One that is dropped without use is released.
///
/// A program stores into the numbers themselves. A vector that it makes longer continues as a copy in the heap, and elements that it removes at an end become zero.
/// Numbers that must not change are copied instead ([`Scope::vector_of`]), or are mapped privately.
///
/// ```
/// use brolga_runtime::heap::Column;
/// use brolga_runtime::{Runtime, RuntimeOptions};
/// # use brolga_ir::{Context, Type};
/// let runtime = Runtime::new(RuntimeOptions::default());
/// # let cx = Context::new();
/// # let ty = runtime.heap().type_object(&cx, cx.types.vector(Type::FLOAT64).unwrap()).unwrap();
/// let (give_back, given_back) = std::sync::mpsc::channel();
/// let prices = Column::new(vec![9.5, 20.0, 3.25], move |prices: Vec<f64>| {
///     let _ = give_back.send(prices);
/// });
/// runtime.enter(|scope| {
///     let vector = scope.borrow(&ty, prices)?;
///     vector.get(scope).set_element_bits(0, 1.5)
/// })??;
/// runtime.enter(|scope| scope.collect())?;
/// assert_eq!(given_back.recv()?, [1.5, 20.0, 3.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Column<T> {
    first: NonNull<T>,
    length: usize,
    release: ManuallyDrop<Release>,
}

// SAFETY: the numbers belong to the column, and the release may be called on any thread.
unsafe impl<T: Bits> Send for Column<T> {}

impl<T> std::fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Column of {} numbers", self.length)
    }
}

impl<T> Drop for Column<T> {
    fn drop(&mut self) {
        // SAFETY: `Scope::borrow`, which takes the release, does not drop the column.
        let release = unsafe { ManuallyDrop::take(&mut self.release) };
        release();
    }
}

impl<T: Bits> Column<T> {
    /// The numbers of an owner, such as a `Vec` or a mapped file, which stays as it is until `release` gets it back. That may be on any thread that runs a
    /// collection, and in its middle: `release` must not use the runtime. A panic of it is counted
    /// ([`HeapStats::finalizers_failed`](super::HeapStats::finalizers_failed)).
    pub fn new<O: AsMut<[T]> + Send + 'static>(
        owner: O,
        release: impl FnOnce(O) + Send + 'static,
    ) -> Column<T> {
        struct Owner<O>(*mut O);
        // SAFETY: the owner is `Send`, and this is its only pointer.
        unsafe impl<O: Send> Send for Owner<O> {}
        let owner = Owner(Box::into_raw(Box::new(owner)));
        // SAFETY: the box lives until the release, and nothing but this pointer leads to it.
        let numbers = unsafe { (*owner.0).as_mut() };
        let (first, length) = (numbers.as_mut_ptr(), numbers.len());
        let release = move || {
            let owner = owner;
            // SAFETY: it came from `Box::into_raw`, and the release is called once.
            release(*unsafe { Box::from_raw(owner.0) });
        };
        Column { first: NonNull::from(numbers).cast(), length, release: ManuallyDrop::new(Box::new(release)) }
            .exposed(first)
    }

    /// The numbers at an address.
    ///
    /// # Errors
    /// The address is null and the length is not 0, it is not aligned, or that many numbers exceed the address space. `release` has been called then.
    ///
    /// # Safety
    ///
    /// Until `release` is called there are `length` numbers at the address, which may be written, and no other code writes them or, while programs that may write
    /// them run, reads them. Columns may share numbers, but the order of accesses to these is not specified.
    /// `release` may be called on any thread, and does not use the runtime.
    pub unsafe fn from_raw(
        first: *mut T,
        length: usize,
        release: impl FnOnce() + Send + 'static,
    ) -> Result<Column<T>, ObjectError> {
        let column = Column {
            first: NonNull::new(first).unwrap_or(NonNull::dangling()),
            length,
            release: ManuallyDrop::new(Box::new(release)),
        };
        let fits = length <= isize::MAX as usize / T::SIZE && first.is_aligned();
        if !fits || (first.is_null() && length > 0) {
            return Err(ObjectError::NoColumn { length, size: T::SIZE });
        }
        Ok(column.exposed(first))
    }

    /// The column, whose numbers are reached by their addresses from now on.
    fn exposed(self, first: *mut T) -> Column<T> {
        let _ = first.expose_provenance();
        self
    }
}

impl<'f, 'h> Scope<'f, 'h> {
    /// A vector over numbers of the host. They are released when a collection has found that nothing refers to them, or when the heap is dropped: to have them
    /// back early, drop what refers to the vector and [collect](Scope::collect). The bytes count towards the next collection, but not towards the heap's limit.
    ///
    /// # Errors
    /// Out of memory, or the type is not a vector of these numbers: all bits of an element have to be values, so `Bool` is none. The column
    /// was released then.
    pub fn borrow<T: Bits>(
        &mut self,
        ty: &super::TypeRef,
        column: Column<T>,
    ) -> Result<Root<'f, 'h>, ObjectError> {
        let ObjectKind::Array { dims: 1, memory: memory_ty } = ty.kind() else {
            return Err(wrong_kind(ty, "ends"));
        };
        let ObjectKind::Memory(element) = memory_ty.kind() else { return Err(wrong_kind(ty, "elements")) };
        let is_number = memory_ty.context().types.primitive(element.ty).is_some();
        if !is_number {
            return Err(ObjectError::NotBits { what: "the element", size: T::SIZE });
        }
        check_size(element, T::SIZE)?;
        check_bits(memory_ty, element.ty, &[0xff; 16][..T::SIZE])?;
        self.check_owner(ty)?;
        let memory = self.allocate(memory_ty, MEMORY_ELEMENTS)?;
        let object = memory.get(self).object;
        let first = match column.length {
            0 => object.address() + MEMORY_ELEMENTS,
            _ => column.first.addr().get(),
        };
        object.set_word_at(LENGTH, column.length as u64);
        object.set_word_at(MEMORY_DATA, first as u64);
        let vector = self.array_over(ty, &[column.length], memory)?;
        let mut column = ManuallyDrop::new(column);
        // SAFETY: the column is not dropped, so it is taken once.
        let release = unsafe { ManuallyDrop::take(&mut column.release) };
        self.finalizer(memory.get(self), Finalizer::release(release));
        // The frame keeps the vector only, which may get another `Memory`.
        self.set_root(memory, vector.get(self));
        self.heap.backend.count_borrowed(column.length * T::SIZE);
        Ok(vector)
    }
}
