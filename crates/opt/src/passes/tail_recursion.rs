//! Turns self-recursive tail calls into jumps to the function's start.
//!
//! ```text
//! f(n, a):                          f(n, a):  goto h
//!    …                         ==>  h: n' = φ (entry => n, b => x)     a' = φ (entry => a, b => y)
//! b: %r = invoke f(x, y)               …
//!    return %r                      b: goto h
//! ```
//!
//! **Accumulators.** Sums and products of integers wrap, so they may be added up in any order and multiplied out. The work that is still
//! to be done with the result when the call comes is then kept in two values, `s` and `p`, and the result is `s + p·r`:
//!
//! ```text
//! b: %1 = invoke fib(n - 1)            h: n' = φ (entry => n, b => n' - 2)    s = φ (entry => 0, b => s + %1)
//!    %2 = invoke fib(n - 2)    ==>     b: %1 = invoke fib(n' - 1);  goto h
//!    return %1 + %2                    e: return s + n'
//! e: return n
//! ```
//!
//! `s` and `p` exist only if some call needs them. An instruction between the call and the return
//! that does not need the call's result must be one that `effects` allow to move before it. `lower` puts a safepoint at the
//! head of the loop, as for every loop.
//!
//! A call in the range of a handler or of a `gc_preserve` is not a tail call, so functions with these are unchanged;
//! so are those that collect arguments. A call with the hint `noinline` stays a call; the same hint of the function is about copies of its
//! body, and a jump copies nothing. An infinite recursion still ends in `StackOverflowError` (`depth`).
//!
//! Phases. 1 find the calls (reads). 2 put a block that counts, and φ for the variant values, before the old entry. 3 turn
//! calls into jumps. 4 make returns yield `s + p·r`.
//!
//! Cost: linear; a block is scanned back to its last call. Breaks every fact. Not done: calls whose result is taken apart or
//! put into an object first; accumulators over `and_int` and the like.

use crate::asserted::{Tests, may_fail};
use crate::callgraph::SelfCallees;
use crate::facts::Fact;
use crate::heads::head_phis;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::passes::inline::takes;
use brolga_ir::effects::{Regions, effects};
use brolga_ir::hints::Inlining;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Block, Context, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::EntitySet;
use depth::Counter;

mod depth;

pub(crate) const PASS: Pass =
    Pass::new("tail-recursion", PassLevel::High, run).breaks(&[Fact::Cfg, Fact::Uses]);

/// Sums and products after a call; longer ones are left alone, as each is an instruction in every iteration.
const MAX_CHAIN: usize = 8;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let selves = SelfCallees::of(cx.module, func);
    if selves.is_empty() || func.sig.vararg || !is_plain(func) {
        return Changed::No;
    }
    let ring = ring_type(func, cx.types());
    let mut calls = Vec::new();
    for block in func.blocks() {
        let found = tail_call(func, cx, &selves, block);
        let Some(call) = found.filter(|call| call.chain.is_empty() || ring.is_some()) else { continue };
        if !cx.spend(if call.chain.is_empty() { "jumps" } else { "jumps with accumulators" }) {
            break;
        }
        calls.push(call);
    }
    if !calls.is_empty() {
        rewrite(func, cx.context(), &calls, ring);
    }
    cx.changed()
}

/// Whether a return ends the function and nothing else: no handler is open and nothing is kept alive.
fn is_plain(func: &Func) -> bool {
    let keeps = |op| {
        matches!(
            op,
            Op::Enter | Op::GcPreserveBegin | Op::StaticParameter(_) | Op::StaticDefined(_) | Op::PhiC
        )
    };
    !func.blocks().flat_map(|b| func.block_insts(b)).any(|inst| keeps(func.op(inst)))
}

/// The type of the result, if it is an integer type and every returned value has it.
fn ring_type(func: &Func, types: &Types) -> Option<Type> {
    let &[ty] = func.sig.results.as_slice() else { return None };
    let (_, repr) = types.primitive(ty)?;
    let mut returns = func.blocks().filter_map(|b| func.terminator(b)).filter(|&t| func.op(t) == Op::Return);
    let fits = |t: Inst| func.args(t).first().is_some_and(|&v| func.ty(v) == ty);
    let is_integer = matches!(repr, PrimitiveRepr::Signed | PrimitiveRepr::Unsigned);
    (is_integer && returns.all(fits)).then_some(ty)
}

/// One step from the result of a call to the returned value.
#[derive(Clone, Copy)]
enum Link {
    Plus(Value),
    Times(Value),
}

struct TailCall {
    block: Block,
    call: Inst,
    /// The operations on the result, the last one first.
    chain: Vec<Link>,
    /// The call and the users of its result, to be removed.
    dead: Vec<Inst>,
}

/// The call at the end of a block that returns.
fn tail_call(func: &Func, cx: &PassCx<'_>, selves: &SelfCallees, block: Block) -> Option<TailCall> {
    let returned = returned_by(func, block)?;
    let end = func.terminator(block)?;
    let back = std::iter::successors(func.prev_inst(end), |&i| func.prev_inst(i));
    let mut behind = Vec::new();
    let mut call = None;
    for inst in back {
        if selves.has(func, inst) && func.call_inlining(inst) != Some(Inlining::Never) {
            call = Some(inst);
            break;
        }
        let effects = effects(func, cx.types(), inst);
        let may_throw = may_fail(func, cx.types(), &Tests::none(), inst);
        if !effects.may_be_hoisted() || effects.reads != Regions::NONE || may_throw {
            return None;
        }
        behind.push(inst);
    }
    let call = call?;
    if !takes(cx, func, func, func.args(call)) {
        return None;
    }
    let mut last = func.result(call)?;
    // An asserted type of the row beyond the function's result is tested after the call.
    let &[given] = func.sig.results.as_slice() else { return None };
    if !cx.types().is_subtype(given, func.ty(last)) {
        return None;
    }
    let mut found = TailCall { block, call, chain: Vec::new(), dead: vec![call] };
    let mut tainted: EntitySet<Value> = EntitySet::new();
    tainted.insert(last);
    for inst in behind.into_iter().rev() {
        if !func.args(inst).iter().any(|&v| tainted.contains(v)) {
            continue;
        }
        let &[x, y] = func.args(inst) else { return None };
        let other = if x == last { y } else { x };
        if (x != last && y != last) || tainted.contains(other) || found.chain.len() == MAX_CHAIN {
            return None;
        }
        let link = match func.op(inst) {
            Op::Intrinsic(Intrinsic::AddInt) => Link::Plus(other),
            Op::Intrinsic(Intrinsic::MulInt) => Link::Times(other),
            _ => return None,
        };
        last = func.result(inst)?;
        tainted.insert(last);
        found.chain.insert(0, link);
        found.dead.push(inst);
    }
    (last == returned).then_some(found)
}

/// The value that a block returns: it ends in a return, or jumps to a block of only φ and a return.
fn returned_by(func: &Func, block: Block) -> Option<Value> {
    let end = func.terminator(block)?;
    match (func.op(end), func.inst_blocks(end)) {
        (Op::Return, _) => func.args(end).first().copied(),
        (Op::Goto, &[to]) => {
            let last = func.terminator(to).filter(|&t| func.op(t) == Op::Return)?;
            let value = *func.args(last).first()?;
            if func.block_insts(to).any(|i| i != last && func.op(i) != Op::Phi) {
                return None;
            }
            match func.def_inst(value).filter(|&def| func.inst_block(def) == Some(to)) {
                Some(phi) => func.phi_edges(phi).find(|&(from, _)| from == block).map(|(_, v)| v),
                None => Some(value),
            }
        }
        _ => None,
    }
}

/// The values that the loop carries.
struct Head {
    /// The φ by the position of the parameter.
    params: Vec<(usize, Inst)>,
    sum: Option<Inst>,
    product: Option<Inst>,
}

fn rewrite(func: &mut Func, cx: &Context, calls: &[TailCall], ring: Option<Type>) {
    let Some(old_entry) = func.entry() else { return };
    let types = &cx.types;
    let insts: Vec<Inst> = calls.iter().map(|tail| tail.call).collect();
    let is_bounded = depth::is_bounded(func, types, &insts);
    let entry = func.make_block();
    func.prepend_block(entry);
    let place = func.first_inst(old_entry).map(|i| func.place(i)).unwrap_or_default();
    let jump = func.make_inst(Op::Goto, &[], &[old_entry], &[]);
    func.set_place(jump, place);
    func.append_inst(jump, entry);
    let counter = if is_bounded { None } else { Counter::insert(func, cx, entry, old_entry) };
    let (counter, start) = counter.map_or((None, old_entry), |(counter, start)| (Some(counter), start));

    let params = func.params().to_vec();
    let changes = |func: &Func, n: usize| {
        !types.is_singleton(func.ty(params[n])) && calls.iter().any(|c| func.args(c.call)[n] != params[n])
    };
    let changing: Vec<usize> = (0..params.len()).filter(|&n| changes(func, n)).collect();
    let links = || calls.iter().flat_map(|c| &c.chain);
    let (sums, products) =
        (links().any(|l| matches!(l, Link::Plus(_))), links().any(|l| matches!(l, Link::Times(_))));
    let phi = |func: &mut Func, ty: Type| {
        let phi = func.make_inst(Op::Phi, &[], &[], &[ty]);
        func.set_place(phi, place);
        func.prepend_inst(phi, start);
        phi
    };
    let head = Head {
        sum: ring.filter(|_| sums).map(|ty| phi(func, ty)),
        product: ring.filter(|_| products).map(|ty| phi(func, ty)),
        params: changing.into_iter().map(|n| (n, phi(func, func.ty(params[n])))).collect(),
    };
    // The body reads the φ.
    let mut by_param = params.clone();
    for &(n, phi) in &head.params {
        by_param[n] = func.result(phi).unwrap_or(params[n]);
    }
    let read = |value: Value| params.iter().position(|&p| p == value).map_or(value, |n| by_param[n]);
    func.replace_values(read);

    let ty = ring.unwrap_or(Type::INT64);
    let (zero, one) = (func.bits(types, ty, 0), func.bits(types, ty, 1));
    for &(n, phi) in &head.params {
        func.add_phi_edge(phi, entry, params[n]);
    }
    for (phi, start) in [(head.sum, zero), (head.product, one)] {
        if let Some(phi) = phi {
            func.add_phi_edge(phi, entry, start);
        }
    }
    for call in calls {
        turn_into_jump(func, call, &head, start, read);
        if let Some(counter) = &counter {
            counter.add_jump(func, call.block);
        }
    }
    finish_returns(func, &head);
}

/// Replaces a block's tail call by a jump to the head.
fn turn_into_jump(func: &mut Func, tail: &TailCall, head: &Head, to: Block, read: impl Fn(Value) -> Value) {
    let block = tail.block;
    let Some(end) = func.terminator(block) else { return };
    let phis: Vec<Inst> = func.inst_blocks(end).iter().flat_map(|&b| head_phis(func, b)).collect();
    for phi in phis {
        func.retain_phi_edges(phi, |from, _| from != block);
    }
    let place = func.place(tail.call);
    let emit = |func: &mut Func, op: Intrinsic, x: Value, y: Value| {
        let inst = func.make_inst(Op::Intrinsic(op), &[x, y], &[], &[func.ty(x)]);
        func.set_place(inst, place);
        func.insert_before(inst, end);
        func.result(inst).unwrap_or(x)
    };
    // s + p·(y + r) = (s + p·y) + p·r        s + p·(y·r) = s + (p·y)·r
    let (mut sum, mut product) =
        (head.sum.and_then(|i| func.result(i)), head.product.and_then(|i| func.result(i)));
    for link in &tail.chain {
        match *link {
            Link::Plus(y) => {
                let y = read(y);
                let y = product.map_or(y, |p| emit(func, Intrinsic::MulInt, p, y));
                sum = sum.map(|s| emit(func, Intrinsic::AddInt, s, y));
            }
            Link::Times(y) => product = product.map(|p| emit(func, Intrinsic::MulInt, p, read(y))),
        }
    }
    let args = func.args(tail.call).to_vec();
    for &(n, phi) in &head.params {
        func.add_phi_edge(phi, block, args[n]);
    }
    for (phi, value) in [(head.sum, sum), (head.product, product)] {
        if let (Some(phi), Some(value)) = (phi, value) {
            func.add_phi_edge(phi, block, value);
        }
    }
    for &inst in tail.dead.iter().rev() {
        func.remove_inst(inst);
    }
    func.set_op(end, Op::Goto, &[]);
    func.set_inst_blocks(end, &[to]);
}

/// The returned value is the last term.
fn finish_returns(func: &mut Func, head: &Head) {
    let returns: Vec<Inst> =
        func.blocks().filter_map(|b| func.terminator(b)).filter(|&t| func.op(t) == Op::Return).collect();
    let steps = [(Intrinsic::MulInt, head.product), (Intrinsic::AddInt, head.sum)];
    for end in returns {
        for (op, phi) in steps {
            let Some(acc) = phi.and_then(|phi| func.result(phi)) else { continue };
            let Some(&value) = func.args(end).first() else { continue };
            let inst = func.make_inst(Op::Intrinsic(op), &[acc, value], &[], &[func.ty(value)]);
            func.set_place(inst, func.place(end));
            func.insert_before(inst, end);
            if let Some(result) = func.result(inst) {
                func.args_mut(end)[0] = result;
            }
        }
    }
}
