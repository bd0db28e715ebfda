//! Escape analysis: objects that do not escape a function, and the fates of its arguments.
//!
//! ```text
//! f(r) = (t = new(Ref, 0); bump!(t, 1); r.x = t.x)          own: t stays inside     arguments: r written, not captured
//! g(r) = (t = new(Ref, 0); t.x = r; LAST[] = t)             own: t is captured      arguments: r captured
//! ```
//!
//! A *source* is an argument or a mutable object that the function makes. The *origin* of a value is the set of sources that it may be (or hold,
//! or point into, as a `MemoryRef` does), with one more element for everything else. Origins are spread over φ, π, copies and calls whose
//! results may be their arguments until nothing changes; they only grow, so this ends. Any use of a value that is not in the list of
//! `Flow::visit` captures its sources, which is always right.
//!
//! A field of a mutable struct is not part of its origin: a read yields a stored value, and a store captures its value. An
//! exception captures nothing, because it no longer exists if the function returns, and functions with their own handlers
//! are not analysed.
//!
//! Invariant: the origin of a value is complete after the last iteration; an instruction is queried only then.
//!
//! Cost: a few visits to each instruction, `MAX_ITERATIONS` at most; `None` beyond. Not done: telling which of two objects a
//! store writes when one of them is captured later; the objects that arguments hold.

use crate::rules::field_position;
use brolga_ir::analysis::Rpo;
use brolga_ir::builtin::Builtin;
use brolga_ir::effects::{ArgFlow, Effects, Regions, Summary, effects};
use brolga_ir::intrinsic::{Convert, Shape};
use brolga_ir::types::DeclKind;
use brolga_ir::{Callee, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// Origins propagate around a loop once for each φ that receives them over a back edge.
const MAX_ITERATIONS: usize = 8;

/// The element of an origin for everything that is not a source.
const OTHER: u64 = 1 << 63;

/// Sources beyond this number count as [`OTHER`].
const MAX_SOURCES: usize = 63;

pub(crate) struct Flow<'a> {
    func: &'a Func,
    types: &'a Types,
    /// Facts about the callees.
    callees: &'a FxHashMap<Callee, Summary>,
    /// By value; constants have none of their own.
    origins: SecondaryMap<Value, u64>,
    /// The sources that are arguments.
    arguments: u64,
    /// The sources that are objects of the function's own.
    own: u64,
    captured: u64,
    returned: u64,
    changed: bool,
}

impl<'a> Flow<'a> {
    /// Analyses a function without handlers.
    pub(crate) fn compute(
        func: &'a Func,
        types: &'a Types,
        rpo: &Rpo,
        callees: &'a FxHashMap<Callee, Summary>,
    ) -> Option<Flow<'a>> {
        let mut flow = Flow {
            func,
            types,
            callees,
            origins: SecondaryMap::new(),
            arguments: 0,
            own: 0,
            captured: 0,
            returned: 0,
            changed: false,
        };
        let mut sources = 0;
        for &param in func.params() {
            flow.origins[param] = OTHER;
            if sources < MAX_SOURCES {
                // A number is not an object: it cannot be held. An address may become a reference again.
                let ty = func.ty(param);
                if types.primitive(ty).is_none() || types.pointee(ty).is_some() {
                    flow.origins[param] = 1 << sources;
                }
                flow.arguments |= 1 << sources;
                sources += 1;
            }
        }
        let insts = || rpo.blocks().iter().flat_map(|&b| func.block_insts(b));
        for inst in insts() {
            let Some(result) = func.result(inst).filter(|_| makes_object(func, types, inst)) else {
                continue;
            };
            if sources < MAX_SOURCES {
                flow.origins[result] = 1 << sources;
                flow.own |= 1 << sources;
                sources += 1;
            }
        }
        for _ in 0..MAX_ITERATIONS {
            flow.changed = false;
            for inst in insts() {
                flow.visit(inst);
            }
            if !flow.changed {
                return Some(flow);
            }
        }
        None
    }

    fn callee(&self, callee: Callee) -> Summary {
        self.callees.get(&callee).copied().unwrap_or(Summary::ANY)
    }

    /// The sources that a value may be.
    fn origin(&self, value: Value) -> u64 {
        if self.func.as_const(value).is_some() { OTHER } else { self.origins[value] }
    }

    fn spread(&mut self, inst: Inst, origin: u64) {
        if let Some(result) = self.func.result(inst) {
            let new = self.origins[result] | origin;
            self.changed |= new != self.origins[result];
            self.origins[result] = new;
        }
    }

    fn capture(&mut self, origin: u64) {
        let new = self.captured | origin & !OTHER;
        self.changed |= new != self.captured;
        self.captured = new;
    }

    fn visit(&mut self, inst: Inst) {
        let func = self.func;
        let args = func.args(inst);
        let first = args.first().map_or(OTHER, |&v| self.origin(v));
        match func.op(inst) {
            Op::New(_) | Op::Builtin(Builtin::Memorynew) => {
                args.iter().for_each(|&v| self.capture(self.origin(v)));
                if !makes_object(func, self.types, inst) || self.is_beyond(inst) {
                    self.spread(inst, OTHER);
                }
            }
            Op::Phi | Op::Pi | Op::Copy => {
                let all = args.iter().fold(0, |all, &v| all | self.origin(v));
                self.spread(inst, all);
            }
            Op::Builtin(Builtin::Ifelse) => {
                let all = args.iter().skip(1).fold(0, |all, &v| all | self.origin(v));
                self.spread(inst, all);
            }
            // A reference into memory counts as the memory.
            Op::Builtin(Builtin::Typeassert | Builtin::Memoryrefnew) => self.spread(inst, first),
            Op::Builtin(Builtin::Getfield) => {
                let inside = args.first().is_none_or(|&v| !is_struct(self.types, func.ty(v)));
                let known = matches!(args, &[object, field, ..]
                    if field_position(func, self.types, func.ty(object), field).is_some());
                self.spread(inst, if inside || !known { first | OTHER } else { OTHER });
            }
            Op::Builtin(Builtin::Setfield | Builtin::Memoryrefset) => {
                // The value is the third operand of one and the second of the other; a field name is not an object.
                let rest = args.iter().skip(1).fold(0, |all, &v| all | self.origin(v));
                self.capture(rest);
                self.spread(inst, rest | OTHER);
            }
            Op::Builtin(
                Builtin::Isa
                | Builtin::Egal
                | Builtin::Typeof
                | Builtin::Isdefined
                | Builtin::Sizeof
                | Builtin::Nfields
                | Builtin::Arraylen
                | Builtin::Memoryrefget,
            )
            | Op::GcPreserveBegin
            | Op::GcPreserveEnd => self.spread(inst, OTHER),
            // An address counts as the object it points into, until it becomes a number.
            Op::Intrinsic(op) => match op.shape() {
                Shape::PtrOffset => self.spread(inst, first),
                Shape::Convert(Convert::Bits) if self.gives_address(inst) => self.spread(inst, first),
                Shape::PtrLoad | Shape::IntCompare => self.spread(inst, OTHER),
                Shape::PtrStore => {
                    args.iter().skip(1).for_each(|&v| self.capture(self.origin(v)));
                    self.spread(inst, first);
                }
                _ => {
                    args.iter().for_each(|&v| self.capture(self.origin(v)));
                    self.spread(inst, OTHER);
                }
            },
            Op::Return => {
                self.changed |= self.returned | first != self.returned;
                self.returned |= first;
            }
            Op::Invoke(callee) => {
                let flow = self.callee(callee).args;
                let mut result = OTHER;
                for (n, &arg) in args.iter().enumerate() {
                    let origin = self.origin(arg);
                    if flow.captures(n) {
                        self.capture(origin);
                    }
                    if flow.returns(n) {
                        result |= origin;
                    }
                }
                self.spread(inst, result);
            }
            _ => {
                args.iter().for_each(|&v| self.capture(self.origin(v)));
                self.spread(inst, OTHER);
            }
        }
    }

    fn gives_address(&self, inst: Inst) -> bool {
        self.func.result(inst).is_some_and(|v| self.types.pointee(self.func.ty(v)).is_some())
    }

    /// Whether an object has no number, because there are too many.
    fn is_beyond(&self, inst: Inst) -> bool {
        self.func.result(inst).is_some_and(|v| self.origins[v] & self.own == 0)
    }

    /// The objects that no other code holds while the function runs.
    fn inside(&self) -> u64 {
        self.own & !self.captured
    }

    /// The effects of an instruction for observers that cannot see the objects inside, and the sources that it writes.
    pub(crate) fn seen(&self, inst: Inst) -> (Effects, ArgFlow) {
        let all = match self.func.op(inst) {
            Op::Invoke(callee) => self.callee(callee).effects,
            _ => effects(self.func, self.types, inst),
        };
        let args = self.func.args(inst);
        let first = args.first().map_or(OTHER, |&v| self.origin(v));
        let nothing = ArgFlow::NONE;
        let is_inside = |origin: u64| origin & !self.inside() == 0;
        let unseen = Effects {
            consistent: true,
            effect_free: true,
            notaskstate: true,
            inaccessiblememonly: true,
            reads: Regions::NONE,
            writes: Regions::NONE,
            ..all
        };
        match self.func.op(inst) {
            _ if all.fence => (all, ArgFlow { elsewhere: !all.effect_free, ..nothing }),
            Op::New(_) | Op::Builtin(Builtin::Memorynew) => {
                let own = self.func.result(inst).map_or(OTHER, |v| self.origins[v]);
                let kept = is_inside(own) && own & self.returned == 0;
                (if kept { unseen } else { all }, nothing)
            }
            Op::Builtin(Builtin::Getfield | Builtin::Memoryrefget | Builtin::Isdefined)
                if is_inside(first) && is_object(self.types, self.func, args) =>
            {
                (unseen, nothing)
            }
            Op::Builtin(Builtin::Setfield | Builtin::Memoryrefset) => match first {
                _ if is_inside(first) => (unseen, nothing),
                _ if first & !(self.inside() | self.arguments) == 0 => {
                    (all, ArgFlow { written: first & self.arguments, ..nothing })
                }
                _ => (all, ArgFlow { elsewhere: true, ..nothing }),
            },
            Op::Invoke(callee) => {
                let flow = self.callee(callee).args;
                let written = args.iter().enumerate().filter(|&(n, _)| flow.writes(n));
                let written = written.fold(0, |all, (_, &v)| all | self.origin(v));
                if flow.elsewhere || written & !(self.inside() | self.arguments) != 0 {
                    (all, ArgFlow { elsewhere: !all.effect_free, ..nothing })
                } else if written & self.arguments == 0 {
                    (Effects { effect_free: true, writes: Regions::NONE, ..all }, nothing)
                } else {
                    (all, ArgFlow { written: written & self.arguments, ..nothing })
                }
            }
            _ => (all, ArgFlow { elsewhere: !all.effect_free, ..nothing }),
        }
    }

    /// The fate of the arguments, given the effects of all instructions.
    pub(crate) fn arguments(&self, seen: ArgFlow) -> ArgFlow {
        let beyond = if self.func.params().len() > MAX_SOURCES { !self.arguments } else { 0 };
        ArgFlow {
            captured: self.captured & self.arguments | beyond,
            returned: self.returned & self.arguments | beyond,
            written: seen.written | beyond,
            elsewhere: seen.elsewhere,
        }
    }
}

/// Whether an instruction makes a mutable object of its own.
fn makes_object(func: &Func, types: &Types, inst: Inst) -> bool {
    match func.op(inst) {
        Op::New(ty) => is_struct(types, ty),
        Op::Builtin(Builtin::Memorynew) => true,
        _ => false,
    }
}

/// Whether all objects of a type are structs that hold only the values stored to their fields.
fn is_struct(types: &Types, ty: Type) -> bool {
    types.is_concrete(ty) && matches!(types.nominal_kind(ty), Some(DeclKind::Struct { mutable: true, .. }))
}

/// Whether a read accesses the first operand's object itself (or the one it points into), and not an object that it refers
/// to.
fn is_object(types: &Types, func: &Func, args: &[Value]) -> bool {
    let ty = args.first().map_or(Type::ANY, |&v| func.ty(v));
    is_struct(types, ty) || types.memory_ref_element(ty).is_some()
}
