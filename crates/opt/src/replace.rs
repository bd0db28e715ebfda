//! Replacements of values, collected by a pass and applied to the whole function in one sweep.
//!
//! ```text
//! set(v3, v2)   set(v7, v3)          resolve(v7) = v2        apply: every operand v7 or v3 becomes v2
//! ```
//!
//! A value is replaced by one of its type, or in high IR of a narrower one; `refit` then adapts operands.
//!
//! Invariant: following replacements ends. A replacement that would close a cycle is not made; it can only be requested in
//! unreachable code, where a value may be an operand of its own operands.

use crate::refit::{differs, refit};
use brolga_ir::{Context, Func, Inst, Type, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// A table with room for entities of this number from the start: one that grows entity by entity takes longer.
pub(crate) fn sized<K: EntityRef, V: Clone + Default>(count: usize) -> SecondaryMap<K, V> {
    let mut map = SecondaryMap::new();
    map.resize(count);
    map
}

/// Replacements of values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replacements {
    to: SecondaryMap<Value, PackedOption<Value>>,
    any: bool,
}

impl Replacements {
    /// Whether any value is replaced.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// The final replacement of `value`.
    pub(crate) fn resolve(&mut self, value: Value) -> Value {
        let mut last = value;
        while let Some(next) = self.to[last].expand() {
            last = next;
        }
        // Shorten the path for the next query.
        let mut at = value;
        while let Some(next) = self.to[at].expand() {
            if next == last {
                break;
            }
            self.to[at] = last.into();
            at = next;
        }
        last
    }

    /// Replaces `from` by `to` from now on.
    pub(crate) fn set(&mut self, from: Value, to: Value) {
        let to = self.resolve(to);
        if to != from {
            self.to[from] = to.into();
            self.any = true;
        }
    }

    /// Replaces all operands of the function. True if there was one.
    pub(crate) fn apply(&mut self, func: &mut Func, cx: &Context) -> bool {
        let mut any = false;
        if self.any {
            visit(func, |func, inst| {
                any |= self.apply_to(func, cx, inst);
                ControlFlow::Continue(())
            });
        }
        any
    }

    /// Replaces the operands of one instruction. True if there was one to replace.
    pub(crate) fn apply_to(&mut self, func: &mut Func, cx: &Context, inst: Inst) -> bool {
        if !self.any || func.args(inst).iter().all(|&arg| self.to[arg].is_none()) {
            return false;
        }
        let mut before: SmallVec<[(usize, Type); 4]> = SmallVec::new();
        for n in 0..func.args(inst).len() {
            let old = func.args(inst)[n];
            let new = self.resolve(old);
            if new != old {
                before.extend(differs(func, func.ty(old), new).then(|| (n, func.ty(old))));
                func.args_mut(inst)[n] = new;
            }
        }
        refit(func, cx, inst, &before);
        true
    }
}

/// Visits all instructions in the order of the text, until `f` has seen enough. `f` may remove the visited one and insert
/// others before it, which are not visited.
pub(crate) fn visit(func: &mut Func, mut f: impl FnMut(&mut Func, Inst) -> ControlFlow<()>) {
    let mut block = func.entry();
    while let Some(b) = block {
        block = func.next_block(b);
        let mut next = func.first_inst(b);
        while let Some(inst) = next {
            next = func.next_inst(inst);
            if f(func, inst).is_break() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_end_at_the_last_and_cycles_are_not_closed() {
        let v: Vec<Value> = (0..5).map(Value::new).collect();
        let mut map = Replacements::default();
        map.set(v[3], v[2]);
        map.set(v[4], v[3]);
        map.set(v[2], v[1]);
        assert_eq!(map.resolve(v[4]), v[1]);
        map.set(v[1], v[4]);
        assert_eq!(map.resolve(v[1]), v[1]);
        assert_eq!(map.resolve(v[0]), v[0]);
    }
}
