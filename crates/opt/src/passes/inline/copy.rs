//! Copies a callee's body into a caller.
//!
//! ```text
//! b: …                                     b: …
//!    %r = invoke f(x, y)        ==>           goto e'
//!    rest                                  e': body with x, y for its arguments …   return v  →  goto t
//!                                          t: %r = φ (all blocks that returned)
//!                                             rest
//! ```
//!
//! A body of one block goes before the call, and the block is not cut. Values are renamed through a table; constants,
//! callees and C signatures are registered again in the caller. Instructions keep the lines that they have in the
//! callee, and record the call ([`InlinedCall`]).
//!
//! [`copy_apart`] does only the first half: blocks without predecessors, which keep their returns.
//!
//! Cost: linear in the callee, plus the instructions after the call, which move to a new block.

use crate::refit::{differs, refit};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::func::{CalleeData, CopiedPlaces, InlinedCall};
use brolga_ir::types::StaticBound;
use brolga_ir::{Block, Callee, Context, Foreign, Func, Inst, Meta, Op, Type, Types, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::{SmallVec, smallvec};

/// The result of a copy.
pub(in crate::passes) struct Copied {
    /// The result of the call. `None` if the body never returns.
    pub(in crate::passes) result: Option<Value>,
    /// The calls in the copy, in order.
    pub(in crate::passes) calls: Vec<Inst>,
    /// How many instructions were copied.
    pub(in crate::passes) insts: usize,
    /// The block that now ends as the call's block did, if that was cut.
    pub(in crate::passes) tail: Option<Block>,
}

/// Copies `callee` to the place of `call` in `caller` and removes the call. `args` are the values of the callee's
/// parameters, and `result` is the type of the call's result.
pub(in crate::passes) fn copy_body(
    caller: &mut Func,
    callee: &Func,
    cx: &Context,
    call: Inst,
    args: &[Value],
    result: Type,
) -> Option<Copied> {
    let home = caller.inst_block(call)?;
    let entry = callee.entry()?;
    let Op::Invoke(id) = caller.op(call) else { return None };
    let statics = bound_statics(callee, &cx.types, caller.callee(id))?;
    let mut copy = Copy::new(callee, cx, args);
    copy.statics = statics;
    let place = caller.place(call);
    let replaced = InlinedCall { callee: caller.callee(id).clone(), at: place.at, within: place.inlined() };
    copy.places = CopiedPlaces::in_place_of(caller, replaced);
    let straight = callee.next_block(entry).is_none()
        && callee.terminator(entry).is_some_and(|t| callee.op(t) == Op::Return);
    if straight {
        for inst in callee.block_insts(entry) {
            if callee.op(inst) != Op::Return {
                let new = copy.make(caller, inst);
                caller.insert_before(new, call);
            }
        }
        copy.fill(caller, None);
        let value = callee.terminator(entry).and_then(|t| callee.args(t).first().copied());
        let value = value.map(|v| copy.value(caller, v));
        caller.remove_inst(call);
        return Some(Copied { result: value, calls: copy.calls, insts: copy.made.len(), tail: None });
    }
    let mut last = home;
    for block in callee.blocks() {
        let new = caller.make_block();
        caller.insert_block_after(new, last);
        if callee.is_cold(block) {
            caller.set_cold(new);
        }
        copy.blocks[block] = new.into();
        last = new;
    }
    let tail = caller.make_block();
    caller.insert_block_after(tail, last);
    for block in callee.blocks() {
        for inst in callee.block_insts(block) {
            let new = copy.make(caller, inst);
            caller.append_inst(new, copy.block(block));
        }
    }
    copy.fill(caller, Some(tail));
    caller.split_block(call, tail);
    caller.remove_inst(call);
    let jump = caller.make_inst(Op::Goto, &[], &[copy.block(entry)], &[]);
    caller.set_place(jump, place);
    caller.append_inst(jump, home);
    let value = match copy.returns.as_slice() {
        [] => None,
        &[(_, value)] => Some(value),
        returns => {
            let (blocks, values): (Vec<Block>, Vec<Value>) = returns.iter().copied().unzip();
            let phi = caller.make_inst(Op::Phi, &values, &blocks, &[result]);
            caller.set_place(phi, place);
            caller.prepend_inst(phi, tail);
            caller.result(phi)
        }
    };
    Some(Copied { result: value, calls: copy.calls, insts: copy.made.len(), tail: Some(tail) })
}

/// The copies of blocks, and of their values.
pub(crate) struct Apart {
    pub(crate) blocks: SecondaryMap<Block, PackedOption<Block>>,
    pub(crate) values: SecondaryMap<Value, PackedOption<Value>>,
}

/// Copies all blocks of `from` after the blocks of `to`. `args` are the values of the parameters; nothing leads to the
/// copies, and they return from `to`.
pub(crate) fn copy_apart(to: &mut Func, from: &Func, cx: &Context, args: &[Value]) -> Apart {
    let mut copy = Copy::new(from, cx, args);
    copy.returns_stay = true;
    copy.statics = from.sig.statics.params.iter().map(|param| param.bound).collect();
    for block in from.blocks() {
        let new = to.make_block();
        to.append_block(new);
        copy.blocks[block] = new.into();
    }
    for block in from.blocks() {
        for inst in from.block_insts(block) {
            let new = copy.make(to, inst);
            to.append_inst(new, copy.block(block));
        }
    }
    copy.fill(to, None);
    Apart { blocks: copy.blocks, values: copy.values }
}

/// The tables from the callee's names to the caller's.
struct Copy<'a> {
    callee: &'a Func,
    cx: &'a Context,
    values: SecondaryMap<Value, PackedOption<Value>>,
    blocks: SecondaryMap<Block, PackedOption<Block>>,
    callees: SecondaryMap<Callee, PackedOption<Callee>>,
    foreigns: SecondaryMap<Foreign, PackedOption<Foreign>>,
    metas: SecondaryMap<Meta, PackedOption<Meta>>,
    /// Each instruction of the callee with its copy, which has no operands until `fill`.
    made: Vec<(Inst, Inst)>,
    calls: Vec<Inst>,
    /// The copies of blocks that returned, with the returned values.
    returns: Vec<(Block, Value)>,
    /// Whether returns are copied as they are, and do not become jumps.
    returns_stay: bool,
    /// The callee's static parameters here.
    statics: Vec<StaticBound>,
    places: CopiedPlaces,
}

/// The static parameters of a method in a call; `None` if its body reads one that the types of the call leave open.
pub(in crate::passes) fn bound_statics(
    callee: &Func,
    types: &Types,
    call: &CalleeData,
) -> Option<Vec<StaticBound>> {
    let own = || callee.sig.statics.params.iter().map(|param| param.bound);
    let Some(pattern) = callee.sig.pattern() else { return Some(own().collect()) };
    let reads = |&inst: &Inst| matches!(callee.op(inst), Op::StaticParameter(_) | Op::StaticDefined(_));
    if !callee.blocks().flat_map(|block| callee.block_insts(block)).any(|inst| reads(&inst)) {
        return Some(Vec::new());
    }
    let CalleeData::Method { args, .. } = call else { return None };
    if !args.iter().all(|&ty| types.is_concrete(ty)) {
        return None;
    }
    let values = types.bind_statics(pattern, args)?;
    Some(
        own()
            .zip(values)
            .map(|(own, value)| match (own, value) {
                (StaticBound::Open { .. }, Some(value)) => StaticBound::Value(value),
                (StaticBound::Open { .. }, None) => StaticBound::Undefined,
                (known, _) => known,
            })
            .collect(),
    )
}

impl<'a> Copy<'a> {
    fn new(callee: &'a Func, cx: &'a Context, args: &[Value]) -> Self {
        let mut values = SecondaryMap::new();
        for (&param, &arg) in callee.params().iter().zip(args) {
            values[param] = arg.into();
        }
        Copy {
            callee,
            cx,
            values,
            blocks: SecondaryMap::new(),
            callees: SecondaryMap::new(),
            foreigns: SecondaryMap::new(),
            metas: SecondaryMap::new(),
            made: Vec::new(),
            calls: Vec::new(),
            returns: Vec::new(),
            returns_stay: false,
            statics: Vec::new(),
            places: CopiedPlaces::new(),
        }
    }

    fn block(&self, block: Block) -> Block {
        self.blocks[block].expand().expect("all blocks were made before")
    }

    /// Makes the copy of an instruction, without operands: they may not have been copied yet.
    fn make(&mut self, caller: &mut Func, inst: Inst) -> Inst {
        if let Op::StaticParameter(number) | Op::StaticDefined(number) = self.callee.op(inst) {
            return self.make_static(caller, inst, number);
        }
        let op = match self.callee.op(inst) {
            Op::Return if !self.returns_stay => Op::Goto,
            op => self.op(caller, op),
        };
        let types: SmallVec<[Type; 2]> = self.callee.results(inst).map(|v| self.callee.ty(v)).collect();
        let new = caller.make_inst(op, &[], &[], &types);
        let place = self.places.place(caller, self.callee, self.callee.place(inst));
        caller.set_place(new, place);
        for (old, result) in self.callee.results(inst).zip(caller.results(new)) {
            self.values[old] = result.into();
        }
        if let Op::Invoke(_) = op {
            self.calls.push(new);
        }
        self.made.push((inst, new));
        new
    }

    /// The callee's query of its own static parameter is known here.
    fn make_static(&mut self, caller: &mut Func, inst: Inst, number: u32) -> Inst {
        let bound = self.statics.get(number as usize - 1).copied();
        let types: SmallVec<[Type; 2]> = self.callee.results(inst).map(|v| self.callee.ty(v)).collect();
        let (op, args): (Op, SmallVec<[Value; 2]>) =
            match (self.callee.op(inst), bound, self.callee.sig.statics.get(number)) {
                (Op::StaticDefined(_), bound, _) => {
                    let defined = matches!(bound, Some(StaticBound::Value(_)));
                    (Op::Copy, smallvec![caller.bits(&self.cx.types, Type::BOOL, u128::from(defined))])
                }
                (_, Some(StaticBound::Value(value)), _) => {
                    let value = caller.static_value(&self.cx.types, value);
                    match types.first() {
                        // The value is not of the type that the callee asserts.
                        Some(&ty) if !self.cx.types.is_subtype(caller.ty(value), ty) => {
                            let ty = caller.constant(self.cx.types.type_constant(ty));
                            (Op::Builtin(Builtin::Typeassert), smallvec![value, ty])
                        }
                        _ => (Op::Copy, smallvec![value]),
                    }
                }
                (_, _, param) => {
                    let name = param.map_or(self.callee.name, |param| param.name);
                    (Op::ThrowUndefIfNot(name), smallvec![caller.bits(&self.cx.types, Type::BOOL, 0)])
                }
            };
        let new = caller.make_inst(op, &args, &[], &types);
        let place = self.places.place(caller, self.callee, self.callee.place(inst));
        caller.set_place(new, place);
        for (old, result) in self.callee.results(inst).zip(caller.results(new)) {
            self.values[old] = result.into();
        }
        new
    }

    /// Registers in the caller the entities that an operation refers to.
    fn op(&mut self, caller: &mut Func, op: Op) -> Op {
        match op {
            Op::Invoke(id) | Op::CFunction(id) => {
                let known = self.callees[id].expand();
                let new = known.unwrap_or_else(|| {
                    let new = caller.add_callee(self.callee.callee(id).clone());
                    caller.set_callee_summary(new, self.callee.callee_summary(id));
                    new
                });
                self.callees[id] = new.into();
                if matches!(op, Op::CFunction(_)) { Op::CFunction(new) } else { Op::Invoke(new) }
            }
            Op::ForeignCall(id) => {
                let known = self.foreigns[id].expand();
                let new = known.unwrap_or_else(|| caller.add_foreign(self.callee.foreign(id).clone()));
                self.foreigns[id] = new.into();
                Op::ForeignCall(new)
            }
            Op::LoopInfo(id) => {
                let known = self.metas[id].expand();
                let new = known.unwrap_or_else(|| caller.add_meta(self.callee.meta(id).clone()));
                self.metas[id] = new.into();
                Op::LoopInfo(new)
            }
            op => op,
        }
    }

    /// Adds the operands and targets of all copies. Returns become jumps to `tail`.
    fn fill(&mut self, caller: &mut Func, tail: Option<Block>) {
        for (old, new) in std::mem::take(&mut self.made).iter().copied() {
            self.made.push((old, new));
            let args: SmallVec<[Value; 4]> =
                self.callee.args(old).iter().map(|&v| self.value(caller, v)).collect();
            if self.callee.op(old) == Op::Return && !self.returns_stay {
                if let (Some(tail), Some(block), Some(&value)) = (tail, caller.inst_block(new), args.first())
                {
                    caller.set_inst_blocks(new, &[tail]);
                    self.returns.push((block, value));
                }
                continue;
            }
            let op = caller.op(new);
            caller.set_op(new, op, &args);
            if let Some(hint) = self.callee.hint(old) {
                caller.set_hint(new, hint.clone());
            }
            let blocks: SmallVec<[Block; 2]> =
                self.callee.inst_blocks(old).iter().map(|&b| self.block(b)).collect();
            if !blocks.is_empty() {
                caller.set_inst_blocks(new, &blocks);
            }
            // The operands may be narrower than the callee's parameters.
            let is_new = |n: usize, was: Value| {
                self.callee.as_const(was).is_none() && differs(caller, self.callee.ty(was), args[n])
            };
            let olds = self.callee.args(old).iter().enumerate();
            let before: SmallVec<[(usize, Type); 4]> =
                olds.filter(|&(n, &was)| is_new(n, was)).map(|(n, &was)| (n, self.callee.ty(was))).collect();
            refit(caller, self.cx, new, &before);
        }
    }

    /// The caller's value for one of the callee.
    fn value(&mut self, caller: &mut Func, value: Value) -> Value {
        if let Some(copied) = self.values[value].expand() {
            return copied;
        }
        let mut work = vec![value];
        while let Some(&at) = work.last() {
            if self.values[at].is_some() {
                work.pop();
                continue;
            }
            let Some(constant) = self.callee.as_const(at) else {
                // Every argument and every result has its value by now, so this is one of another function.
                return caller.constant(Const::Undef(self.callee.ty(at)));
            };
            let copied = match constant {
                Const::Aggregate { ty, fields } => {
                    let missing = fields.iter().copied().find(|&f| self.values[f].is_none());
                    if let Some(field) = missing {
                        work.push(field);
                        continue;
                    }
                    let fields = fields.iter().filter_map(|&f| self.values[f].expand()).collect();
                    Const::Aggregate { ty: *ty, fields }
                }
                other => other.clone(),
            };
            self.values[at] = caller.constant(copied).into();
            work.pop();
        }
        self.values[value].expand().unwrap_or(value)
    }
}
