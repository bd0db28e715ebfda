//! From high IR to low IR: the one pass that knows both levels.
//!
//! ```text
//! function f(p::Tuple{Int64, Float64}, x::Int8)::Int64       f(i64, f64, i8) -> i64
//! %1 = getfield(p, 1)::Int64                            ──►  (a leaf of p, no instruction)
//! %2 = checked_sdiv_int(%1, 3)::Int64                        v1 = sdiv_int %p.0, 3
//! return %2                                                  return v1
//! ```
//!
//! **Values.** Every high value becomes its leaves, the registers of `brolga_ir::abi`; larger ones become the address of
//! memory that nobody changes while the value lives. A statement's result may go on with a narrower type than it declares (see
//! `value`). The slot of a value in memory form is written once for each execution of its statement. A value that
//! survives into the next round of a loop does so through a φ, and a φ in memory form has two slots of its own: predecessors
//! copy into the first, the head of the block copies that to the second. So no copy destroys what another still reads,
//! whatever the φs exchange among themselves.
//!
//! **Control.** Blocks keep their order; a check that may throw splits its block, and the throw goes to the end of the function.
//! Blocks are visited in reverse postorder, so that a value is known before its uses; the operands of φs come last,
//! at the ends of the predecessors. Unreachable blocks are dropped.
//!
//! **Safepoints.** One at every loop head (the target of an edge that goes back in reverse postorder, so every cycle has
//! one) and one at the entry of every function that calls compiled code, so that recursion has one. A function that
//! neither loops nor calls has none.
//!
//! **Refused** is what needs the heap: mutable objects, arrays, `Any`, unions with objects in them; and exception
//! handlers. All reasons are collected; see `error`. A refused value refuses what uses it, silently.
//!
//! **Dropped** because nothing depends on it natively: `gc_preserve` (there is nothing to keep), coverage, loop notes,
//! `donotdelete`.
//!
//! Cost: one visit of each statement and φ edge. What a statement becomes is bounded by its operands and the limits named in
//! `abi`, `identity` and `aggregate`. Recursion follows the nesting of types only.
//!
//! | file | what it lowers |
//! |---|---|
//! | `scalar`, `atomic` | intrinsics |
//! | `aggregate`, `identity` | builtins |
//! | `call`, `base` | calls, throws, printing |
//! | `value`, `union`, `memory` | the forms of values |
//! | `build` | emitting |

mod aggregate;
mod atomic;
mod base;
mod build;
mod call;
mod error;
mod identity;
mod memory;
mod scalar;
#[cfg(test)]
mod tests;
mod union;
mod value;

pub use error::{At, LowerError, LowerErrors, Refusal};

use brolga_ir::abi::{Form, NativeSignature, NotNative, Position};
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::func::{Place, Signature};
use brolga_ir::module::method_symbol;
use brolga_ir::{
    Block, Const, Context, Func, FuncId, Inst, Level, Module, Name, Op, Slot, Type, Types, Value,
};
use call::Target;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::rc::Rc;
use value::Val;

/// What is chosen about lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether safepoints are placed. Without them a thread cannot be stopped inside compiled code.
    pub safepoints: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { safepoints: true }
    }
}

/// The low form of a high function of `module`. A low function is returned as it is.
pub fn lower(module: &Module, func: &Func, options: &Options) -> Result<Func, LowerErrors> {
    Unit::new(module).lower(func, options)
}

/// The low forms of all functions of a module, in order.
pub fn lower_module(module: &Module, options: &Options) -> Vec<(FuncId, Result<Func, LowerErrors>)> {
    let unit = Unit::new(module);
    module.funcs().map(|(id, func)| (id, unit.lower(func, options))).collect()
}

/// A module and what is asked about it as a whole.
struct Unit<'a> {
    module: &'a Module,
    /// The global variables that some function assigns.
    assigned: OnceCell<FxHashSet<Name>>,
}

impl<'a> Unit<'a> {
    fn new(module: &'a Module) -> Self {
        Self { module, assigned: OnceCell::new() }
    }

    fn is_assigned(&self, name: Name) -> bool {
        let assigns = |func: &Func, inst: Inst| match func.op(inst) {
            Op::Builtin(
                Builtin::Setglobal
                | Builtin::Swapglobal
                | Builtin::Modifyglobal
                | Builtin::Replaceglobal
                | Builtin::Setglobalonce,
            ) => func.args(inst).get(1).and_then(|&v| match func.as_const(v) {
                Some(Const::Symbol(name)) => Some(*name),
                _ => None,
            }),
            _ => None,
        };
        let all = self.assigned.get_or_init(|| {
            let funcs = self.module.funcs().map(|(_, func)| func);
            funcs
                .flat_map(|f| f.blocks().flat_map(|b| f.block_insts(b)).filter_map(move |i| assigns(f, i)))
                .collect()
        });
        all.contains(&name)
    }

    fn lower(&self, func: &Func, options: &Options) -> Result<Func, LowerErrors> {
        if func.level == Level::Low {
            return Ok(func.clone());
        }
        let cx = &self.module.cx;
        let types: Vec<Type> = func.sig.params.iter().map(|p| p.ty).collect();
        let symbol = match types.split_first() {
            Some((&function, args)) => method_symbol(cx, function, args),
            None => cx.names.text(func.name).to_owned(),
        };
        let (sig, refused) = match NativeSignature::new(&cx.types, &func.sig) {
            Ok(sig) => (Some(sig), Vec::new()),
            Err(refused) => (None, refused),
        };
        let low = sig.as_ref().map_or_else(Signature::default, NativeSignature::low);
        let mut lowering = Lowering {
            unit: self,
            cx,
            types: &cx.types,
            src: func,
            out: Func::new(cx.names.intern(&symbol), Level::Low, low),
            forms: FxHashMap::default(),
            known: SecondaryMap::with_capacity(func.value_count()),
            pool: Vec::new(),
            data: FxHashMap::default(),
            targets: FxHashMap::default(),
            heads: SecondaryMap::with_capacity(func.block_count()),
            tails: SecondaryMap::with_capacity(func.block_count()),
            phis: Vec::new(),
            cur: Block::from_u32(0),
            before: None,
            at: Inst::from_u32(0),
            place: Place::default(),
            handlers: false,
            calls: false,
            errors: Vec::new(),
        };
        lowering.refuse_signature(refused);
        lowering.params(sig.is_some());
        lowering.body(*options);
        if lowering.errors.is_empty() {
            Ok(lowering.out)
        } else {
            Err(LowerErrors { function: symbol, errors: lowering.errors })
        }
    }
}

/// An error was noted; there is nothing to go on with.
#[derive(Clone, Copy, Debug)]
struct Reported;

/// What a step of lowering gives.
type Step<T> = Result<T, Reported>;

/// What is known of a high value.
#[derive(Clone, Copy, Debug, Default)]
enum Known {
    /// Nothing: it was not reached yet.
    #[default]
    Nothing,
    /// Its leaves are a range of the pool.
    Leaves { ty: Type, start: u32, count: u8 },
    /// It has no native form, and this was said.
    Refused,
    /// It is an exception, made by this statement, that may only be thrown.
    Exception(Inst),
}

/// A φ whose operands are still to come.
struct PendingPhi {
    src: Inst,
    ty: Type,
    /// One φ for each leaf, or none for a value in memory form.
    low: SmallVec<[Inst; 4]>,
    /// The slot that predecessors copy a value in memory form to.
    memory: Option<(Slot, u32)>,
}

/// One function on its way.
struct Lowering<'a> {
    unit: &'a Unit<'a>,
    cx: &'a Context,
    types: &'a Types,
    src: &'a Func,
    out: Func,
    forms: FxHashMap<Type, Result<Rc<Form>, NotNative>>,
    known: SecondaryMap<Value, Known>,
    pool: Vec<Value>,
    /// Constants that became bytes.
    data: FxHashMap<Value, u32>,
    targets: FxHashMap<FuncId, Target>,
    /// Where a high block begins, and where its terminator stands.
    heads: SecondaryMap<Block, PackedOption<Block>>,
    tails: SecondaryMap<Block, PackedOption<Block>>,
    phis: Vec<PendingPhi>,
    /// The block that is being filled, and the instruction to stay in front of.
    cur: Block,
    before: Option<Inst>,
    /// The statement that is being lowered, and its place.
    at: Inst,
    place: Place,
    /// Whether there is an `enter`, so that what belongs to it is not mentioned.
    handlers: bool,
    /// Whether compiled code is called.
    calls: bool,
    errors: Vec<LowerError>,
}

impl Lowering<'_> {
    // ----- errors -----

    fn report(&mut self, why: Refusal) -> Reported {
        self.report_at(self.at, why)
    }

    fn report_at(&mut self, inst: Inst, why: Refusal) -> Reported {
        let error = LowerError { at: At::Inst(inst), place: self.src.place(inst), why };
        if self.errors.last() != Some(&error) {
            self.errors.push(error);
        }
        Reported
    }

    fn refuse_signature(&mut self, refused: Vec<(Position, NotNative)>) {
        let first = self.src.entry().and_then(|b| self.src.first_inst(b));
        let place = first.map_or_else(Place::default, |i| self.src.place(i));
        for (position, why) in refused {
            let at = match position {
                Position::Argument(n) => At::Argument(n),
                Position::Result => At::Result,
            };
            let why = self.refusal_of(why);
            self.errors.push(LowerError { at, place, why });
        }
    }

    /// The name of the current operation, for messages.
    fn op_name(&self) -> String {
        match self.src.op(self.at) {
            Op::Intrinsic(op) => op.to_string(),
            Op::Builtin(op) => op.to_string(),
            Op::Phi => "φ".to_owned(),
            Op::Pi => "π".to_owned(),
            Op::New(ty) => format!("%new({})", self.types.display(ty)),
            Op::SplatNew(ty) => format!("%splatnew({})", self.types.display(ty)),
            Op::Invoke(_) => "invoke".to_owned(),
            Op::ForeignCall(_) => "foreigncall".to_owned(),
            Op::Branch => "goto if not".to_owned(),
            Op::Return => "return".to_owned(),
            other => format!("{other:?}"),
        }
    }

    // ----- the walk -----

    fn params(&mut self, native: bool) {
        let src = self.src;
        let low: Vec<Value> = self.out.params().to_vec();
        let memory = src.sig.results.first().is_some_and(|&r| self.find_form(r).is_ok_and(|f| f.is_memory()));
        let mut next = usize::from(memory);
        for (param, &value) in src.sig.params.iter().zip(src.params()) {
            let Ok(form) = self.find_form(param.ty) else {
                self.known[value] = Known::Refused;
                continue;
            };
            let range = next..next + form.leaves.len();
            next = range.end;
            let leaves = match low.get(range) {
                Some(leaves) if native => leaves.into(),
                // The function is refused anyway; the walk goes on to find all reasons.
                _ => form.low_types().map(|ty| self.out.constant(Const::Undef(ty))).collect(),
            };
            self.set(value, &Val { ty: param.ty, leaves });
        }
    }

    fn body(&mut self, options: Options) {
        let src = self.src;
        let cfg = Cfg::compute(src);
        let rpo = Rpo::compute(&cfg);
        for block in src.blocks().filter(|&b| rpo.is_reachable(b)) {
            let head = self.out.make_block();
            self.out.append_block(head);
            self.heads[block] = head.into();
        }
        if rpo.blocks().is_empty() {
            self.report(Refusal::Malformed { what: "the function has no blocks" });
        }
        self.handlers =
            rpo.blocks().iter().any(|&b| src.terminator(b).is_some_and(|t| src.op(t) == Op::Enter));
        for &block in rpo.blocks() {
            let Some(head) = self.heads[block].expand() else { continue };
            self.cur = head;
            let back = |&pred: &Block| rpo.position(pred) >= rpo.position(block) && rpo.is_reachable(pred);
            let is_loop_head = cfg.preds(block).iter().any(back);
            self.block(block, options.safepoints && is_loop_head);
        }
        self.phi_edges();
        if options.safepoints && self.calls {
            let first = self.out.entry().and_then(|b| self.out.first_inst(b));
            self.before = first;
            self.place = first.map_or_else(Place::default, |i| self.out.place(i));
            self.emit(Op::Safepoint, &[], &[]);
        }
    }

    fn block(&mut self, block: Block, safepoint: bool) {
        let src = self.src;
        let phis = src.block_insts(block).take_while(|&i| src.op(i) == Op::Phi);
        let first_pending = self.phis.len();
        for phi in phis {
            self.go_to(phi);
            let done = self.phi();
            self.finish_inst(done);
        }
        self.settle_phis(first_pending);
        if safepoint {
            self.emit(Op::Safepoint, &[], &[]);
        }
        let mut ended = false;
        for inst in src.block_insts(block) {
            let op = src.op(inst);
            self.go_to(inst);
            if op.is_terminator() {
                self.tails[block] = self.cur.into();
                ended = true;
            }
            let done = match op {
                // A value may stand between the φs of a block; φs were lowered before.
                Op::Phi if matches!(src.result(inst).map(|r| self.known[r]), Some(Known::Nothing)) => {
                    let done = self.phi();
                    self.settle_phis(self.phis.len().saturating_sub(1));
                    done
                }
                Op::Phi => continue,
                _ => self.inst(op),
            };
            self.finish_inst(done);
        }
        if !ended {
            self.report(Refusal::Malformed { what: "a block does not end in a terminator" });
        }
    }

    fn go_to(&mut self, inst: Inst) {
        self.at = inst;
        self.place = self.src.place(inst);
    }

    /// A statement that was refused, or gave nothing, has no value for others.
    fn finish_inst(&mut self, done: Step<()>) {
        if done.is_err()
            && let Some(result) = self.src.result(self.at)
        {
            self.known[result] = Known::Refused;
        }
    }

    // ----- φ -----

    fn phi(&mut self) -> Step<()> {
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let ty = self.src.ty(result);
        let form = self.form(ty)?;
        let mut pending = PendingPhi { src: self.at, ty, low: SmallVec::new(), memory: None };
        if form.is_memory() {
            pending.memory = Some((self.slot(form.size, form.align), form.size));
        } else {
            pending.low = form.low_types().map(|low| self.emit(Op::Phi, &[], &[low])).collect();
            let leaves = pending.low.iter().filter_map(|&phi| self.out.result(phi)).collect();
            self.set(result, &Val { ty, leaves });
        }
        self.phis.push(pending);
        Ok(())
    }

    /// Behind the φs of a block: those in memory form are copied from where the predecessors put them.
    fn settle_phis(&mut self, first: usize) {
        for n in first..self.phis.len() {
            let PendingPhi { src, ty, memory: Some((from, size)), .. } = self.phis[n] else { continue };
            self.go_to(src);
            let align = self.out.slot(from).align_log2;
            let own = self.slot(size, 1 << align);
            let (to, from) = (self.slot_addr(own), self.slot_addr(from));
            self.copy_bytes(to, from, size);
            if let Some(result) = self.src.result(src) {
                self.set(result, &Val::scalar(ty, to));
            }
        }
    }

    fn phi_edges(&mut self) {
        let src = self.src;
        for pending in std::mem::take(&mut self.phis) {
            self.go_to(pending.src);
            for (pred, value) in src.phi_edges(pending.src) {
                let Some(tail) = self.tails.get(pred).and_then(|t| t.expand()) else { continue };
                // Undefined on this path, and then not used.
                if matches!(src.as_const(value), Some(Const::Undef(_))) {
                    continue;
                }
                self.cur = tail;
                self.before = self.out.terminator(tail);
                // What cannot be converted was reported.
                let _ = self.phi_edge(&pending, value);
            }
        }
        self.before = None;
    }

    fn phi_edge(&mut self, pending: &PendingPhi, value: Value) -> Step<()> {
        let val = self.val(value)?;
        let val = self.convert(val, pending.ty)?;
        if let (Some((slot, size)), &[from]) = (pending.memory, &val.leaves[..]) {
            let to = self.slot_addr(slot);
            self.copy_bytes(to, from, size);
        }
        for (&phi, &leaf) in pending.low.iter().zip(&val.leaves) {
            self.out.add_phi_edge(phi, self.cur, leaf);
        }
        Ok(())
    }

    // ----- statements -----

    fn inst(&mut self, op: Op) -> Step<()> {
        match op {
            Op::Intrinsic(op) => self.intrinsic(op),
            Op::Builtin(op) => self.builtin(op),
            Op::Copy | Op::Pi => self.pass_on(),
            Op::Invoke(callee) => self.invoke(callee),
            Op::ForeignCall(foreign) => self.foreign_call(foreign),
            Op::New(ty) => self.new_struct(ty),
            Op::SplatNew(ty) => self.splat_new(ty),
            Op::GetGlobal(name) => self.global(name),
            Op::ThrowUndefIfNot(name) => self.throw_undef_if_not(name),
            Op::BoundsCheck(on) => {
                let on = self.truth(on);
                self.define(Val::scalar(Type::BOOL, on))
            }
            // A token is never used as a value natively.
            Op::GcPreserveBegin => Ok(()),
            Op::GcPreserveEnd | Op::LoopInfo(_) | Op::CodeCoverage => self.define(Val::ghost(Type::NOTHING)),
            Op::Goto | Op::Branch | Op::Return | Op::Unreachable => self.terminator(op),
            Op::Enter => {
                // Nothing runs; the walk goes on to find all reasons.
                self.terminate(Op::Unreachable, &[], &[]);
                Err(self.report(Refusal::TryCatch { what: "`enter`" }))
            }
            Op::Leave | Op::TheException | Op::PopException | Op::Upsilon | Op::PhiC if self.handlers => {
                Err(Reported)
            }
            Op::Leave => Err(self.report(Refusal::TryCatch { what: "`leave`" })),
            Op::TheException => Err(self.report(Refusal::TryCatch { what: "`the_exception`" })),
            Op::PopException => Err(self.report(Refusal::TryCatch { what: "`pop_exception`" })),
            Op::Upsilon | Op::PhiC => Err(self.report(Refusal::TryCatch { what: "`φᶜ`" })),
            Op::Call if self.has_refused_operand() => Err(Reported),
            Op::Call => {
                Err(self.report(Refusal::Heap { what: "a call that is dispatched at run time".to_owned() }))
            }
            Op::StaticParameter(_) => {
                Err(self.report(Refusal::Unsupported { what: "a static parameter".to_owned() }))
            }
            Op::Phi
            | Op::Load(_)
            | Op::Store(_)
            | Op::AtomicLoad(_)
            | Op::AtomicStore(_)
            | Op::AtomicRmw(..)
            | Op::AtomicCas(_)
            | Op::SlotAddr(_)
            | Op::MemCopy
            | Op::CallSymbol(_)
            | Op::CallRuntime(_)
            | Op::Safepoint => {
                Err(self
                    .report(Refusal::Malformed { what: "an operation of low IR stands in a high function" }))
            }
        }
    }

    /// The operand itself, as one of the result's type.
    fn pass_on(&mut self) -> Step<()> {
        let value = self.arg(0)?;
        let val = self.val(value)?;
        let Some(result) = self.src.result(self.at) else { return Ok(()) };
        let (declared, wanted) = (self.src.ty(value), self.src.ty(result));
        // The operand is known to be another member of its union: a test before has said so, and control never gets here.
        let dead = self.types.is_disjoint(val.ty, wanted) && !self.types.is_disjoint(declared, wanted);
        let val = if dead { self.undefined(wanted)? } else { val };
        self.define(val)
    }

    fn builtin(&mut self, op: Builtin) -> Step<()> {
        match op {
            Builtin::Egal => self.egal(),
            Builtin::Typeof => self.typeof_(),
            Builtin::Isa => self.isa(),
            Builtin::Typeassert => self.typeassert(),
            Builtin::Subtype => self.subtype(),
            Builtin::Sizeof => self.sizeof(),
            Builtin::Nfields => self.nfields(),
            Builtin::Fieldtype => self.fieldtype(),
            Builtin::Isdefined => self.isdefined(),
            Builtin::Tuple => self.tuple(),
            Builtin::Getfield => self.getfield(),
            Builtin::Getglobal => self.getglobal(),
            Builtin::Throw => self.throw_value(),
            Builtin::Ifelse => self.ifelse(),
            Builtin::Donotdelete => self.define(Val::ghost(Type::NOTHING)),
            Builtin::Compilerbarrier => {
                let val = self.operand(1)?;
                self.define(val)
            }
            Builtin::Blackbox => {
                let val = self.operand(0)?;
                self.define(val)
            }
            _ if self.has_refused_operand() => Err(Reported),
            Builtin::Setglobal
            | Builtin::Swapglobal
            | Builtin::Modifyglobal
            | Builtin::Replaceglobal
            | Builtin::Setglobalonce => {
                let what = "assigning a global variable".to_owned();
                Err(self.report(Refusal::Unsupported { what }))
            }
            _ => Err(match op.refusal() {
                Some(why) => self.report(Refusal::Refused { why }),
                None => self.report(Refusal::Heap { what: format!("`{op}`") }),
            }),
        }
    }

    /// `getglobal(Module, :name)`.
    fn getglobal(&mut self) -> Step<()> {
        let name = self.arg(1)?;
        match self.src.as_const(name) {
            Some(&Const::Symbol(name)) => self.global(name),
            _ => Err(self.bad_operands()),
        }
    }

    /// A global variable that nothing assigns is its first value.
    fn global(&mut self, name: Name) -> Step<()> {
        let module = self.unit.module;
        match module.global(name) {
            Some(global) if !self.unit.is_assigned(name) => {
                let val = self.literal(&global.init)?;
                self.define(val)
            }
            _ => {
                let name = self.cx.names.text(name).to_owned();
                Err(self.report(Refusal::Global { name }))
            }
        }
    }

    fn terminator(&mut self, op: Op) -> Step<()> {
        let src = self.src;
        let targets: SmallVec<[Block; 2]> =
            src.inst_blocks(self.at).iter().filter_map(|&b| self.heads.get(b)?.expand()).collect();
        if targets.len() != op.target_count() {
            return Err(self.report(Refusal::Malformed { what: "a branch to a block that does not exist" }));
        }
        match op {
            Op::Branch => {
                let (truth, ty) = self.scalar_operand(0)?;
                if ty != Type::BOOL {
                    return Err(self.bad_operands());
                }
                self.terminate(op, &[truth], &targets);
            }
            Op::Return => {
                let val = self.operand(0)?;
                let ty = src.sig.results.first().copied().unwrap_or(Type::NOTHING);
                let val = match self.find_form(ty) {
                    Ok(_) => self.convert(val, ty)?,
                    // The signature was refused.
                    Err(_) => return Err(Reported),
                };
                let form = self.form(ty)?;
                match (form.is_memory(), &val.leaves[..], self.out.params().first()) {
                    (true, &[from], Some(&to)) => {
                        self.copy_bytes(to, from, form.size);
                        self.terminate(op, &[], &[]);
                    }
                    _ => self.terminate(op, &val.leaves, &[]),
                }
            }
            _ => self.terminate(op, &[], &targets),
        }
        Ok(())
    }
}
