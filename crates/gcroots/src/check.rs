//! The rules of pointer classes that placement relies on.
//!
//! Properties of a single instruction (casts, address arithmetic, stored and returned values, operands of the
//! `args` convention) are checked by the verifier of `brolga-ir`. This file has the rules that need more
//! context, or that only placement needs:
//!
//! | code | rule | otherwise |
//! |---|---|---|
//! | `class-callee-rooted` | a callee-rooted pointer is passed to a call, and has no other use | it is not rooted |
//! | `class-no-base` | a derived, callee-rooted or loaded pointer is computed from another pointer, and is neither a parameter nor a call result | its owner is unknown |
//! | `class-hidden` | a tracked pointer is not stored into a stack slot for bits | the collector does not look there |
//! | `class-slot` | a stack slot for a reference is read and written, and its address used for nothing else | it moves into the frame |

use brolga_ir::builtin::Builtin;
use brolga_ir::diag::{Diagnostic, Finding, Span};
use brolga_ir::func::ValueDef;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::verify::Site;
use brolga_ir::{Func, Inst, LowType, Op, PtrClass, Slot, Value};
use std::fmt;

/// The maximum number of violations reported per function.
pub const MAX_VIOLATIONS: usize = 100;

/// A broken rule of pointer classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// `class-callee-rooted`: this operand is callee-rooted, and the instruction is not a call.
    CalleeRooted {
        /// The operand's number, from 0.
        operand: usize,
    },
    /// `class-no-base`: a pointer of this class has no base that it was computed from.
    NoBase { class: PtrClass },
    /// `class-hidden`: a tracked pointer is stored into a slot for bits.
    Hidden { slot: Slot },
    /// `class-slot`: the address of a slot for a reference is used for something other than accessing it.
    SlotUsed { slot: Slot },
}

impl Finding for Rule {
    fn code(&self) -> &'static str {
        match self {
            Rule::CalleeRooted { .. } => "class-callee-rooted",
            Rule::NoBase { .. } => "class-no-base",
            Rule::Hidden { .. } => "class-hidden",
            Rule::SlotUsed { .. } => "class-slot",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Rule::CalleeRooted { operand } => {
                write!(f, "operand {operand} is callee-rooted, and only calls take such pointers")
            }
            Rule::NoBase { class } => {
                let name = LowType::Ptr(class).name();
                write!(f, "a pointer of class `{name}` is made here, and nothing says what keeps it alive")
            }
            Rule::Hidden { slot } => {
                write!(
                    f,
                    "an object is stored into slot {}, where the collector does not look",
                    slot.as_u32()
                )
            }
            Rule::SlotUsed { slot } => {
                let slot = slot.as_u32();
                write!(
                    f,
                    "slot {slot} holds a reference, and its address is used for more than reading and writing it"
                )
            }
        }
    }
}

/// A broken rule and the instruction that breaks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// `None`: an argument breaks it.
    pub inst: Option<Inst>,
    pub rule: Rule,
}

impl Violation {
    /// The violation as a diagnostic; `span` maps the function's sites to the displayed text.
    pub fn diagnostic(&self, span: &dyn Fn(Site) -> Span) -> Diagnostic {
        Diagnostic::error(&self.rule, span(self.inst.map_or(Site::Func, Site::Inst)))
    }
}

/// Checks the rules of this file in a function that satisfies the rules of low IR.
pub fn classes(func: &Func) -> Result<(), Vec<Violation>> {
    let mut found = Vec::new();
    for &param in func.params() {
        if let Some(class @ (PtrClass::Derived | PtrClass::CalleeRooted | PtrClass::Loaded)) =
            func.ty(param).ptr_class()
        {
            found.push(Violation { inst: None, rule: Rule::NoBase { class } });
        }
    }
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            operands(func, inst, &mut found);
            results(func, inst, &mut found);
        }
    }
    found.truncate(MAX_VIOLATIONS);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// The slot whose address the value is.
fn slot(func: &Func, value: Value) -> Option<Slot> {
    match func.value_def(value) {
        ValueDef::Result(inst, _) => match func.op(inst) {
            Op::SlotAddr(slot) => Some(slot),
            _ => None,
        },
        _ => None,
    }
}

fn operands(func: &Func, inst: Inst, found: &mut Vec<Violation>) {
    let op = func.op(inst);
    let mut report = |rule| found.push(Violation { inst: Some(inst), rule });
    for (operand, &value) in func.args(inst).iter().enumerate() {
        if func.ty(value).ptr_class() == Some(PtrClass::CalleeRooted) {
            let passed = matches!(
                op,
                Op::CallSymbol(_) | Op::CallRuntime(_) | Op::ForeignCall(_) | Op::Phi | Op::Copy
            ) || matches!(op, Op::Intrinsic(Intrinsic::Bitcast) | Op::Builtin(Builtin::Ifelse));
            if !passed {
                report(Rule::CalleeRooted { operand });
            }
        }
        let Some(slot) = slot(func, value) else { continue };
        if func.slot(slot).tracked {
            let accessed = matches!(op, Op::Load(a) | Op::Store(a) if operand == 0 && a.offset == 0);
            if !accessed {
                report(Rule::SlotUsed { slot });
            }
        } else if let (Op::Store(_), 0) = (op, operand)
            && func.args(inst).get(1).is_some_and(|&v| func.ty(v).ptr_class() == Some(PtrClass::Tracked))
        {
            report(Rule::Hidden { slot });
        }
    }
}

fn results(func: &Func, inst: Inst, found: &mut Vec<Violation>) {
    let op = func.op(inst);
    for value in func.results(inst) {
        let Some(class) = func.ty(value).ptr_class() else { continue };
        let has_base = match class {
            PtrClass::Raw | PtrClass::Tracked => true,
            PtrClass::Loaded if matches!(op, Op::Load(_) | Op::GcLoaded) => true,
            _ => matches!(
                op,
                Op::Copy
                    | Op::Phi
                    | Op::Builtin(Builtin::Ifelse)
                    | Op::Intrinsic(Intrinsic::Bitcast | Intrinsic::AddPtr | Intrinsic::SubPtr)
            ),
        };
        if !has_base {
            found.push(Violation { inst: Some(inst), rule: Rule::NoBase { class } });
        }
    }
}
