//! Calls that bodies took the place of: what a stack trace and a profiler need to name the function of a copied statement.
//!
//! ```text
//!   3  invoke g(x)        ==>     place { at: 8,  inlined: inlined0 }     inlined0: g, called at 3
//!                                 place { at: 20, inlined: inlined1 }     inlined1: h, called at 8 of g, within inlined0
//! ```
//!
//! A copied statement keeps the line of its own function, so it must carry the function as well. The ids are in [`Place`], which passes hand
//! on as one value. As names for debuggers, they are neither printed nor stored in the binary form, and do not affect computed values.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::{CalleeData, Func, LineColumn, Place};
use crate::entity::Inlined;

/// The most bodies around a statement that are kept: a chain of calls that are all inlined would otherwise take the square of its length.
const MOST_DEPTH: usize = 16;

/// A call that the body of its callee took the place of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InlinedCall {
    /// The callee, as the call named it.
    pub callee: CalleeData,
    /// The line of the call, in the function that contained it.
    pub at: LineColumn,
    /// The call whose body contained this one; `None` if this function did.
    pub within: Option<Inlined>,
}

impl Place {
    /// The call whose callee's body has this statement; `None` for the function's own.
    pub fn inlined(&self) -> Option<Inlined> {
        self.inlined.expand()
    }
}

impl Func {
    /// Adds a call that a body takes the place of.
    pub fn add_inlined_call(&mut self, call: InlinedCall) -> Inlined {
        self.debug.inlined.push(call)
    }

    /// A call that a body took the place of; `None` if the function has no such call.
    pub fn inlined_call(&self, call: Inlined) -> Option<&InlinedCall> {
        self.debug.inlined.get(call)
    }

    /// All calls that bodies took the place of. An outer one precedes those within it.
    pub fn inlined_calls(&self) -> impl ExactSizeIterator<Item = &InlinedCall> {
        self.debug.inlined.values()
    }

    /// Makes all statements the function's own.
    pub fn forget_inlined_calls(&mut self) {
        self.debug.inlined.clear();
    }

    /// Takes over the calls of a function whose statements this one, which has none yet, is to have under the same ids.
    pub fn share_inlined_calls(&mut self, of: &Func) {
        self.debug.inlined.clone_from(&of.debug.inlined);
    }

    /// The number of bodies around a statement: its call, the call around that, and on.
    fn inlined_depth(&self, call: Option<Inlined>) -> usize {
        let outer = |&call: &Inlined| self.inlined_call(call)?.within;
        std::iter::successors(call, outer).take(MOST_DEPTH + 1).count()
    }
}

/// From places of a function to the places of their copies in another. Calls are copied as far as statements refer to them, so what vanishes leaves nothing in
/// callers of callers.
#[derive(Default, Debug)]
pub struct CopiedPlaces {
    around: Option<Inlined>,
    depth: usize,
    copies: SecondaryMap<Inlined, PackedOption<Inlined>>,
}

impl CopiedPlaces {
    /// For statements that are copied to a part of the function.
    pub fn new() -> CopiedPlaces {
        CopiedPlaces::default()
    }

    /// For statements that are copied to `to` as the body of a call there.
    pub fn in_place_of(to: &mut Func, call: InlinedCall) -> CopiedPlaces {
        let outer = call.within;
        let depth = to.inlined_depth(outer);
        // Beyond the limit, statements count as the outer body's.
        if depth >= MOST_DEPTH {
            return CopiedPlaces { around: outer, depth, copies: SecondaryMap::new() };
        }
        let around = Some(to.add_inlined_call(call));
        CopiedPlaces { around, depth: depth + 1, copies: SecondaryMap::new() }
    }

    /// The place of a statement of `of` that is copied to `to`.
    pub fn place(&mut self, to: &mut Func, of: &Func, place: Place) -> Place {
        let inlined = match place.inlined() {
            Some(call) => self.copy(to, of, call),
            None => self.around,
        };
        Place { inlined: inlined.into(), ..place }
    }

    fn copy(&mut self, to: &mut Func, of: &Func, call: Inlined) -> Option<Inlined> {
        if let Some(copy) = self.copies[call].expand() {
            return Some(copy);
        }
        if self.depth + of.inlined_depth(Some(call)) > MOST_DEPTH {
            return self.around;
        }
        let chain = std::iter::successors(Some(call), |&call| of.inlined_call(call)?.within);
        let chain: Vec<Inlined> = chain.collect();
        let mut within = self.around;
        for id in chain.into_iter().rev() {
            within = match (self.copies[id].expand(), of.inlined_call(id)) {
                (None, Some(inner)) => Some(to.add_inlined_call(InlinedCall { within, ..inner.clone() })),
                (copy, _) => copy,
            };
            self.copies[id] = within.into();
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::func::Signature;
    use crate::{Context, Level, Type};

    #[test]
    fn a_copied_body_is_within_the_call_that_it_replaces() {
        let cx = Context::new();
        let func = |name: &str| Func::new(cx.names.intern(name), Level::High, Signature::default());
        let call = |name: &str, line, within: Option<Inlined>| InlinedCall {
            callee: CalleeData::Method {
                function: cx.types.function_of(name),
                args: Box::default(),
                result: Type::INT64,
            },
            at: LineColumn::new(line, 0),
            within,
        };
        let (mut f, mut g) = (func("f"), func("g"));
        f.add_inlined_call(call("earlier", 1, None));
        let h = g.add_inlined_call(call("h", 8, None));
        g.add_inlined_call(call("vanished", 9, None));
        let mut copied = CopiedPlaces::in_place_of(&mut f, call("g", 3, None));
        let at = |line| Place { at: LineColumn::new(line, 0), ..Place::default() };
        let names = |f: &Func, place: Place| {
            let mut names = Vec::new();
            let mut next = place.inlined();
            while let Some(call) = next.and_then(|id| f.inlined_call(id)) {
                let CalleeData::Method { function, .. } = &call.callee else { break };
                names.push(format!("{} from {}", cx.types.display(*function), call.at));
                next = call.within;
            }
            names
        };
        let own = copied.place(&mut f, &g, at(9));
        assert_eq!(names(&f, own), ["typeof(g) from 3"]);
        let inner = Place { inlined: h.into(), ..at(20) };
        for _ in 0..2 {
            let inner = copied.place(&mut f, &g, inner);
            assert_eq!(names(&f, inner), ["typeof(h) from 8", "typeof(g) from 3"]);
        }
        assert_eq!(f.inlined_calls().len(), 3, "what no statement refers to is not copied");
        assert_eq!(f.inlined_call(Inlined::from_u32(7)), None);
        // A chain of inlined calls.
        let mut last = g;
        let mut place = at(1);
        for line in 0..100 {
            let mut next = func("next");
            let mut copied = CopiedPlaces::in_place_of(&mut next, call("next", line, None));
            place = copied.place(&mut next, &last, place);
            assert!(next.inlined_calls().len() <= MOST_DEPTH);
            last = next;
        }
    }
}
