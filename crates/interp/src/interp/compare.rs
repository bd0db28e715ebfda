//! Equality of values.
//!
//! | | floats | immutables | mutable structs, arrays |
//! |---|---|---|---|
//! | [`Interp::egal`] (`===`) | by bits | by fields | by identity (strings by bytes) |
//! | [`Interp::is_equal`] (checks) | by bits, all NaN equal | by fields | by contents |
//!
//! Both require the same exact type. Neither recurses, and `is_equal` treats a pair of objects that it is
//! already comparing as equal, so cyclic values terminate. Each pair of shared values is compared once.

use super::error::Eval;
use super::heap::Object;
use super::value::{ObjId, Val};
use super::{Interp, Outcome};
use brolga_ir::equated::Equated;
use rustc_hash::FxHashSet;

/// This number of part comparisons counts as one step.
const STEP: usize = 64;

impl Interp<'_> {
    /// Whether two values are equal in the sense of `# check:` lines: the same type, and `isequal`
    /// recursively.
    pub fn is_equal(&mut self, a: &Val, b: &Val) -> Result<bool, Outcome> {
        let equal = self.compare(a, b, Depth::Contents);
        equal.map_err(|stop| self.outcome_without_place(stop))
    }

    /// `===`
    pub(super) fn egal(&mut self, a: &Val, b: &Val) -> Eval<bool> {
        self.compare(a, b, Depth::Identity)
    }

    fn compare(&mut self, a: &Val, b: &Val, depth: Depth) -> Eval<bool> {
        let mut work = vec![(Some(a.clone()), Some(b.clone()))];
        let mut seen: FxHashSet<(ObjId, ObjId)> = FxHashSet::default();
        // Keyed by the addresses of their fields, which `kept` keeps alive.
        let mut equated = Equated::default();
        let mut kept = Vec::new();
        let mut compared = 0usize;
        while let Some(pair) = work.pop() {
            compared += 1;
            if compared.is_multiple_of(STEP) {
                self.spend()?;
            }
            let (a, b) = match pair {
                (Some(a), Some(b)) => (a, b),
                (None, None) => continue,
                _ => return Ok(false),
            };
            let same = match (&a, &b) {
                (Val::Struct(x), Val::Struct(y)) => {
                    if x.ty() != y.ty() || x.fields().len() != y.fields().len() {
                        return Ok(false);
                    }
                    let (own, other) = (x.fields().as_ptr().addr(), y.fields().as_ptr().addr());
                    if !x.is_same(y) && equated.equate(own, other) {
                        work.extend(x.fields().iter().cloned().zip(y.fields().iter().cloned()));
                        kept.push((x.clone(), y.clone()));
                    }
                    true
                }
                (Val::Bits { .. }, Val::Bits { .. }) => match depth {
                    Depth::Identity => bits_of(&a) == bits_of(&b),
                    Depth::Contents => match (self.scalar(&a), self.scalar(&b)) {
                        (Some(x), Some(y)) => a.ty(self.types()) == b.ty(self.types()) && x.agrees(y),
                        _ => bits_of(&a) == bits_of(&b),
                    },
                },
                (Val::Singleton(x), Val::Singleton(y)) | (Val::Type(x), Val::Type(y)) => x == y,
                (Val::Symbol(x), Val::Symbol(y)) | (Val::Module(x), Val::Module(y)) => x == y,
                (
                    &Val::MemoryRef { ty: t, memory: x, offset: i },
                    &Val::MemoryRef { ty: u, memory: y, offset: j },
                ) => {
                    if depth == Depth::Contents && x != y && seen.insert((x, y)) {
                        let ty = self.types().memory_ref_element(t).and_then(|e| self.types().memory(e).ok());
                        let object = |id| ty.map(|ty| Val::Object { ty, id });
                        work.push((object(x), object(y)));
                    }
                    t == u && i == j && (x == y || depth == Depth::Contents)
                }
                (&Val::Object { ty: t, id: x }, &Val::Object { ty: u, id: y }) => {
                    if t != u {
                        false
                    } else if x == y {
                        true
                    } else if let (Some(x), Some(y)) = (self.text(x)?, self.text(y)?) {
                        x == y
                    } else if depth == Depth::Identity {
                        false
                    } else if !seen.insert((x, y)) {
                        true
                    } else {
                        self.push_contents(x, y, &mut work)?
                    }
                }
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Queues the parts of two objects of one type for comparison; `false` if their shapes differ.
    fn push_contents(
        &mut self,
        a: ObjId,
        b: ObjId,
        work: &mut Vec<(Option<Val>, Option<Val>)>,
    ) -> Eval<bool> {
        self.read_back(a)?;
        self.read_back(b)?;
        match (self.heap.get(a), self.heap.get(b)) {
            (Some(Object::Struct(x)), Some(Object::Struct(y))) => {
                work.extend(x.iter().cloned().zip(y.iter().cloned()));
                Ok(x.len() == y.len())
            }
            (Some(Object::Array(x)), Some(Object::Array(y))) => {
                let (x, y) = (x.clone(), y.clone());
                if x.dims != y.dims {
                    return Ok(false);
                }
                let length = if self.has_empty_elements(x.memory) { 0 } else { x.length() };
                for n in 0..length as i64 {
                    let one = self.element(x.memory, x.offset.wrapping_add(n))?;
                    work.push((one, self.element(y.memory, y.offset.wrapping_add(n))?));
                }
                Ok(true)
            }
            (Some(Object::Memory(x)), Some(Object::Memory(y))) => {
                let length = x.length;
                if length != y.length {
                    return Ok(false);
                }
                let compared = if x.has_empty_elements() { 0 } else { length };
                for n in 0..compared as i64 {
                    let one = self.element(a, n)?;
                    work.push((one, self.element(b, n)?));
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Identity,
    Contents,
}

fn bits_of(val: &Val) -> Option<(brolga_ir::types::Type, u128)> {
    match *val {
        Val::Bits { ty, bits } => Some((ty, bits)),
        _ => None,
    }
}
