//! Moves objects to the stack that stay in their function, and could not be taken apart.
//!
//! ```text
//! %1 = alloc(Main.Buffer)                       %1 = alloc_stack(Main.Buffer)
//! store(%1, x)                           ==>    store(%1, x)
//! %2 = pointer_from_objref(%1)                  %2 = pointer_from_objref(%1)
//! %3 = foreigncall read(%2) roots %1            %3 = foreigncall read(%2) roots %1
//! ```
//!
//! `alloc-opt` takes objects apart if it handles all their uses. This pass handles other objects that do not escape: objects whose address is taken,
//! that are passed to C or to functions that do not keep them, whose fields are found by a number, and those that meet others in a φ.
//!
//! Words. The *names* of an object are the result of its `alloc` and everything derived from it by casts, address
//! arithmetic, φ and `ifelse`.
//!
//! **Stays.** A name may be read and written through, compared, tested for its type, preserved, given to C, and given to a function
//! whose [summary](crate::summary) shows that it neither keeps nor returns it, and does not throw, since an exception might
//! hold it. The program keeps an object alive that C keeps, or its address is invalid; the object on the stack lives as long
//! as `gc_preserve` can hold it. A name that is stored, returned, thrown or passed otherwise is an escape.
//!
//! **Iterations of a loop.** One place serves all objects of an `alloc`. That is correct if no name of the one before is needed when the next is made,
//! which liveness shows. Only a φ can carry a name there: everything else is dominated by the `alloc`. A value that a handler needs is needed throughout
//! its region, so no φ among the names may be needed at the head of one.
//!
//! **References** in the object are roots, because the collector does not find the object: root placement makes them roots, or moves the object to the
//! heap again. Stores into it need no barrier; its tag marks it. The references are roots for as long as the frame exists,
//! so their targets would outlive the object: a list whose first cell is here could never be freed. So an object with
//! references is moved only if it is needed at all safepoints that may follow, and its names are of no other object, whose
//! need would count as its own; safepoints on paths to a throw do not count.
//!
//! Runs late: until then other passes handle an object on the heap as well, and copies of a loop's body get their own places. Cost: the names
//! and their uses, at most `MAX_NAMES` for each object; liveness once if there is a φ among them. Breaks nothing. Not done: `Memory`; objects that
//! escape on error paths only.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::analysis::{Liveness, Use};
use brolga_ir::builtin::Builtin;
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::runtime_fn::RuntimeKind;
use brolga_ir::{Block, Func, Inst, LowType, Op, Type, Value};
use cranelift_entity::EntitySet;

pub(crate) const PASS: Pass = Pass::new("alloc-stack", PassLevel::Low, run).needs(&[Fact::Cfg, Fact::Uses]);

/// Larger objects stay on the heap: a frame is touched from end to end when the stack is checked.
const MAX_BYTES: u32 = 1024;

/// Bytes of all objects of a function on the stack: functions that call themselves have many frames.
const MAX_TOTAL: u32 = 4096;

/// An object with more names stays on the heap.
const MAX_NAMES: usize = 64;

/// Whether there is an object at all.
pub(crate) fn may_find(func: &Func) -> bool {
    func.blocks().flat_map(|b| func.block_insts(b)).any(|inst| matches!(func.op(inst), Op::Alloc(_)))
}

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let allocs: Vec<(Inst, Block)> = cx
        .facts
        .rpo()
        .blocks()
        .iter()
        .flat_map(|&b| func.block_insts(b).map(move |inst| (inst, b)))
        .filter(|&(inst, _)| matches!(func.op(inst), Op::Alloc(_)))
        .collect();
    let mut room = MAX_TOTAL;
    let mut liveness = None;
    for (inst, block) in allocs {
        let (Op::Alloc(ty), Some(object)) = (func.op(inst), func.result(inst)) else { continue };
        let Ok((bytes, _)) = cx.types().object_extent(ty) else { continue };
        if bytes > MAX_BYTES || bytes > room {
            continue;
        }
        let Some(names) = names(func, cx, object) else { continue };
        let is_phi = |&name: &Value| func.def_inst(name).is_some_and(|def| func.op(def) == Op::Phi);
        let has_references = cx.types().layout(ty).is_ok_and(|layout| !layout.is_bits());
        if has_references && !names.iter().all(|name| is_alone(func, *name)) {
            continue;
        }
        if has_references || names.iter().any(is_phi) {
            let liveness = liveness.get_or_insert_with(|| Liveness::compute(func, cx.facts.cfg()));
            if lives_on(func, liveness, &names, inst, block)
                || (has_references && is_outlived(func, cx, liveness, &names, inst, block))
            {
                continue;
            }
        }
        if !cx.spend("objects moved to the stack") {
            break;
        }
        room -= bytes;
        func.set_op(inst, Op::AllocStack(ty), &[]);
    }
    cx.changed()
}

/// All names of an object; `None` if it escapes.
fn names(func: &Func, cx: &PassCx<'_>, object: Value) -> Option<Vec<Value>> {
    let mut names = vec![object];
    let mut known = EntitySet::new();
    known.insert(object);
    let mut at = 0;
    while let Some(&name) = names.get(at) {
        at += 1;
        for &one in cx.facts.uses().of(name) {
            match use_of(func, one) {
                Does::Nothing => {}
                Does::Escape => return None,
                Does::Name => {
                    let made = func.result(one.inst)?;
                    if known.insert(made) {
                        names.push(made);
                    }
                }
            }
            if names.len() > MAX_NAMES {
                return None;
            }
        }
    }
    Some(names)
}

/// The effect of a use on a name.
enum Does {
    /// It creates no further reference.
    Nothing,
    /// The result is a name as well.
    Name,
    /// Other code may have it.
    Escape,
}

fn use_of(func: &Func, one: Use) -> Does {
    let n = one.index as usize;
    match func.op(one.inst) {
        Op::Load(_) | Op::TypeOf | Op::GcPreserveBegin => Does::Nothing,
        Op::Store(_) | Op::WriteBarrier if n == 0 => Does::Nothing,
        Op::MemCopy if n < 2 => Does::Nothing,
        Op::AtomicLoad(_) | Op::AtomicStore(_) | Op::AtomicRmw(..) | Op::AtomicCas(_) if n == 0 => {
            Does::Nothing
        }
        Op::Copy | Op::Phi | Op::GcLoaded | Op::PointerFromObjref => Does::Name,
        Op::Builtin(Builtin::Ifelse) if n > 0 => Does::Name,
        Op::Intrinsic(Intrinsic::Bitcast | Intrinsic::AddPtr | Intrinsic::SubPtr) if n == 0 => Does::Name,
        Op::Intrinsic(op) if op.shape() == Shape::IntCompare => Does::Nothing,
        Op::CallRuntime(entry) if entry.kind() == RuntimeKind::Asks => Does::Nothing,
        Op::ForeignCall(foreign) => {
            let data = func.foreign(foreign);
            let count = data.params.len() + usize::from(data.name.is_none());
            let gives_pointer = func.results(one.inst).any(|v| is_pointer(func, v));
            match func.args(one.inst).get(n) {
                // The operands after the arguments are only kept alive.
                _ if n >= count => Does::Nothing,
                // C may keep an object that is an argument itself.
                Some(&given) if func.ty(given) != Type::PTR => Does::Escape,
                _ if gives_pointer => Does::Name,
                _ => Does::Nothing,
            }
        }
        // Summaries cover objects and addresses. A number may become an address again.
        Op::CallSymbol(_) if !func.args(one.inst).get(n).is_some_and(|&v| is_pointer(func, v)) => {
            Does::Escape
        }
        Op::CallSymbol(callee) => match func.callee_summary(callee) {
            Some(summary) if !summary.args.captures(n) && !summary.args.returns(n) => Does::Nothing,
            _ => Does::Escape,
        },
        _ => Does::Escape,
    }
}

fn is_pointer(func: &Func, value: Value) -> bool {
    matches!(func.ty(value).as_low(), Some(LowType::Ptr(_)))
}

/// Whether some name may still be needed where the next object is made.
fn lives_on(func: &Func, liveness: &Liveness, names: &[Value], alloc: Inst, block: Block) -> bool {
    let enters = func.blocks().filter_map(|b| func.terminator(b)).filter(|&end| func.op(end) == Op::Enter);
    let mut handlers = enters.filter_map(|enter| func.inst_blocks(enter).get(1).copied());
    if handlers.any(|handler| names.iter().any(|&name| liveness.is_live_in(name, handler))) {
        return true;
    }
    // Before the `alloc` are the names that are live-in or defined in the block before it; after it, their uses.
    let mut made_before: Vec<Value> = Vec::new();
    let mut insts = func.block_insts(block);
    for inst in insts.by_ref().take_while(|&inst| inst != alloc) {
        made_before.extend(func.results(inst));
    }
    let used_behind: Vec<Value> =
        insts.filter(|&inst| func.op(inst) != Op::Phi).flat_map(|inst| func.args(inst)).copied().collect();
    names.iter().any(|name| {
        let is_there = liveness.is_live_in(*name, block) || made_before.contains(name);
        is_there && (liveness.is_live_out(*name, block) || used_behind.contains(name))
    })
}

/// Whether a name is of one object only.
fn is_alone(func: &Func, name: Value) -> bool {
    func.def_inst(name).is_none_or(|def| !matches!(func.op(def), Op::Phi | Op::Builtin(Builtin::Ifelse)))
}

/// Whether a safepoint may follow the last use of the object.
fn is_outlived(
    func: &Func,
    cx: &PassCx<'_>,
    liveness: &Liveness,
    names: &[Value],
    alloc: Inst,
    block: Block,
) -> bool {
    let is_name = |v: &Value| names.contains(v);
    let is_safepoint = |inst: Inst| effects(func, cx.types(), inst).may_safepoint;
    // From here on; `after` is the object's definition in the block.
    let ends_early = |at: Block, after: Option<Inst>| {
        if names.iter().any(|&name| liveness.is_live_out(name, at)) {
            return false;
        }
        let insts: Vec<Inst> = func.block_insts(at).collect();
        let from = after.and_then(|made| insts.iter().position(|&inst| inst == made)).map_or(0, |n| n + 1);
        let uses = |inst: &Inst| func.op(*inst) != Op::Phi && func.args(*inst).iter().any(is_name);
        let last = insts[from..].iter().rposition(uses).map_or(from, |n| from + n + 1);
        insts[last..].iter().any(|&inst| is_safepoint(inst))
    };
    let throws = |at: Block| func.terminator(at).is_some_and(|end| func.op(end) == Op::Unreachable);
    let mut seen = EntitySet::new();
    let mut open: Vec<Block> = Vec::new();
    if ends_early(block, Some(alloc)) {
        return true;
    }
    open.extend(cx.facts.cfg().succs(block));
    while let Some(at) = open.pop() {
        // In the block of the `alloc` the next object reuses the stack memory; the code before it belongs to this object.
        if !seen.insert(at) || throws(at) {
            continue;
        }
        if ends_early(at, None) {
            return true;
        }
        open.extend(cx.facts.cfg().succs(at));
    }
    false
}
