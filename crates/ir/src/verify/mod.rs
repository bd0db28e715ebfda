//! The verifier: whether a function is well-formed.
//!
//! Every function from outside is verified, and in tests every function after every pass. The reference
//! interpreter can run an accepted function and the code generator can translate it without further checks.
//!
//! | file | rules | codes |
//! |---|---|---|
//! | `ids` | named entities exist | `structure-id` |
//! | `structure` | blocks, terminators, targets, positions of φ and handlers, operand and result counts | `structure-…` |
//! | `level` | operations and types belong to the function's level | `level-…` |
//! | `constants` | bits fit, parts of aggregates fit | `constant-…` |
//! | `ssa` | definitions dominate uses, φ edges, tokens, ϒ and φᶜ | `ssa-…` |
//! | `high`, `builtins` | operand and result types of high IR | `type-…` |
//! | `intrinsics` | operand and result types of intrinsics on both levels | `type-…` |
//! | `low` | operand and result types of low IR, memory accesses, pointer classes | `low-…` |
//! | `exceptions` | handlers nest and are left in order | `exception-…` |
//! | `calls` | callees fit; refused operations | `call-…` |
//! | `complete` | callees exist: run separately, not a rule | `call-unknown`, `call-foreign` |
//! | `module` | first values of globals | `module-global` |
//! | `doors` of the crate | unchecked operations: run separately | `door-…` |
//! | `explain`, `codes` | violations as diagnostics | |
//!
//! Each file has an enum of its rules; a variant holds the evidence, and `explain` makes sentences of it.
//!
//! **Types.** A type in the IR asserts that the value has that type. The type that an operation requires of
//! an operand must follow from the operand's type. A result may be asserted wider than the operation's type;
//! for operations on objects it may also be asserted narrower, because inference has found more than one
//! statement shows; it may not be disjoint. Such an assertion is checked where the value is converted.
//! `Union{}` asserts that the statement does not return.
//!
//! **Unreachable blocks** obey all rules except those about paths: dominance and handlers.
//!
//! **Order.** If ids are out of range nothing else is checked; if the structure is broken, rules about paths
//! are not checked. At most [`MAX_VIOLATIONS`] per function are kept.
//!
//! Cost: a few walks over the function and one dominator tree, all linear, plus one walk for the evidence of
//! each violation. No recursion.

mod builtins;
mod calls;
mod codes;
mod complete;
mod constants;
mod exceptions;
mod explain;
mod high;
mod ids;
mod intrinsics;
mod level;
mod low;
mod module;
mod ssa;
mod structure;
#[cfg(test)]
mod tests;
mod type_rule;

pub use calls::CallRule;
pub use complete::missing_callees;
pub use constants::ConstantRule;
pub use exceptions::ExceptionRule;
pub use explain::{point_into_printout, source_span};
pub use level::LevelRule;
pub use low::LowRule;
pub use module::{GlobalRule, GlobalViolation, ModuleViolations, verify_module};
pub use ssa::SsaRule;
pub use structure::StructureRule;
pub use type_rule::{FieldRef, TypeRule, Wanted};

use crate::analysis::{Cfg, DomTree, InstOrder};
use crate::constant::Const;
use crate::context::Context;
use crate::doors::Door;
use crate::entity::{Block, Inst, Value};
use crate::func::Func;
use crate::module::Module;
use crate::op::Level;
use crate::types::{Type, Types};

/// The maximum number of violations kept per function: more are mostly consequences of one cause.
pub const MAX_VIOLATIONS: usize = 100;

/// Where a rule is broken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Site {
    /// The function as a whole.
    Func,
    Block(Block),
    /// A statement.
    Inst(Inst),
}

/// A broken rule with its evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// See [`StructureRule`].
    Structure(StructureRule),
    /// See [`LevelRule`].
    Level(LevelRule),
    /// See [`ConstantRule`].
    Constant(ConstantRule),
    /// See [`SsaRule`].
    Ssa(SsaRule),
    /// See [`TypeRule`].
    Type(TypeRule),
    /// See [`LowRule`].
    Low(LowRule),
    /// See [`ExceptionRule`].
    Exception(ExceptionRule),
    /// See [`CallRule`].
    Call(CallRule),
    /// The statement or function is a door ([`doors`](crate::doors)): reported on request, not a rule of the
    /// verifier itself.
    Door(Door),
}

macro_rules! from_rules {
    ($($variant:ident $rule:ident;)*) => { $(
        impl From<$rule> for Rule {
            fn from(rule: $rule) -> Rule {
                Rule::$variant(rule)
            }
        }
    )* };
}

from_rules! {
    Structure StructureRule;
    Level LevelRule;
    Constant ConstantRule;
    Ssa SsaRule;
    Type TypeRule;
    Low LowRule;
    Exception ExceptionRule;
    Call CallRule;
    Door Door;
}

/// A broken rule and where it is broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub site: Site,
    pub rule: Rule,
}

/// Checks a function on its own: callees and globals are not checked.
pub fn verify_func(cx: &Context, func: &Func) -> Result<(), Vec<Violation>> {
    Checker::new(cx, func, None).run()
}

/// Checks a function as part of a module: callees and globals must exist and match.
pub fn verify_func_in(module: &Module, func: &Func) -> Result<(), Vec<Violation>> {
    Checker::new(&module.cx, func, Some(module)).run()
}

/// Checks what can be decided about one statement alone: counts, level, types, callees. The statement need
/// not be placed.
pub fn verify_inst(cx: &Context, func: &Func, inst: Inst) -> Result<(), Violation> {
    let mut checker = Checker::new(cx, func, None);
    if checker.inst_ids(inst) {
        checker.inst(inst);
    }
    match checker.found.into_iter().next() {
        None => Ok(()),
        Some(violation) => Err(violation),
    }
}

/// A function being checked.
struct Checker<'a> {
    cx: &'a Context,
    types: &'a Types,
    func: &'a Func,
    module: Option<&'a Module>,
    /// These three are needed only for the rules about paths.
    cfg: Cfg,
    tree: DomTree,
    order: InstOrder,
    found: Vec<Violation>,
}

impl<'a> Checker<'a> {
    fn new(cx: &'a Context, func: &'a Func, module: Option<&'a Module>) -> Self {
        let (cfg, tree) = (Cfg::default(), DomTree::default());
        let (types, order, found) = (&cx.types, InstOrder::new(), Vec::new());
        Checker { cx, types, func, module, cfg, tree, order, found }
    }

    fn run(mut self) -> Result<(), Vec<Violation>> {
        self.ids();
        if self.found.is_empty() {
            self.structure();
            let has_paths = self.found.is_empty();
            self.signature();
            self.constants();
            for block in self.func.blocks() {
                for inst in self.func.block_insts(block) {
                    self.inst(inst);
                }
            }
            if has_paths {
                self.cfg = Cfg::compute(self.func);
                self.tree = DomTree::compute(&self.cfg);
                self.ssa();
                self.exceptions();
            }
        }
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }

    fn inst(&mut self, inst: Inst) {
        if !self.counts(inst) || !self.level(inst) {
            return;
        }
        match self.func.level {
            Level::High => self.high(inst),
            Level::Low => self.low(inst),
        }
    }

    fn report(&mut self, site: Site, rule: impl Into<Rule>) {
        if self.found.len() < MAX_VIOLATIONS {
            self.found.push(Violation { site, rule: rule.into() });
        }
    }

    fn at(&mut self, inst: Inst, rule: impl Into<Rule>) {
        self.report(Site::Inst(inst), rule);
    }

    // // ----- shared queries -----

    fn arg(&self, inst: Inst, n: usize) -> Option<Value> {
        self.func.args(inst).get(n).copied()
    }

    /// The type of an operand; for a missing one `Union{}`, which fits everywhere.
    fn arg_type(&self, inst: Inst, n: usize) -> Type {
        self.arg(inst, n).map_or(Type::BOTTOM, |v| self.func.ty(v))
    }

    fn arg_const(&self, inst: Inst, n: usize) -> Option<&'a Const> {
        self.func.as_const(self.arg(inst, n)?)
    }

    fn result_type(&self, inst: Inst) -> Option<Type> {
        self.func.result(inst).map(|v| self.func.ty(v))
    }

    /// Whether the value is certain to have the type. A type as a constant also has type `Type{T}`.
    fn fits(&self, value: Value, ty: Type) -> bool {
        self.types.is_subtype(self.func.ty(value), ty)
            || self.func.as_const(value).is_some_and(|constant| self.types.is_type_in(constant, ty))
    }
}
