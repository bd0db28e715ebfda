//! `isa` and `===`.
//!
//! **isa.** An object has type `T` if its own type is a subtype of `T`; a type also has type `Type{itself}`.
//! A small per-thread cache keeps results by the two addresses, and is cleared when types were freed.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | I1 | sweeps: load | Relaxed | – | nothing: a thread with a type at a reused address received it from the thread that made it, after the sweep |
//!
//! **===.** The same exact type, and then: mutable objects by identity, strings by bytes, immutable values by
//! their fields recursively, floats by bits. A list of pairs replaces recursion; when it gets long, compared
//! values count as equal from then on ([`Equated`]), so comparing values with shared parts takes time linear
//! in their size.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brolga_ir::Context;
use brolga_ir::equated::Equated;
use brolga_ir::types::Type;

use crate::heap::{Heap, Obj, Object, ObjectKind, Scope, TypeDesc, TypeRef};

use super::place::{At, Held};

/// The number of results that a thread caches.
const CACHE: usize = 256;
/// The number of pairs from which `===` records what it has compared.
const MANY_PAIRS: usize = 64;

/// Results of `isa` for pairs of types; the result is in the lowest bit of the second word.
pub(crate) struct IsaCache {
    slots: Box<[Cell<(u64, u64)>]>,
    /// The heap's number of sweeps of types, and the number when the cache was last cleared.
    sweeps: Arc<AtomicU64>,
    seen: Cell<u64>,
}

impl Default for IsaCache {
    fn default() -> IsaCache {
        IsaCache::new(Arc::default())
    }
}

impl IsaCache {
    /// A cache for a heap with this number of sweeps.
    pub(crate) fn new(sweeps: Arc<AtomicU64>) -> IsaCache {
        IsaCache { slots: (0..CACHE).map(|_| Cell::new((0, 0))).collect(), sweeps, seen: Cell::new(0) }
    }

    fn slot(&self, key: (u64, u64)) -> &Cell<(u64, u64)> {
        let hash = (key.0 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ (key.1 >> 4).wrapping_mul(0xff51_afd7_ed55_8ccd);
        &self.slots[(hash >> 40) as usize % CACHE]
    }

    /// Clears the cache if an address may by now belong to another type.
    fn settle(&self) {
        let sweeps = self.sweeps.load(Ordering::Relaxed); // I1
        if self.seen.replace(sweeps) != sweeps {
            self.slots.iter().for_each(|slot| slot.set((0, 0)));
        }
    }

    /// Whether objects of type `a` have type `b`, if cached.
    pub(crate) fn known(&self, a: &TypeDesc, b: &TypeDesc) -> Option<bool> {
        self.settle();
        let key = (a.tag(), b.tag());
        if key.0 == key.1 {
            return Some(true);
        }
        let (known_a, known_b) = self.slot(key).get();
        (known_a == key.0 && known_b & !1 == key.1).then_some(known_b & 1 != 0)
    }

    /// Whether objects of type `a` have type `b`.
    pub(crate) fn is_subtype(&self, heap: &Heap, a: &TypeDesc, b: &TypeDesc) -> bool {
        self.known(a, b).unwrap_or_else(|| {
            let answer = heap.types().is_subtype(a, b);
            self.slot((a.tag(), b.tag())).set((a.tag(), b.tag() | u64::from(answer)));
            answer
        })
    }
}

impl Heap {
    /// Whether an object has a type.
    pub(crate) fn is_a(&self, cache: Option<&IsaCache>, object: Object, ty: &TypeDesc) -> bool {
        let own = object.desc();
        let by_type = match cache {
            Some(cache) => cache.is_subtype(self, own, ty),
            None => self.types().is_subtype(own, ty),
        };
        // A type has type `Type{itself}`, which is not a subtype of the `DataType` in its tag.
        by_type || as_type(object).is_some_and(|of| self.types().is_type_of(of, ty))
    }
}

impl Heap {
    /// Whether an object has a type of some context. Needs no description of the type.
    pub(crate) fn is_of(&self, object: Object, cx: &Arc<Context>, ty: Type) -> bool {
        let desc = object.desc();
        if ty == Type::ANY || desc.ty() == Some(ty) && desc.context().is_same(cx) {
            return true;
        }
        let types = self.types();
        let cx = &types.newest(cx);
        let own = types.type_in(desc, cx);
        own.is_some_and(|own| own == ty || cx.types.is_subtype(own, ty))
            || as_type(object)
                .and_then(|of| cx.types.type_of(types.type_in(of, cx)?).ok())
                .is_some_and(|of| cx.types.is_subtype(of, ty))
    }
}

/// The type that an object is, if it is one.
pub(crate) fn as_type<'a>(object: Object) -> Option<&'a TypeDesc> {
    object.as_desc()
}

impl<'h> Scope<'_, 'h> {
    /// The type of an object, as an object.
    pub fn type_of<'a>(&'a self, object: Obj<'_, 'h>) -> Obj<'a, 'h> {
        self.obj(object.object.desc().object())
    }

    /// Whether an object has a type.
    pub fn is_a(&self, object: Obj<'_, 'h>, ty: &TypeRef) -> bool {
        self.heap().is_a(None, object.object, ty)
    }
}

impl<'h> Obj<'_, 'h> {
    /// `===`
    pub fn is_same(self, other: Obj<'_, 'h>) -> bool {
        egal(self.object, other.object)
    }
}

/// `===`
pub(crate) fn egal(a: Object, b: Object) -> bool {
    let mut work = vec![];
    let mut equated = Equated::default();
    let mut visited = 0;
    if !same(a, b, &mut work) {
        return false;
    }
    while let Some((a, b)) = work.pop() {
        visited += 1;
        if visited > MANY_PAIRS && !equated.equate((a.object, a.offset, a.ty), (b.object, b.offset, b.ty)) {
            continue;
        }
        if let (Some(a), Some(b)) = (a.bits(), b.bits()) {
            if a != b {
                return false;
            }
            continue;
        }
        // The run time lays out a reference, so it has no fields.
        if a.cx.types.memory_ref_element(a.ty).is_some() {
            if words_of_reference(a) != words_of_reference(b) {
                return false;
            }
            continue;
        }
        for (a, b) in a.fields().zip(b.fields()) {
            let fits = match (a.held(), b.held()) {
                (Held::Undefined, Held::Undefined) => true,
                (Held::Object(a), Held::Object(b)) => same(a, b, &mut work),
                (Held::Inline(a), Held::Inline(b)) => {
                    let fits = a.ty == b.ty;
                    work.push((a, b));
                    fits
                }
                _ => false,
            };
            if !fits {
                return false;
            }
        }
    }
    true
}

/// The first word of a `MemoryRef`, which encodes its position, and its `Memory`.
fn words_of_reference(at: At<'_>) -> (u64, Option<Object>) {
    (at.object.word_at(at.offset), at.object.pointer_at(at.offset + 8))
}

/// Whether two objects may be equal; values of immutable ones are queued for comparison.
fn same<'a>(a: Object, b: Object, work: &mut Vec<(At<'a>, At<'a>)>) -> bool {
    if a == b {
        return true;
    }
    let desc = a.desc();
    if !std::ptr::eq(desc, b.desc()) {
        return false;
    }
    match desc.kind() {
        ObjectKind::String => a.string() == b.string(),
        ObjectKind::Struct(_) if !desc.is_mutable() => match (At::boxed(a), At::boxed(b)) {
            (Some(a), Some(b)) => {
                work.push((a, b));
                true
            }
            _ => false,
        },
        _ => false,
    }
}
