//! The variables of methods at run time: which calls match them, and their values in a call.
//!
//! A method with open variables accepts a call if the arguments have its types and match its patterns, as
//! `brolga_ir::types` defines and decides. Compiled code that reads a static parameter passes its own
//! arguments and the `where` of its method as a type; the result equals what dispatch found, because both use
//! only exact types.
//!
//! Cost: a walk over the types of the arguments for each method look-up, so once for each line of a thread's
//! table (`dispatch.rs`), and for each read of a static parameter in code that was not compiled for exact
//! types.
//!
//! Not done: arguments whose types belong to another program match no variable.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::types::{Pattern, Statics, Type};

use crate::heap::{Heap, Object, TypeRef};

use super::relations::as_type;

/// The variables of a method, in the context of its program.
#[derive(Clone)]
pub(crate) struct Variables {
    pub(crate) cx: Arc<Context>,
    pub(crate) statics: Statics,
    /// Whether the last parameter collects.
    pub(crate) vararg: bool,
}

impl PartialEq for Variables {
    fn eq(&self, other: &Variables) -> bool {
        self.cx.is_same(&other.cx) && self.vararg == other.vararg && self.statics == other.statics
    }
}

impl Eq for Variables {}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.statics.fmt(f)
    }
}

impl Variables {
    pub(crate) fn new(cx: Arc<Context>, statics: Statics, vararg: bool) -> Variables {
        Variables { cx, statics, vararg }
    }

    fn pattern(&self) -> Pattern<'_> {
        Pattern { statics: &self.statics, vararg: self.vararg }
    }

    /// The values of the variables for these arguments, with a view of their context; `None` if the arguments
    /// do not match.
    pub(crate) fn bind(&self, heap: &Heap, args: &[Object]) -> Option<(Arc<Context>, Vec<Option<Type>>)> {
        let (types, cx) = (heap.types(), heap.types().newest(&self.cx));
        let given = args.iter().map(|&arg| match as_type(arg) {
            Some(of) => cx.types.type_of(types.type_in(of, &cx)?).ok(),
            None => types.type_in(arg.desc(), &cx),
        });
        let values = cx.types.bind_statics(self.pattern(), &given.collect::<Option<Vec<Type>>>()?)?;
        Some((cx, values))
    }

    /// Whether all arguments of these types match.
    pub(crate) fn take(&self, heap: &Heap, args: &[TypeRef]) -> bool {
        let (types, cx) = (heap.types(), heap.types().newest(&self.cx));
        let given: Option<Vec<Type>> = args.iter().map(|arg| types.type_in(arg, &cx)).collect();
        given.is_some_and(|given| cx.types.bind_statics(self.pattern(), &given).is_some())
    }

    /// Whether all arguments that match the other variables match these.
    pub(crate) fn are_above(&self, other: &Variables) -> bool {
        self.cx.is_same(&other.cx) && self.cx.types.is_below(other.pattern(), self.pattern())
    }
}
