//! The changes to try in a function, largest first.

use std::ops::Range;

use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::hints::Hint;
use brolga_ir::{Block, Func, Inst, Module, Op, Type, Value};
use brolga_opt::{Cx, Options, parse_passes, run_passes};

/// A kind of change.
#[derive(Clone, Copy)]
pub(super) struct Change {
    /// The number of positions in a function where it applies.
    pub(super) places: fn(&Func) -> usize,
    /// Whether adjacent positions are tried together.
    pub(super) in_runs: bool,
    /// The function with the change at some of the positions, as variants in the order in which to try them.
    pub(super) at: fn(&Module, &Func, Range<usize>) -> Vec<Func>,
}

pub(super) const ALL: &[Change] = &[
    Change { places: |func| func.blocks().count(), in_runs: false, at: cut_short },
    Change { places: |func| branches(func).len(), in_runs: false, at: one_way },
    Change { places: |func| enters(func).len(), in_runs: false, at: no_handler },
    Change { places: |_| 1, in_runs: false, at: cleaned_up },
    Change { places: |func| statements(func).len(), in_runs: true, at: left_out },
    Change { places: |func| phis(func).len(), in_runs: false, at: one_edge },
    Change { places: |func| operands(func).len(), in_runs: false, at: simpler_operand },
    Change { places: |func| hints(func).len(), in_runs: true, at: without_hints },
];

fn insts(func: &Func) -> impl Iterator<Item = Inst> + '_ {
    func.blocks().flat_map(|b| func.block_insts(b))
}

/// Removes the φ operands of a block in its successors.
fn forget_edges(func: &mut Func, from: Block) {
    let targets = func.successors(from).to_vec();
    for target in targets {
        let heads: Vec<Inst> = func.block_insts(target).filter(|&i| func.op(i) == Op::Phi).collect();
        for phi in heads {
            func.retain_phi_edges(phi, |block, _| block != from);
        }
    }
}

fn cut_short(module: &Module, func: &Func, at: Range<usize>) -> Vec<Func> {
    let (Some(block), Some(&ty)) = (func.blocks().nth(at.start), func.sig.results.first()) else {
        return Vec::new();
    };
    let Some(end) = func.terminator(block).filter(|&t| func.op(t) != Op::Return) else { return Vec::new() };
    let mut changed = func.clone();
    forget_edges(&mut changed, block);
    let value = something_simple(&mut changed, module, ty);
    end_with(&mut changed, end, Op::Return, &[value], &[]);
    vec![without_dead_ends(module, &changed)]
}

/// Replaces a terminator. If it is an `enter`, the end of its region is removed as well.
fn end_with(func: &mut Func, end: Inst, op: Op, args: &[Value], targets: &[Block]) {
    let Some(block) = func.inst_block(end) else { return };
    if let Some(token) = func.result(end) {
        let ends =
            |&i: &Inst| matches!(func.op(i), Op::Leave | Op::PopException) && func.args(i).contains(&token);
        for inst in insts(func).filter(ends).collect::<Vec<_>>() {
            func.remove_inst(inst);
        }
    }
    func.remove_inst(end);
    let new = func.make_inst(op, args, targets, &[]);
    func.append_inst(new, block);
}

fn enters(func: &Func) -> Vec<Inst> {
    insts(func).filter(|&i| func.op(i) == Op::Enter).collect()
}

/// Removes a handler, which becomes unreachable; its region continues without it.
fn no_handler(module: &Module, func: &Func, at: Range<usize>) -> Vec<Func> {
    let Some(&enter) = enters(func).get(at.start) else { return Vec::new() };
    let (Some(block), &[body, ..]) = (func.inst_block(enter), func.inst_blocks(enter)) else {
        return Vec::new();
    };
    let mut changed = func.clone();
    forget_edges(&mut changed, block);
    end_with(&mut changed, enter, Op::Goto, &[], &[body]);
    // The edge to the body is the same as before.
    for (phi, edges) in head_edges(func, body, block) {
        for value in edges {
            changed.add_phi_edge(phi, block, value);
        }
    }
    vec![without_dead_ends(module, &changed)]
}

/// The φ operands of a block for one of its predecessors.
fn head_edges(func: &Func, of: Block, from: Block) -> Vec<(Inst, Vec<Value>)> {
    let phis = func.block_insts(of).filter(|&i| func.op(i) == Op::Phi);
    let value = |phi| func.phi_edges(phi).filter(|&(b, _)| b == from).map(|(_, v)| v).collect();
    phis.map(|phi| (phi, value(phi))).collect()
}

fn branches(func: &Func) -> Vec<Inst> {
    insts(func).filter(|&i| func.op(i) == Op::Branch).collect()
}

fn one_way(module: &Module, func: &Func, at: Range<usize>) -> Vec<Func> {
    let Some(&branch) = branches(func).get(at.start) else { return Vec::new() };
    let way = |way: u128| {
        let mut changed = func.clone();
        let constant = changed.bits(&module.cx.types, Type::BOOL, way);
        changed.args_mut(branch)[0] = constant;
        without_dead_ends(module, &changed)
    };
    vec![way(0), way(1)]
}

fn cleaned_up(module: &Module, func: &Func, _: Range<usize>) -> Vec<Func> {
    let lists = ["simplify-cfg,inst-simplify,dce", "simplify-cfg", "inst-simplify", "dce"];
    lists.iter().filter_map(|list| passed(module, func, list)).collect()
}

fn without_dead_ends(module: &Module, func: &Func) -> Func {
    passed(module, func, "simplify-cfg").unwrap_or_else(|| func.clone())
}

/// The function after some passes; `None` if they changed nothing.
fn passed(module: &Module, func: &Func, list: &str) -> Option<Func> {
    let passes = parse_passes(list).ok()?;
    let done = run_passes(module, func.clone(), &passes, &Options::default(), &mut Cx::default());
    done.ok().filter(|(_, report)| report.rewrites() > 0).map(|(func, _)| func)
}

/// The instructions that are neither terminators nor φs.
fn statements(func: &Func) -> Vec<Inst> {
    insts(func).filter(|&i| !func.op(i).is_terminator() && func.op(i) != Op::Phi).collect()
}

fn left_out(module: &Module, func: &Func, at: Range<usize>) -> Vec<Func> {
    let mut changed = func.clone();
    let all = statements(func);
    let Some(run) = all.get(at).filter(|run| !run.is_empty()) else { return Vec::new() };
    for &inst in run {
        remove(&mut changed, module, inst, None);
    }
    vec![changed]
}

/// The owners of hints: the function itself (`None`) and instructions.
fn hints(func: &Func) -> Vec<Option<Inst>> {
    let own = func.inlining.map(|_| None);
    own.into_iter().chain(insts(func).filter(|&inst| func.hint(inst).is_some()).map(Some)).collect()
}

fn without_hints(_: &Module, func: &Func, at: Range<usize>) -> Vec<Func> {
    let mut changed = func.clone();
    let all = hints(func);
    let Some(run) = all.get(at).filter(|run| !run.is_empty()) else { return Vec::new() };
    for &place in run {
        match place {
            Some(inst) => changed.set_hint(inst, Hint::default()),
            None => changed.inlining = None,
        }
    }
    vec![changed]
}

fn phis(func: &Func) -> Vec<Inst> {
    insts(func).filter(|&i| func.op(i) == Op::Phi).collect()
}

fn one_edge(module: &Module, func: &Func, at: Range<usize>) -> Vec<Func> {
    let Some(&phi) = phis(func).get(at.start) else { return Vec::new() };
    let mut values: Vec<Option<Value>> = func.args(phi).iter().map(|&v| Some(v)).collect();
    values.insert(0, None);
    let with = |value| {
        let mut changed = func.clone();
        remove(&mut changed, module, phi, value);
        changed
    };
    values.into_iter().map(with).collect()
}

/// Removes an instruction. Its results are replaced by `value`, or by a simple value.
fn remove(func: &mut Func, module: &Module, inst: Inst, value: Option<Value>) {
    for result in func.results(inst) {
        let ty = func.ty(result);
        let value = value.unwrap_or_else(|| something_simple(func, module, ty));
        func.replace_values(|v| if v == result { value } else { v });
    }
    func.remove_inst(inst);
}

/// Operands that may be replaced, by instruction and index.
fn operands(func: &Func) -> Vec<(Inst, usize)> {
    // A token stands for its instruction, and the first operand of a call is the callee.
    let fixed = |inst: Inst, n: usize| {
        func.ty(func.args(inst)[n]) == Type::TOKEN
            || (n == 0 && matches!(func.op(inst), Op::Invoke(_) | Op::Call))
            || (n == 1 && matches!(func.op(inst), Op::Builtin(Builtin::Getfield | Builtin::Setfield)))
    };
    let mut found = Vec::new();
    for inst in insts(func) {
        found.extend((0..func.args(inst).len()).filter(|&n| !fixed(inst, n)).map(|n| (inst, n)));
    }
    found
}

fn simpler_operand(module: &Module, func: &Func, at: Range<usize>) -> Vec<Func> {
    let Some(&(inst, n)) = operands(func).get(at.start) else { return Vec::new() };
    let old = func.args(inst)[n];
    let ty = func.ty(old);
    let mut simpler = Vec::new();
    let mut candidate = func.clone();
    match candidate.as_const(old) {
        Some(&Const::Bits { bits, .. }) => {
            simpler.extend([0, 1, bits / 2].into_iter().filter(|&less| less < bits));
        }
        Some(_) => return Vec::new(),
        None if module.cx.types.primitive_low(ty).is_some() => simpler.extend([0, 1]),
        None => {}
    }
    let mut values: Vec<Value> =
        simpler.into_iter().map(|bits| candidate.bits(&module.cx.types, ty, bits)).collect();
    if values.is_empty() && candidate.as_const(old).is_none() && !candidate.params().contains(&old) {
        values.push(something_simple(&mut candidate, module, ty));
    }
    let with = |value: &Value| {
        let mut changed = candidate.clone();
        changed.args_mut(inst)[n] = *value;
        changed
    };
    values.iter().filter(|&&v| v != old).map(with).collect()
}

/// A value of a type that needs no statement.
fn something_simple(func: &mut Func, module: &Module, ty: Type) -> Value {
    let types = &module.cx.types;
    if types.primitive(ty).is_some() && types.pointee(ty).is_none() {
        return func.bits(types, ty, 0);
    }
    if types.is_singleton(ty) {
        return func.constant(Const::Singleton(ty));
    }
    if let Some(&param) = func.params().iter().find(|&&v| types.is_subtype(func.ty(v), ty)) {
        return param;
    }
    if types.is_subtype(Type::NOTHING, ty) {
        return func.constant(Const::Singleton(Type::NOTHING));
    }
    func.constant(Const::Undef(ty))
}
