//! The methods that the dynamic calls of a function may reach: it imports them, and is recompiled when one is defined.
//!
//! ```text
//!   dynamic h(%1, %2)          Call { h, (T1, T2) }     methods of h with no parameter that is disjoint from its argument
//!   (h, %1), return h, φ h …   Mentioned h              all methods of h: it may be called with any arguments
//!   dynamic %3(%1)             unknown                  methods of all functions that the program defines or mentions
//! ```
//!
//! Cost: one walk over the statements.

use std::collections::BTreeSet;

use brolga_ir::builtin::Builtin;
use brolga_ir::func::CalleeData;
use brolga_ir::{Func, Module, Op, Type, TypeKind, Types, Value};
use brolga_opt::guessed;
use smallvec::SmallVec;

/// A dynamic call of a known function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DynamicCall {
    /// The type of the function object.
    pub(crate) function: Type,
    /// The types of the arguments.
    pub(crate) args: SmallVec<[Type; 4]>,
}

/// The functions that dynamic calls may reach.
#[derive(Clone, Default, Debug)]
pub(crate) struct Reach {
    pub(crate) calls: BTreeSet<DynamicCall>,
    /// The types of function objects that may be called with any arguments.
    pub(crate) mentioned: BTreeSet<Type>,
    /// Whether an unknown function is called.
    pub(crate) has_unknown: bool,
}

impl Reach {
    /// Adds what another function may reach.
    pub(crate) fn add(&mut self, other: &Reach) {
        self.calls.extend(other.calls.iter().cloned());
        self.mentioned.extend(&other.mentioned);
        self.has_unknown |= other.has_unknown;
    }

    /// Whether a function is only called, and not used in any other way.
    pub(crate) fn only_calls(&self, function: Type) -> bool {
        !self.mentioned.contains(&function) && self.calls.iter().any(|call| call.function == function)
    }

    /// The functions whose methods the optimiser needs for devirtualizing calls, by the types of their objects.
    pub(crate) fn functions(self, module: &Module) -> BTreeSet<Type> {
        let guessed = if self.has_unknown { guessed(module) } else { BTreeSet::new() };
        let called = self.calls.into_iter().map(|call| call.function);
        called.chain(self.mentioned).chain(guessed).collect()
    }
}

/// The functions that the dynamic calls of a function may reach, and the function values that it has.
pub(crate) fn reach(module: &Module, func: &Func) -> Reach {
    let types = &module.cx.types;
    let is_function = |value: &Value| matches!(types.kind(func.ty(*value)), TypeKind::Function(_));
    let mut reach = Reach::default();
    for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
        let args = func.args(inst);
        let others = match (func.op(inst), args) {
            (Op::Call, [callee, others @ ..]) if is_function(callee) => {
                let args = others.iter().map(|&arg| func.ty(arg)).collect();
                reach.calls.insert(DynamicCall { function: func.ty(*callee), args });
                others
            }
            // A static call names its callee and the method.
            (Op::Invoke(callee), [object, others @ ..]) if matches!(func.callee(callee), CalleeData::Method { function, .. } if *function == func.ty(*object)) => {
                others
            }
            (op, args) => {
                reach.has_unknown |= decides_later(op);
                args
            }
        };
        reach.mentioned.extend(others.iter().filter(|arg| is_function(arg)).map(|&arg| func.ty(arg)));
    }
    reach
}

/// Whether an operation may call a function that is determined only at run time.
pub(crate) fn decides_later(op: Op) -> bool {
    let calls = [Builtin::ApplyIterate, Builtin::Invoke, Builtin::Invokelatest, Builtin::InvokeInWorld];
    match op {
        Op::Call | Op::CallRuntime(_) => true,
        Op::Builtin(builtin) => calls.contains(&builtin),
        _ => false,
    }
}

/// Whether a call with arguments of these types may reach a method. Parameters with the variables of a `where` accept any type here.
pub(crate) fn may_reach(types: &Types, args: &[Type], method: &Func) -> bool {
    let is_open = method.sig.pattern().is_some();
    let params = method.sig.params.get(1..).unwrap_or_default();
    let (fixed, rest) = match method.sig.vararg {
        true => params.split_at(params.len().saturating_sub(1)),
        false => (params, [].as_slice()),
    };
    let fits_count = if rest.is_empty() { args.len() == fixed.len() } else { args.len() >= fixed.len() };
    fits_count && (is_open || args.iter().zip(fixed).all(|(&arg, param)| !types.is_disjoint(arg, param.ty)))
}

/// The type of a method's first parameter, if it accepts only values of exactly that type.
pub(crate) fn first_parameter(types: &Types, method: &Func) -> Option<Type> {
    let is_plain = !method.sig.vararg && method.sig.pattern().is_none();
    let first = method.sig.params.get(1).filter(|_| is_plain)?.ty;
    is_leaf(types, first).then_some(first)
}

/// Whether a type is disjoint from all other types that parameters name, except its supertypes.
pub(crate) fn is_leaf(types: &Types, ty: Type) -> bool {
    matches!(types.kind(ty), TypeKind::Nominal { .. }) && types.is_concrete(ty)
}
