//! On-stack replacement as a change of high IR: loops that can be left in the middle for better code.
//!
//! ```text
//!  f:  …                                f:  …
//!   h: i = φ (a => 1, l => j)            h: i = φ (a => 1, l => j)              f#osr1(n, i):
//!      s = φ (…)                            s = φ (…)                             e: goto h'
//!      … n …                     ==>        if f#ready1(): x else r               h': i' = φ (e => i, l' => j')
//!   l: goto h if …                       x: return f#osr1(n, i, s)                    … n …
//!                                        r: … n …                                 l': goto h' if …
//!                                        l: goto h if …
//! ```
//!
//! `f#ready1()` is the OSR check: it is true when the code of `f#osr1` exists and the loop is to be left. The caller that compiles the
//! function defines it; in the IR it is a function without arguments that is defined elsewhere, so both results are correct at
//! any time. `f#osr1` is the function from the loop's head on: its parameters are the values that are needed there, its
//! blocks are those reachable from there. It contains no checks, and is optimised and compiled as any other function.
//! Its body is only made on demand ([`Exit::body`]).
//!
//! **Correctness.** At a head, after its φ, the rest of the function depends only on memory, the state of the thread, and the values
//! that are live there. The first two are the same for the continuation. Inside it a value may have two definitions, the
//! parameter and its definition in a later iteration of an outer loop: `ssa_repair` joins them.
//!
//! **Refused** are loops
//! - whose head is under a handler of the function, or in one: the handler belongs to the frame;
//! - from which a φᶜ or ϒ can be reached: its stored value is in the frame;
//! - that need a value which may be undefined, or one that cannot be an argument (tokens of `enter` and `gc_preserve_begin`).
//!
//! The first sixteen loops of a function get a check.
//!
//! Cost: the analyses, and a few instructions for each loop. A body costs a copy of the function.

use crate::heads::{head_phis, rename_phi_blocks};
use crate::lower::Beside;
use crate::passes::inline::copy::{Apart, copy_apart};
use crate::ssa_repair::Repair;
use crate::undefined::MaybeUndefined;
use brolga_ir::abi::form;
use brolga_ir::analysis::{Cfg, DomTree, Handlers, Liveness, Loops, Rpo};
use brolga_ir::constant::Const;
use brolga_ir::effects::{ArgFlow, Effects, Summary};
use brolga_ir::func::{CalleeData, Param, Signature};
use brolga_ir::signature::func_symbol;
use brolga_ir::{Block, Context, Func, Inst, Level, Name, Op, Type, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The most loops of a function that get a check.
const MAX_EXITS: usize = 16;

/// A function whose loops can be left.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// The function, with an OSR check at the head of each such loop.
    pub func: Func,
    /// The loops.
    pub exits: Vec<Exit>,
}

/// A loop that can be left.
#[derive(Clone, Debug)]
pub struct Exit {
    /// The function that continues at the loop's head, without its body.
    pub entry: Func,
    /// The OSR check: whether to continue there.
    pub check: Func,
    /// The names of the two in the low form.
    entry_symbol: Name,
    check_symbol: Name,
    /// The head in the original function.
    head: Block,
    /// The values that are live there: the entry's parameters, after its function object.
    live: Vec<Value>,
}

/// Adds OSR checks to the loops of a high function. `symbol` is the function's own, from which new names are derived. `None`
/// if no loop can be left.
pub fn leave_loops(cx: &Context, symbol: &str, func: &Func) -> Option<Leaving> {
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let tree = DomTree::compute(&cfg);
    let loops = Loops::compute(&cfg, &rpo, &tree);
    // A continuation does not have the arguments that determine an open static parameter.
    if loops.is_empty() || func.level != Level::High || func.sig.statics.is_open() {
        return None;
    }
    let facts = Facts {
        cx,
        func,
        handlers: Handlers::compute(func, &cfg, &rpo),
        undefined: MaybeUndefined::of(func, &cfg, &rpo),
        live: Liveness::compute(func, &cfg),
        before_stores: before_stores(&cfg, func),
        tree,
    };
    let heads = loops.iter().map(|l| loops.header(l));
    let found = heads.filter_map(|head| Some((head, facts.live_at(head)?))).take(MAX_EXITS);
    let exits: Vec<Exit> = found.enumerate().map(|(n, found)| facts.exit(symbol, n + 1, found)).collect();
    if exits.is_empty() {
        return None;
    }
    let mut leaving = func.clone();
    let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for exit in &exits {
        ends[exit.head] = ask(&mut leaving, exit).into();
    }
    rename_phi_blocks(&mut leaving, &ends);
    Some(Leaving { func: leaving, exits })
}

struct Facts<'a> {
    cx: &'a Context,
    func: &'a Func,
    tree: DomTree,
    handlers: Handlers,
    undefined: MaybeUndefined,
    before_stores: SecondaryMap<Block, bool>,
    live: Liveness,
}

impl Facts<'_> {
    /// The values live after the φ of a loop's head; `None` if the loop cannot be left.
    fn live_at(&self, head: Block) -> Option<Vec<Value>> {
        let in_handler = |&enter: &Inst| {
            let handler = self.func.inst_blocks(enter).get(1);
            handler.is_some_and(|&handler| self.tree.dominates(handler, head))
        };
        if self.handlers.at_head(head).is_some() || self.handlers.enters().iter().any(in_handler) {
            return None;
        }
        if self.before_stores[head] {
            return None;
        }
        let phis = head_phis(self.func, head).filter_map(|phi| self.func.result(phi));
        let live: Vec<Value> = self.live.live_in(head).iter().copied().chain(phis).collect();
        let fits = |&value: &Value| {
            !self.undefined.has(self.func, value) && form(&self.cx.types, self.func.ty(value)).is_ok()
        };
        live.iter().all(fits).then_some(live)
    }

    fn exit(&self, symbol: &str, number: usize, (head, live): (Block, Vec<Value>)) -> Exit {
        let types = live.iter().map(|&value| self.func.ty(value));
        let results = self.func.sig.results.clone();
        let entry = declared(self.cx, &format!("{symbol}#osr{number}"), types, results);
        let check = declared(self.cx, &format!("{symbol}#ready{number}"), [], vec![Type::BOOL]);
        let [entry_symbol, check_symbol] =
            [&entry, &check].map(|func| self.cx.names.intern(&func_symbol(self.cx, &func.sig)));
        Exit { entry, check, entry_symbol, check_symbol, head, live }
    }
}

/// A function without a body, and its object.
fn declared(cx: &Context, name: &str, args: impl IntoIterator<Item = Type>, results: Vec<Type>) -> Func {
    let name = cx.names.intern(name);
    let object = cx.types.function(name);
    let params = std::iter::once(object).chain(args).map(|ty| Param { name: None, ty }).collect();
    Func::new(name, Level::High, Signature { params, results, vararg: false, ..Signature::default() })
}

/// The blocks from which a use of the frame's stored values can be reached.
fn before_stores(cfg: &Cfg, func: &Func) -> SecondaryMap<Block, bool> {
    let stores =
        |&block: &Block| func.block_insts(block).any(|inst| matches!(func.op(inst), Op::PhiC | Op::Upsilon));
    let mut pending: Vec<Block> = func.blocks().filter(stores).collect();
    let mut before = SecondaryMap::new();
    pending.iter().for_each(|&block| before[block] = true);
    while let Some(block) = pending.pop() {
        for &from in cfg.preds(block) {
            if !std::mem::replace(&mut before[from], true) {
                pending.push(from);
            }
        }
    }
    before
}

/// Inserts the OSR check after the φ of a loop's head. Returns the block that now has the head's terminator.
fn ask(func: &mut Func, exit: &Exit) -> Block {
    let head = exit.head;
    let (leave, rest) = (func.make_block(), func.make_block());
    func.insert_block_after(leave, head);
    func.insert_block_after(rest, leave);
    func.set_cold(leave);
    let last_phi = head_phis(func, head).last();
    let first = last_phi.map_or_else(|| func.first_inst(head), |phi| func.next_inst(phi));
    let place = first.map(|inst| func.place(inst)).unwrap_or_default();
    if let Some(first) = first {
        func.split_block(first, rest);
    }
    let append = |func: &mut Func, block: Block, op: Op, args: &[Value], to: &[Block], results: &[Type]| {
        let inst = func.make_inst(op, args, to, results);
        func.set_place(inst, place);
        func.append_inst(inst, block);
        inst
    };
    let call = |func: &mut Func, block: Block, callee: &Func, args: &[Value]| {
        let types: Vec<Type> = callee.sig.params.iter().map(|param| param.ty).collect();
        let result = callee.sig.results.first().copied().unwrap_or(Type::NOTHING);
        let object = func.constant(Const::Singleton(types[0]));
        let method = CalleeData::Method { function: types[0], args: types[1..].into(), result };
        let op = Op::Invoke(func.add_callee(method));
        let operands: Vec<Value> = std::iter::once(object).chain(args.iter().copied()).collect();
        let inst = append(func, block, op, &operands, &[], &[result]);
        func.results(inst).collect::<Vec<Value>>()
    };
    let asked = call(func, head, &exit.check, &[]);
    append(func, head, Op::Branch, &asked, &[leave, rest], &[]);
    let given = call(func, leave, &exit.entry, &exit.live);
    append(func, leave, Op::Return, &given, &[], &[]);
    rest
}

/// The effects of an OSR check in low IR: it updates counters that are invisible to other code.
const QUESTION: Effects = Effects { consistent: false, effect_free: false, pinned: true, ..Effects::PURE };

impl Leaving {
    /// The calls by which the function leaves: functions that no module has.
    pub fn beside(&self) -> Vec<Beside<'_>> {
        let mut beside = Vec::with_capacity(2 * self.exits.len());
        for Exit { entry, check, entry_symbol, check_symbol, .. } in &self.exits {
            beside.push(Beside { func: entry, symbol: *entry_symbol });
            beside.push(Beside { func: check, symbol: *check_symbol });
        }
        beside
    }

    /// States the effects of the OSR checks in the low form of the function: they look like calls but are not.
    pub fn mark_checks(&self, low: &mut Func) {
        let found = low.callees().filter_map(|(callee, data)| match data {
            CalleeData::Symbol { symbol, .. } => {
                self.exits.iter().any(|exit| exit.check_symbol == *symbol).then_some(callee)
            }
            CalleeData::Method { .. } => None,
        });
        for callee in found.collect::<Vec<_>>() {
            low.set_callee_summary(callee, Some(Summary { effects: QUESTION, args: ArgFlow::ANY }));
        }
    }
}

impl Exit {
    /// The symbol of the OSR check in the low form.
    pub fn check_symbol<'a>(&self, cx: &'a Context) -> &'a str {
        cx.names.text(self.check_symbol)
    }

    /// The symbol of the continuation in the low form.
    pub fn entry_symbol<'a>(&self, cx: &'a Context) -> &'a str {
        cx.names.text(self.entry_symbol)
    }

    /// A mark of the function that was given to [`leave_loops`], which differs if the same names denote another exit: the
    /// head and its live-ins.
    pub fn mark(&self) -> Vec<u32> {
        std::iter::once(self.head.as_u32()).chain(self.live.iter().map(|value| value.as_u32())).collect()
    }

    /// The OSR check as a function with a constant answer, for programs without a compiler.
    pub fn answer(&self, cx: &Context, answer: bool) -> Func {
        let mut out = self.check.clone();
        let entry = out.make_block();
        out.append_block(entry);
        let answer = out.bits(&cx.types, Type::BOOL, u128::from(answer));
        let back = out.make_inst(Op::Return, &[answer], &[], &[]);
        out.append_inst(back, entry);
        out
    }

    /// The function that continues at the loop's head, with its body. `func` is the function that was given to [`leave_loops`].
    pub fn body(&self, cx: &Context, func: &Func) -> Func {
        let mut out = Func::new(self.entry.name, Level::High, self.entry.sig.clone());
        let entry = out.make_block();
        out.append_block(entry);
        let params: Vec<Value> = out.params().to_vec();
        let given = |value: Value| {
            let at = self.live.iter().position(|&live| live == value)?;
            params.get(at + 1).copied()
        };
        // Parameters that are not live are used in blocks that are removed.
        let args: Vec<Value> = func
            .params()
            .iter()
            .map(|&param| given(param).unwrap_or_else(|| out.constant(Const::Undef(func.ty(param)))))
            .collect();
        let Apart { blocks, values } = copy_apart(&mut out, func, cx, &args);
        let Some(head) = blocks[self.head].expand() else { return out };
        let jump = out.make_inst(Op::Goto, &[], &[head], &[]);
        if let Some(first) = out.first_inst(head) {
            out.set_place(jump, out.place(first));
        }
        out.append_inst(jump, entry);
        drop_unreached(&mut out);

        let mut repair = Repair::default();
        for (&value, &param) in self.live.iter().zip(&params[1..]) {
            let Some(copied) = values[value].expand().filter(|&copied| copied != param) else { continue };
            let Some(inst) = out.def_inst(copied) else { continue };
            let block = out.inst_block(inst);
            if block == Some(head) && out.op(inst) == Op::Phi {
                out.add_phi_edge(inst, entry, param);
            } else {
                let own = block.map(|block| (block, copied));
                repair.add(copied, own.into_iter().chain([(entry, param)]).collect());
            }
        }
        let cfg = Cfg::compute(&out);
        repair.apply(&mut out, cx, &cfg, &Rpo::compute(&cfg));
        out
    }
}

/// Removes the blocks that cannot be reached, with the edges out of them.
fn drop_unreached(func: &mut Func) {
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let gone: Vec<Block> = func.blocks().filter(|&block| !rpo.is_reachable(block)).collect();
    for block in gone {
        let insts: Vec<Inst> = func.block_insts(block).collect();
        insts.into_iter().for_each(|inst| func.remove_inst(inst));
        func.remove_block(block);
    }
    let phis: Vec<Inst> = rpo.blocks().iter().flat_map(|&block| head_phis(func, block)).collect();
    for phi in phis {
        func.retain_phi_edges(phi, |from, _| rpo.is_reachable(from));
    }
}
