//! Tests uses of values that may be undefined, before any pass.
//!
//! ```text
//!     #2: %3 = φ (#1 => x)::R                          %3 = φ (#1 => x)::R
//!         …                                            %4 = φ (#1 => true, #5 => false)::Bool
//!         %5 = getfield(%3, :a)              ==>       throw_undef_if_not(#undef, %4)
//!                                                      %5 = getfield(%3, :a)
//! ```
//!
//! A φ that lacks an edge has no value on that path, and neither have instructions that pass it on: other φ, copies, ϒ with their φᶜ. Julia
//! never uses such a value, but text may, and then native code would follow an invalid reference. So a use is an
//! `UndefVarError`, as it is in the interpreter, and after the test passes may assume any value.
//!
//! Each value has a *flag* beside it: true if the value is defined, false over a missing edge. A φᶜ whose ϒ need not
//! have run has one more ϒ for its flag, at the entry of the function. One test suffices for all uses that it dominates.
//!
//! Needs verified high IR; low IR is unchanged. Runs once, before summaries: a test may throw. Passes introduce undefined
//! values of their own only where they are not used.
//!
//! Cost: a visit to each φ; in functions with such values, some visits to their instructions.

use brolga_ir::analysis::{Cfg, DomTree, Rpo};
use brolga_ir::constant::Const;
use brolga_ir::op::UNDEFINED;
use brolga_ir::{Block, Context, Func, FuncId, Inst, Level, Module, Op, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Tests the uses in all functions of a module.
pub fn test_module(module: &mut Module) {
    let cx = module.cx.clone();
    let ids: Vec<FuncId> = module.funcs().map(|(id, _)| id).collect();
    for id in ids {
        test_uses(&cx, &mut module[id]);
    }
}

/// Tests the uses in a function.
pub fn test_uses(cx: &Context, func: &mut Func) {
    if func.level == Level::Low || func.entry().is_none() {
        return;
    }
    let cfg = Cfg::compute(func);
    if !may_have_some(func, &cfg) {
        return;
    }
    let rpo = Rpo::compute(&cfg);
    let tree = DomTree::compute(&cfg);
    let Some(found) = find(func, &cfg, &rpo, &tree) else { return };
    let uses = uses(func, &rpo, &found);
    if uses.is_empty() {
        return;
    }
    let mut flags =
        Flags { func, cx, cfg: &cfg, found: &found, known: FxHashMap::default(), work: Vec::new() };
    let tested: Vec<(Inst, Value)> = uses.into_iter().map(|(inst, value)| (inst, flags.of(value))).collect();
    flags.complete();
    let name = cx.names.intern(UNDEFINED);
    let mut done: FxHashMap<Value, Vec<Block>> = FxHashMap::default();
    for (inst, flag) in tested {
        let Some(block) = func.inst_block(inst) else { continue };
        let blocks = done.entry(flag).or_default();
        if blocks.iter().any(|&before| tree.dominates(before, block)) {
            continue;
        }
        blocks.push(block);
        let test = func.make_inst(Op::ThrowUndefIfNot(name), &[flag], &[], &[Type::ANY]);
        func.set_place(test, func.place(inst));
        func.insert_before(test, inst);
    }
}

fn is_undefined(func: &Func, value: Value) -> bool {
    matches!(func.as_const(value), Some(Const::Undef(_)))
}

/// Whether a φ lacks an edge, a φᶜ may lack one, or there is an undefined constant.
fn may_have_some(func: &Func, cfg: &Cfg) -> bool {
    func.blocks().any(|block| {
        func.block_insts(block).any(|inst| {
            let lacks_edge = match func.op(inst) {
                Op::Phi => has_others(cfg.preds(block).iter(), func.inst_blocks(inst)),
                Op::PhiC => true,
                _ => false,
            };
            lacks_edge || func.args(inst).iter().any(|&arg| is_undefined(func, arg))
        })
    })
}

/// Whether there are predecessors from which a φ has no edge.
fn has_others<'a>(mut preds: impl Iterator<Item = &'a Block>, edges: &[Block]) -> bool {
    // A few comparisons cost less than a set.
    const FEW: usize = 16;
    if edges.len() <= FEW {
        return preds.any(|pred| !edges.contains(pred));
    }
    let edges: FxHashSet<Block> = edges.iter().copied().collect();
    preds.any(|pred| !edges.contains(pred))
}

/// The results that may be undefined; `None` if there are none and no operand is undefined.
fn find(func: &Func, cfg: &Cfg, rpo: &Rpo, tree: &DomTree) -> Option<FxHashSet<Value>> {
    let mut found = FxHashSet::default();
    let mut has_constants = false;
    loop {
        let before = found.len();
        for &block in rpo.blocks() {
            for inst in func.block_insts(block) {
                let args = func.args(inst);
                has_constants |= args.iter().any(|&arg| is_undefined(func, arg));
                let lacks = match func.op(inst) {
                    Op::Phi => {
                        let reachable = cfg.preds(block).iter().filter(|pred| rpo.is_reachable(**pred));
                        has_others(reachable, func.inst_blocks(inst))
                    }
                    Op::PhiC => {
                        // The only predecessor of a handler is the block of its `enter`.
                        let region = cfg.preds(block).first().copied();
                        let stored_before = |&arg: &Value| {
                            let at = func.def_inst(arg).and_then(|upsilon| func.inst_block(upsilon));
                            at.zip(region).is_some_and(|(at, region)| tree.dominates(at, region))
                        };
                        !args.iter().any(stored_before)
                    }
                    Op::Upsilon => args.is_empty(),
                    Op::Copy => false,
                    _ => continue,
                };
                let Some(result) = func.result(inst) else { continue };
                if lacks || args.iter().any(|&arg| found.contains(&arg) || is_undefined(func, arg)) {
                    found.insert(result);
                }
            }
        }
        if found.len() == before {
            return (has_constants || !found.is_empty()).then_some(found);
        }
    }
}

/// The operands that may be undefined of instructions that do not just pass them on, in an order in which dominators come first.
fn uses(func: &Func, rpo: &Rpo, found: &FxHashSet<Value>) -> Vec<(Inst, Value)> {
    let mut uses = Vec::new();
    for &block in rpo.blocks() {
        for inst in func.block_insts(block) {
            if matches!(func.op(inst), Op::Phi | Op::PhiC | Op::Copy | Op::Upsilon) {
                continue;
            }
            let own = func.args(inst).iter().copied();
            uses.extend(
                own.filter(|&arg| found.contains(&arg) || is_undefined(func, arg)).map(|arg| (inst, arg)),
            );
        }
    }
    uses
}

struct Flags<'a> {
    func: &'a mut Func,
    cx: &'a Context,
    cfg: &'a Cfg,
    found: &'a FxHashSet<Value>,
    known: FxHashMap<Value, Value>,
    /// Values whose flags have been made, but not their operands.
    work: Vec<(Value, Inst)>,
}

impl Flags<'_> {
    fn truth(&mut self, is_defined: bool) -> Value {
        self.func.bits(&self.cx.types, Type::BOOL, u128::from(is_defined))
    }

    /// The flag of a value; an instruction's flag receives its operands later.
    fn of(&mut self, value: Value) -> Value {
        if is_undefined(self.func, value) {
            return self.truth(false);
        }
        let (Some(inst), true) = (self.func.def_inst(value), self.found.contains(&value)) else {
            return self.truth(true);
        };
        if let Some(&flag) = self.known.get(&value) {
            return flag;
        }
        let op = self.func.op(inst);
        let made = self.func.make_inst(op, &[], &[], &[Type::BOOL]);
        self.func.set_place(made, self.func.place(inst));
        self.func.insert_after(made, inst);
        let Some(flag) = self.func.result(made) else { return self.truth(false) };
        self.known.insert(value, flag);
        self.work.push((value, made));
        flag
    }

    /// Adds the operands of flags, which may need flags in turn.
    fn complete(&mut self) {
        while let Some((value, made)) = self.work.pop() {
            let Some(inst) = self.func.def_inst(value) else { continue };
            let args = self.func.args(inst).to_vec();
            match self.func.op(inst) {
                Op::Phi => {
                    let edges = self.func.inst_blocks(inst).to_vec();
                    for (&block, &arg) in edges.iter().zip(&args) {
                        let flag = self.of(arg);
                        self.func.add_phi_edge(made, block, flag);
                    }
                    let Some(at) = self.func.inst_block(inst) else { continue };
                    let mut known: FxHashSet<Block> = edges.iter().copied().collect();
                    for &pred in self.cfg.preds(at) {
                        if known.insert(pred) {
                            let missing = self.truth(false);
                            self.func.add_phi_edge(made, pred, missing);
                        }
                    }
                }
                Op::PhiC => {
                    let mut stored: Vec<Value> = args.iter().map(|&arg| self.of_upsilon(arg)).collect();
                    stored.extend(self.at_entry());
                    self.func.set_op(made, Op::PhiC, &stored);
                }
                op => {
                    let flag = match args.first() {
                        Some(&arg) => self.of(arg),
                        None => self.truth(false),
                    };
                    self.func.set_op(made, op, &[flag]);
                }
            }
        }
    }

    /// The flag stored with a ϒ; the ϒ's value may always be defined.
    fn of_upsilon(&mut self, value: Value) -> Value {
        if self.found.contains(&value) {
            return self.of(value);
        }
        if let Some(&flag) = self.known.get(&value) {
            return flag;
        }
        let stored = self.truth(true);
        let Some(inst) = self.func.def_inst(value) else { return stored };
        let made = self.func.make_inst(Op::Upsilon, &[stored], &[], &[Type::BOOL]);
        self.func.insert_after(made, inst);
        let flag = self.func.result(made).unwrap_or(stored);
        self.known.insert(value, flag);
        flag
    }

    /// A ϒ at the entry: nothing is stored yet.
    fn at_entry(&mut self) -> Option<Value> {
        let entry = self.func.entry()?;
        let missing = self.truth(false);
        let made = self.func.make_inst(Op::Upsilon, &[missing], &[], &[Type::BOOL]);
        self.func.prepend_inst(made, entry);
        self.func.result(made)
    }
}
