//! Random low IR with objects: any control flow, all classes of pointers, handlers, preserved regions.
//!
//! Blocks and their jumps are made first; then, in dominator-tree order, each block is filled with operations
//! on dominating values, and at the end the φ get operands that are available at the ends of the
//! predecessors. Every function verifies.

use std::sync::Arc;

use brolga_ir::analysis::{Cfg, DomTree};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::cursor::Cursor;
use brolga_ir::func::{CalleeData, ForeignData, Param, SlotData};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{
    Block, Callee, Const, Context, Foreign, Func, Inst, Level, Op, RuntimeFn, Signature, Slot, Type, Value,
};
use cranelift_entity::EntityRef;

/// A small deterministic random number generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % bound
    }

    /// A random element.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The shape of a generated function.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) blocks: usize,
    /// The number of operations per block.
    pub(crate) ops: usize,
    /// `enter`, tracked slots.
    pub(crate) exceptions: bool,
    /// Whether to omit null and everything that keeps unrooted objects alive (immutable fields, choices,
    /// argument words), and to include handlers that are reached by exceptions.
    pub(crate) plain: bool,
}

/// The available values, by type.
#[derive(Clone, Default)]
struct There {
    tracked: Vec<Value>,
    derived: Vec<Value>,
    loaded: Vec<Value>,
}

struct Generator<'a> {
    func: Func,
    cx: &'a Context,
    random: &'a mut Random,
    shape: Shape,
    flag: Value,
    node: Type,
    callee: Vec<Callee>,
    foreign: Foreign,
    tracked_slot: Slot,
    /// φ that still need operands.
    phis: Vec<Inst>,
    /// By block: the values available at its end.
    ends: Vec<There>,
    depth: usize,
}

const FIELD: Access = Access { offset: 0, region: Region::Field, align_log2: 3 };

pub(crate) fn function(random: &mut Random, shape: Shape) -> (Arc<Context>, Func) {
    let cx = Context::new();
    let node = cx.types.vector(Type::INT64).expect("a vector type");
    let node = cx.types.tuple(&[node, node]).unwrap_or(node);
    let params = [Type::TRACKED, Type::TRACKED, Type::PTR, Type::I8];
    let sig = Signature {
        params: params.iter().map(|&ty| Param { name: None, ty }).collect(),
        results: vec![Type::TRACKED],
        vararg: false,
        ..Signature::default()
    };
    let mut func = Func::new(cx.names.intern("f"), Level::Low, sig);
    let flag = func.params()[3];
    let mut symbol = |name: &str, params: &[Type], results: &[Type]| {
        func.add_callee(CalleeData::Symbol {
            symbol: cx.names.intern(name),
            params: params.into(),
            results: results.into(),
        })
    };
    let callee = vec![
        symbol("make", &[], &[Type::TRACKED]),
        symbol("use", &[Type::TRACKED], &[]),
        symbol("both", &[Type::TRACKED, Type::TRACKED], &[Type::TRACKED]),
    ];
    let foreign = func.add_foreign(ForeignData {
        name: Some(cx.names.intern("c_function")),
        result: Type::I64,
        params: [Type::I64].into(),
        variadic_after: None,
    });
    let tracked_slot = func.add_slot(SlotData::reference());
    let mut generator = Generator {
        func,
        cx: &cx,
        random,
        shape,
        flag,
        node,
        callee,
        foreign,
        tracked_slot,
        phis: Vec::new(),
        ends: Vec::new(),
        depth: 0,
    };
    generator.fill();
    let func = generator.func;
    (cx, func)
}

impl Generator<'_> {
    fn fill(&mut self) {
        let count = 1 + self.random.below(self.shape.blocks);
        let blocks: Vec<Block> = (0..count).map(|_| self.func.make_block()).collect();
        let wild = self.random.below(2) == 0;
        for (n, &block) in blocks.iter().enumerate() {
            self.func.append_block(block);
            let mut target = || {
                let to = if wild || self.random.below(5) == 0 {
                    self.random.below(count)
                } else {
                    (n + 1 + self.random.below(3)).min(count - 1)
                };
                // The entry has no predecessors.
                blocks[to.max(1).min(count - 1)]
            };
            let targets = [target(), target()];
            let kind = if count == 1 { 0 } else { self.random.below(8) };
            let end = match kind {
                // The returned value is added when the block is filled.
                0 => self.func.make_inst(Op::Return, &[self.flag], &[], &[]),
                1 => self.func.make_inst(Op::Unreachable, &[], &[], &[]),
                2 | 3 => self.func.make_inst(Op::Goto, &[], &targets[..1], &[]),
                _ => self.func.make_inst(Op::Branch, &[self.flag], &targets, &[]),
            };
            self.func.append_inst(end, block);
        }
        let cfg = Cfg::compute(&self.func);
        let tree = DomTree::compute(&cfg);
        self.ends = vec![There::default(); count];
        for &block in tree.preorder() {
            let mut there = match tree.idom(block) {
                Some(above) => self.ends[above.index()].clone(),
                None => There { tracked: self.func.params()[..2].to_vec(), ..There::default() },
            };
            if tree.idom(block).is_some() {
                self.heads(block, &mut there);
            }
            let end = self.func.terminator(block).expect("a block with an end");
            self.block(end, &mut there);
            if self.func.op(end) == Op::Return {
                let value = self.tracked(&there);
                self.func.set_op(end, Op::Return, &[value]);
            }
            self.grow(block.index());
            self.ends[block.index()] = there.clone();
            // A handler may have split the block: its last part is the predecessor of its successors.
            let last = self.func.inst_block(end).expect("an end that stands somewhere");
            self.grow(last.index());
            self.ends[last.index()] = there;
        }
        let unreached: Vec<Block> = blocks.iter().copied().filter(|&b| !tree.is_reachable(b)).collect();
        for block in unreached {
            let end = self.func.terminator(block).expect("a block with an end");
            if self.func.op(end) == Op::Return {
                let value = self.func.params()[0];
                self.func.set_op(end, Op::Return, &[value]);
            }
        }
        let cfg = Cfg::compute(&self.func);
        for phi in std::mem::take(&mut self.phis) {
            let block = self.func.inst_block(phi).expect("a φ that stands somewhere");
            let ty = self.func.result(phi).map(|v| self.func.ty(v));
            let mut preds = cfg.preds(block).to_vec();
            preds.sort();
            preds.dedup();
            for pred in preds {
                if !self.shape.plain && self.random.below(12) == 0 {
                    continue;
                }
                let there = self.ends.get(pred.index()).cloned().unwrap_or_default();
                let value = match ty {
                    Some(Type::DERIVED) if !there.derived.is_empty() => {
                        Some(*self.random.pick(&there.derived))
                    }
                    Some(Type::LOADED) if !there.loaded.is_empty() => Some(*self.random.pick(&there.loaded)),
                    Some(Type::TRACKED) => Some(self.tracked(&there)),
                    _ => None,
                };
                if let Some(value) = value {
                    self.func.add_phi_edge(phi, pred, value);
                }
            }
        }
    }

    fn grow(&mut self, index: usize) {
        if self.ends.len() <= index {
            self.ends.resize(index + 1, There::default());
        }
    }

    fn heads(&mut self, block: Block, there: &mut There) {
        for _ in 0..self.random.below(3) {
            let types = [Type::TRACKED, Type::TRACKED, Type::DERIVED, Type::LOADED];
            let ty = if self.shape.plain { Type::TRACKED } else { *self.random.pick(&types) };
            let phi = self.func.make_inst(Op::Phi, &[], &[], &[ty]);
            self.func.prepend_inst(phi, block);
            let value = self.func.result(phi).expect("a φ has a result");
            match ty {
                Type::DERIVED => there.derived.push(value),
                Type::LOADED => there.loaded.push(value),
                _ => there.tracked.push(value),
            }
            self.phis.push(phi);
        }
    }

    /// A tracked value other than the constant null, which is not dereferenced.
    fn object(&mut self, there: &There) -> Value {
        loop {
            let value = self.tracked(there);
            if self.func.as_const(value).is_none() {
                return value;
            }
        }
    }

    /// A tracked value: mostly a recent one, so that live ranges are both short and long.
    fn tracked(&mut self, there: &There) -> Value {
        let least = if self.shape.plain { 2 } else { 0 };
        match least + self.random.below(10 - least) {
            0 => self.func.bits(&self.cx.types, Type::TRACKED, 0),
            1 if self.random.below(4) == 0 => self.func.constant(Const::Undef(Type::TRACKED)),
            2..7 if there.tracked.len() > 3 => {
                let n = there.tracked.len() - 1 - self.random.below(3);
                there.tracked[n]
            }
            _ if there.tracked.is_empty() => self.func.params()[0],
            _ => *self.random.pick(&there.tracked),
        }
    }

    fn block(&mut self, end: Inst, there: &mut There) {
        for _ in 0..self.random.below(self.shape.ops + 1) {
            self.op(end, there);
        }
        // Late uses keep values alive.
        if self.random.below(2) == 0 {
            self.using(end, there);
        }
    }

    fn using(&mut self, before: Inst, there: &There) {
        let value = if !there.derived.is_empty() && self.random.below(3) == 0 {
            *self.random.pick(&there.derived)
        } else if !there.loaded.is_empty() && self.random.below(3) == 0 {
            *self.random.pick(&there.loaded)
        } else {
            self.object(there)
        };
        Cursor::new(&mut self.func).before(before).ins(Op::Load(FIELD), &[value], &[Type::I64]);
    }

    fn op(&mut self, before: Inst, there: &mut There) {
        let [a, b, null] = [self.object(there), self.object(there), self.tracked(there)];
        let types = &self.cx.types;
        let kind = match self.random.below(24) {
            4 | 8..11 | 14 | 16 | 19 if self.shape.plain => 0,
            kind => kind,
        };
        let mut at = Cursor::new(&mut self.func);
        at.before(before);
        let eight = at.int(types, Type::I64, 8);
        match kind {
            0 => there.tracked.push(at.ins_value(Op::CallSymbol(self.callee[0]), &[], Type::TRACKED)),
            1 | 2 => {
                at.ins(Op::CallSymbol(self.callee[1]), &[null], &[]);
            }
            3 => there.tracked.push(at.ins_value(Op::CallSymbol(self.callee[2]), &[a, b], Type::TRACKED)),
            4 | 5 => {
                let object = at.ins_value(Op::Alloc(self.node), &[], Type::TRACKED);
                let region = if kind == 4 { Region::Immutable } else { Region::Field };
                at.ins(Op::Store(Access { region, ..FIELD }), &[object, null], &[]);
                at.ins(Op::WriteBarrier, &[object, null], &[]);
                there.tracked.push(object);
            }
            6 | 7 => there.tracked.push(at.ins_value(Op::Load(FIELD), &[a], Type::TRACKED)),
            8..11 => {
                let access = Access { region: Region::Immutable, ..FIELD };
                there.tracked.push(at.ins_value(Op::Load(access), &[a], Type::TRACKED));
            }
            11 | 12 => {
                let add = Op::Intrinsic(Intrinsic::AddPtr);
                there.derived.push(at.ins_value(add, &[a, eight], Type::DERIVED));
            }
            13 if !there.derived.is_empty() => {
                let from = *self.random.pick(&there.derived);
                let add = Op::Intrinsic(Intrinsic::AddPtr);
                there.derived.push(at.ins_value(add, &[from, eight], Type::DERIVED));
            }
            14 if !there.derived.is_empty() => {
                let from = *self.random.pick(&there.derived);
                let region = *self.random.pick(&[Region::Field, Region::Immutable]);
                let load = Op::Load(Access { region, ..FIELD });
                there.tracked.push(at.ins_value(load, &[from], Type::TRACKED));
            }
            15 => {
                let raw = at.func.params()[2];
                there.loaded.push(at.ins_value(Op::GcLoaded, &[a, raw], Type::LOADED));
            }
            16 => {
                let select = Op::Builtin(Builtin::Ifelse);
                there.tracked.push(at.ins_value(select, &[self.flag, a, null], Type::TRACKED));
            }
            17 if there.derived.len() > 1 => {
                let [x, y] = [*self.random.pick(&there.derived), *self.random.pick(&there.derived)];
                let select = Op::Builtin(Builtin::Ifelse);
                there.derived.push(at.ins_value(select, &[self.flag, x, y], Type::DERIVED));
            }
            18 => {
                let access = FIELD;
                at.ins(Op::Store(access), &[a, b], &[]);
                at.ins(Op::WriteBarrier, &[a, b], &[]);
            }
            19 => {
                let call = Op::CallArgs(RuntimeFn::Apply);
                there.tracked.push(at.ins_value(call, &[a, null, b], Type::TRACKED));
            }
            20 => {
                at.ins(Op::ForeignCall(self.foreign), &[eight, a, b], &[Type::I64]);
            }
            21 => {
                let token = at.ins_value(Op::GcPreserveBegin, &[a, b], Type::TOKEN);
                if self.random.below(3) > 0 {
                    at.ins(Op::CallSymbol(self.callee[1]), &[b], &[]);
                    at.ins(Op::GcPreserveEnd, &[token], &[]);
                }
            }
            22 => {
                let address = at.func.constant(Const::Address(Address::Type(self.node)));
                let cast = Op::Intrinsic(Intrinsic::Bitcast);
                there.tracked.push(at.ins_value(cast, &[address], Type::TRACKED));
                at.ins(Op::TypeOf, &[a], &[Type::PTR]);
            }
            23 if self.shape.exceptions => self.protected(before, there),
            _ => {
                at.ins(Op::Intrinsic(Intrinsic::EqInt), &[a, b], &[Type::I8]);
            }
        }
    }

    /// Splits the block: a protected part, which may throw itself, its handler, and the rest.
    ///
    /// ```text
    ///   … enter ─┬─► body ─► leave ──┬─► rest
    ///            └─► handler ────────┘
    /// ```
    fn protected(&mut self, before: Inst, there: &mut There) {
        if self.depth == 3 {
            return;
        }
        self.depth += 1;
        let address = Op::SlotAddr(self.tracked_slot);
        let slot = Access { region: Region::Slot, ..FIELD };
        let mut at = Cursor::new(&mut self.func);
        at.before(before);
        let rest = at.split_block().expect("an instruction that stands somewhere");
        let above = at.block().expect("a block");
        let (body, handler) = (at.func.make_block(), at.func.make_block());
        at.func.insert_block_after(body, above);
        at.func.insert_block_after(handler, body);
        let enter = at.ins_with_blocks(Op::Enter, &[], &[body, handler], &[Type::TOKEN]);
        let token = at.func.result(enter).expect("a token");
        let body_end = at.at_bottom(body).goto(rest);
        let handler_end = at.at_bottom(handler).goto(rest);
        let targets = self.func.successors(rest).to_vec();
        for target in targets {
            let phis: Vec<Inst> =
                self.func.block_insts(target).take_while(|&i| self.func.op(i) == Op::Phi).collect();
            for phi in phis {
                for from in self.func.inst_blocks_mut(phi).iter_mut().filter(|b| **b == above) {
                    *from = rest;
                }
            }
        }

        let mut inner = there.clone();
        if self.shape.plain {
            // A use in the handler, and an instruction that throws: otherwise a missing root used only by the
            // handler is not detected.
            let value = self.tracked(&inner);
            let mut at = Cursor::new(&mut self.func);
            let word = at.before(enter).ins_value(address, &[], Type::PTR);
            at.ins(Op::Store(slot), &[word, value], &[]);
            at.before(body_end).ins(Op::CallSymbol(self.callee[1]), &[value], &[]);
        }
        if self.random.below(2) == 0 {
            let value = self.tracked(&inner);
            let mut at = Cursor::new(&mut self.func);
            let word = at.before(body_end).ins_value(address, &[], Type::PTR);
            at.ins(Op::Store(slot), &[word, value], &[]);
        }
        self.block(body_end, &mut inner);
        Cursor::new(&mut self.func).before(body_end).ins(Op::Leave, &[token], &[]);

        let mut caught = there.clone();
        let mut at = Cursor::new(&mut self.func);
        let word = at.before(handler_end).ins_value(address, &[], Type::PTR);
        caught.tracked.push(at.ins_value(Op::Load(slot), &[word], Type::TRACKED));
        self.block(handler_end, &mut caught);

        let joined = self.func.make_inst(Op::Phi, &[], &[], &[Type::TRACKED]);
        self.func.prepend_inst(joined, rest);
        for (end, values) in [(body_end, &inner), (handler_end, &caught)] {
            let value = self.tracked(values);
            if let Some(from) = self.func.inst_block(end) {
                self.func.add_phi_edge(joined, from, value);
            }
        }
        there.tracked.extend(self.func.result(joined));
        self.depth -= 1;
    }
}
