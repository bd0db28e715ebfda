//! Calls that bodies took the place of: what a stack trace and a profiler need to name the function of a copied statement.
//!
//! ```text
//!   3  invoke g(x)        ==>     place { at: 8,  inlined: inlined0 }     inlined0: g, called at 3
//!                                 place { at: 20, inlined: inlined1 }     inlined1: h, called at 8 of g, within inlined0
//! ```
//!
//! A copied statement keeps the line of its own function, so it must carry the function as well. The ids are in [`Place`], which passes hand
//! on as one value. As names for debuggers, they are neither printed nor stored in the binary form, and do not affect computed values.

use cranelift_entity::packed_option::PackedOption;

use super::{CalleeData, Func, LineColumn, Place};
use crate::entity::Inlined;

/// A call that the body of its callee took the place of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InlinedCall {
    /// The callee, as the call named it.
    pub callee: CalleeData,
    /// The line of the call, in the function that contained it.
    pub at: LineColumn,
    /// The call whose body contained this one; `None` if this function did.
    pub within: PackedOption<Inlined>,
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

    /// Adds the calls of a function whose statements are copied here as the body of `call`, or as a part of this function if there is none.
    pub fn copy_inlined_calls(&mut self, of: &Func, call: Option<InlinedCall>) -> CopiedPlaces {
        let around = call.map(|call| self.add_inlined_call(call)).into();
        let copied = CopiedPlaces { around, first: self.debug.inlined.len() as u32 };
        for inner in of.inlined_calls() {
            self.debug.inlined.push(InlinedCall { within: copied.moved(inner.within), ..inner.clone() });
        }
        copied
    }
}

/// From places of a function to the places of their copies in another.
#[derive(Clone, Copy, Default, Debug)]
pub struct CopiedPlaces {
    around: PackedOption<Inlined>,
    first: u32,
}

impl CopiedPlaces {
    /// The place of a copied statement.
    pub fn place(&self, place: Place) -> Place {
        Place { inlined: self.moved(place.inlined), ..place }
    }

    fn moved(&self, id: PackedOption<Inlined>) -> PackedOption<Inlined> {
        match id.expand() {
            Some(id) => Inlined::from_u32(self.first + id.as_u32()).into(),
            None => self.around,
        }
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
            within: within.into(),
        };
        let (mut f, mut g) = (func("f"), func("g"));
        f.add_inlined_call(call("earlier", 1, None));
        let h = g.add_inlined_call(call("h", 8, None));
        let copied = f.copy_inlined_calls(&g, Some(call("g", 3, None)));
        let at = |line| Place { at: LineColumn::new(line, 0), ..Place::default() };
        let names = |place: Place| {
            let mut names = Vec::new();
            let mut next = place.inlined.expand();
            while let Some(call) = next.and_then(|id| f.inlined_call(id)) {
                let CalleeData::Method { function, .. } = &call.callee else { break };
                names.push(format!("{} from {}", cx.types.display(*function), call.at));
                next = call.within.expand();
            }
            names
        };
        assert_eq!(names(copied.place(at(9))), ["typeof(g) from 3"]);
        let inner = Place { inlined: h.into(), ..at(20) };
        assert_eq!(names(copied.place(inner)), ["typeof(h) from 8", "typeof(g) from 3"]);
        assert_eq!(f.inlined_call(Inlined::from_u32(7)), None);
    }
}
