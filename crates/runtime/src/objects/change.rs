//! Reading a place, writing to it, and replacing a value that was seen there.
//!
//! For an `@atomic` field each operation is one atomic step: in compiled code if the types are known,
//! otherwise here.
//!
//! | content of an atomic field | operation |
//! |---|---|
//! | a reference | operations on its word |
//! | a number of at most 64 bits | likewise, as compiled code does it |
//! | anything else | under one lock of the runtime; compiled code calls this file |
//!
//! A thread that waits for the lock does not delay collections, so its holder may allocate. No function of
//! the program is called under it: a change that depends on one is retried if another thread has changed the
//! place in between.

use std::sync::TryLockError;
use std::thread;

use brolga_ir::types::FieldRepr;

use crate::heap::Root;
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::place::{At, Held, Place, store};
use super::relations::egal;
use super::throw::Raised;

/// How an atomic field is accessed.
enum Access {
    Reference,
    /// This many bytes.
    Scalar(usize),
    Locked,
}

impl Access {
    /// `None` for a non-atomic place.
    fn of(place: Place<'_>) -> Option<Access> {
        let width = || place.cx.types.primitive(place.ty).map(|(bits, _)| usize::from(bits).div_ceil(8));
        place.is_atomic.then(|| match (place.repr, width()) {
            (FieldRepr::Pointer, _) => Access::Reference,
            (FieldRepr::Inline, Some(size @ (1 | 2 | 4 | 8))) => Access::Scalar(size),
            _ => Access::Locked,
        })
    }
}

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// The current value, as an object; an exception if there is none. A root keeps the containing object
    /// alive.
    pub(crate) fn read(&mut self, place: Place<'_>) -> Done<'f, 'h> {
        self.scope.add_root(place.object);
        let found = match Access::of(place) {
            Some(Access::Scalar(size)) => {
                let bits = place.object.scalar_at(place.offset, size);
                Some(self.scope.box_bits(place.cx, place.ty, bits.into())?)
            }
            Some(Access::Locked) => self.locked(|ops| ops.scope.box_held(place.held()))?,
            Some(Access::Reference) | None => self.scope.box_held(place.held())?,
        };
        found.ok_or_else(|| self.scope.raise_kind(ExceptionKind::UndefRefError))
    }

    pub(crate) fn write(&mut self, op: &str, place: Place<'_>, value: Root<'f, 'h>) -> Result<(), Raised> {
        self.scope.add_root(place.object);
        self.check(op, place, value)?;
        match Access::of(place) {
            Some(Access::Scalar(size)) => {
                let bits = self.scalar(value);
                place.object.set_scalar_at(place.offset, size, bits);
                Ok(())
            }
            Some(Access::Locked) => self.locked(|ops| ops.put(op, place, value)),
            Some(Access::Reference) | None => self.put(op, place, value),
        }
    }

    fn put(&mut self, op: &str, place: Place<'_>, value: Root<'f, 'h>) -> Result<(), Raised> {
        match store(self.scope, place, self.object(value)) {
            true => Ok(()),
            false => Err(self.bad_operand(op, "a value of the place's type", value)),
        }
    }

    /// Replaces a value that was seen there, or an undefined one; `false` if the place has changed since.
    pub(crate) fn exchange(
        &mut self,
        op: &str,
        place: Place<'_>,
        seen: Option<Root<'f, 'h>>,
        value: Root<'f, 'h>,
    ) -> Result<bool, Raised> {
        self.scope.add_root(place.object);
        self.check(op, place, value)?;
        match (Access::of(place), seen) {
            (Some(Access::Reference), _) => {
                let seen = seen.map(|seen| self.object(seen));
                let done = place.object.exchange_pointer_at(place.offset, seen, self.object(value));
                self.scope.after_store(place.object);
                Ok(done)
            }
            // Numbers are never undefined.
            (Some(Access::Scalar(_)), None) => Ok(false),
            (Some(Access::Scalar(size)), Some(seen)) => {
                let (seen, bits) = (self.scalar(seen), self.scalar(value));
                Ok(place.object.exchange_scalar_at(place.offset, size, seen, bits))
            }
            (Some(Access::Locked), _) => self.locked(|ops| ops.put_if(op, place, seen, value)),
            (None, _) => self.put_if(op, place, seen, value),
        }
    }

    /// Replaces a value, or an undefined one, if it is the current one.
    fn put_if(
        &mut self,
        op: &str,
        place: Place<'_>,
        seen: Option<Root<'f, 'h>>,
        value: Root<'f, 'h>,
    ) -> Result<bool, Raised> {
        let now = match (place.held(), seen) {
            (Held::Undefined, _) | (_, None) => None,
            (held, Some(_)) => self.scope.box_held(held)?,
        };
        let same = match (now, seen) {
            (Some(now), Some(seen)) => egal(self.object(now), self.object(seen)),
            (None, None) => !place.is_assigned(),
            _ => false,
        };
        if same {
            self.put(op, place, value)?;
        }
        Ok(same)
    }

    /// The bits of a number of at most 64 bits.
    fn scalar(&self, value: Root<'f, 'h>) -> u64 {
        At::boxed(self.object(value)).and_then(At::bits).unwrap_or(0) as u64
    }

    /// Calls `body` under the lock.
    fn locked<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        let lock = self.runtime.atomics();
        let _held = loop {
            match lock.try_lock() {
                Ok(held) => break held,
                // A thread that panicked under it left every place either unchanged or changed.
                Err(TryLockError::Poisoned(held)) => break held.into_inner(),
                Err(TryLockError::WouldBlock) => self.scope.blocking(thread::yield_now),
            }
        };
        body(self)
    }
}
