//! Removes memories that are only written, with the stores to them.
//!
//! ```text
//! %1 = memorynew(Memory{Int64}, 4)
//! %2 = memoryrefnew(%1)
//! %3 = new(Array{Int64, 1}, %2, (4,))
//! %4 = getfield(%3, :ref)                            ==>    nothing; uses of %6 become x
//! %5 = memoryrefnew(%4, 2, false)
//! %6 = memoryrefset!(%5, x, :not_atomic, false)
//! ```
//!
//! The *names* of a memory are the result of `memorynew`, the references into it, the arrays around it, and their copies. The memory is removed if
//! each use of a name makes a further name, stores another value into it, reads a length or a size, or keeps it alive, and
//! if none of that can throw.
//!
//! The length has to be known, and small enough for every heap ([`MAX_BYTES`]): a negative one throws, and so does one that is too large.
//!
//! Cost: the uses of each name, at most [`MAX_USES`] for each memory; the uses of all values once if there is a candidate. Not done: elements that are
//! read as well; names that meet in a φ; memories in memories, where the outer one is removed first and the inner one in the
//! next run.

use crate::asserted::{Tests, may_fail};
use crate::pass::PassCx;
use crate::refit::give;
use crate::replace::Replacements;
use brolga_ir::analysis::Uses;
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::effects::effects;
use brolga_ir::{Func, Inst, Op, Type, Types, Value};

/// A larger memory stays: whether its allocation succeeds is observable.
const MAX_BYTES: u64 = 1 << 20;

/// A memory with more uses stays.
const MAX_USES: usize = 512;

pub(super) fn remove(func: &mut Func, cx: &mut PassCx<'_>) {
    let types = cx.types();
    let made: Vec<(Inst, Value)> = cx
        .facts
        .rpo()
        .blocks()
        .iter()
        .flat_map(|&b| func.block_insts(b))
        .filter_map(|inst| Some((inst, length(func, types, inst)?)))
        .collect();
    if made.is_empty() {
        return;
    }
    let uses = Uses::compute(func);
    let mut values = Replacements::default();
    for (inst, length) in made {
        let Some(unread) = Unread::of(func, types, &uses, inst, length) else { continue };
        if !cx.spend("memories") {
            break;
        }
        unread.remove(func, types, &mut values);
    }
    values.apply(func, cx.context());
}

/// The length of a new memory, if it is known and fits in every heap.
fn length(func: &Func, types: &Types, inst: Inst) -> Option<Value> {
    let (Op::Builtin(Builtin::Memorynew), &[ty, length]) = (func.op(inst), func.args(inst)) else {
        return None;
    };
    let Some(&Const::Type { of: ty, .. }) = func.as_const(ty) else { return None };
    let element = types.memory_element(ty)?;
    // A reference takes a word, and a union element one more byte.
    let size = types.layout(element).map_or(8, |layout| u64::from(layout.size).max(8) + 1);
    let count = func.as_bits(length).filter(|_| func.ty(length) == Type::INT64)?;
    let fits = u64::try_from(count).ok()?.checked_mul(size)? <= MAX_BYTES;
    (fits && !may_fail(func, types, &Tests::none(), inst)).then_some(length)
}

/// A memory that is never read.
struct Unread {
    /// The removed instructions, with the replacements of their results. Names need no replacement.
    dead: Vec<(Inst, Option<Value>)>,
    /// The lengths of arrays of one dimension, with the sizes at their creation.
    lengths: Vec<(Inst, Value)>,
    /// The `gc_preserve`s with a name of the memory among their operands.
    preserves: Vec<(Inst, Value)>,
}

/// A use of a name.
enum Use {
    /// It makes another name.
    Name,
    /// Its result is this value.
    Gives(Value),
    /// Its result is the first element of this size.
    First(Value),
    Preserve,
}

impl Unread {
    fn of(func: &Func, types: &Types, uses: &Uses, made: Inst, length: Value) -> Option<Unread> {
        let memory = func.result(made)?;
        let mut unread = Unread { dead: vec![(made, None)], lengths: Vec::new(), preserves: Vec::new() };
        let mut names = vec![memory];
        let mut seen = 0;
        while let Some(name) = names.pop() {
            seen += uses.of(name).len();
            if seen > MAX_USES {
                return None;
            }
            for one in uses.of(name) {
                let inst = one.inst;
                match what(func, types, inst, one.index, length)? {
                    Use::Name => {
                        names.push(func.result(inst)?);
                        unread.dead.push((inst, None));
                    }
                    Use::Gives(value) => unread.dead.push((inst, Some(value))),
                    Use::First(size) => unread.lengths.push((inst, size)),
                    Use::Preserve => unread.preserves.push((inst, name)),
                }
            }
        }
        Some(unread)
    }

    fn remove(self, func: &mut Func, types: &Types, values: &mut Replacements) {
        for (inst, value) in self.dead {
            if let Some(value) = value {
                let value = values.resolve(value);
                if !give(func, types, inst, value) {
                    continue;
                }
                if let Some(result) = func.result(inst) {
                    values.set(result, value);
                }
            }
            func.remove_inst(inst);
        }
        for (inst, size) in self.lengths {
            let size = values.resolve(size);
            let first = func.bits(types, Type::INT64, 1);
            func.set_op(inst, Op::Builtin(Builtin::Getfield), &[size, first]);
        }
        for (inst, name) in self.preserves {
            let kept: Vec<Value> = func.args(inst).iter().copied().filter(|&v| v != name).collect();
            func.set_op(inst, Op::GcPreserveBegin, &kept);
        }
    }
}

/// The use of the name that is operand `index` of an instruction; `None` if the memory then stays.
fn what(func: &Func, types: &Types, inst: Inst, index: u32, length: Value) -> Option<Use> {
    let (op, args) = (func.op(inst), func.args(inst));
    if op == Op::GcPreserveBegin {
        return Some(Use::Preserve);
    }
    let does = effects(func, types, inst);
    if index != 0 || !does.nothrow || does.fence || may_fail(func, types, &Tests::none(), inst) {
        return None;
    }
    match (op, args) {
        (Op::Pi | Op::Copy | Op::Builtin(Builtin::Memoryrefnew), _) => Some(Use::Name),
        (Op::New(ty), &[_, _]) if types.array_parts(ty).is_some() => Some(Use::Name),
        (Op::Builtin(Builtin::Memoryrefset), &[_, value, ..]) => Some(Use::Gives(value)),
        (Op::Builtin(Builtin::Getfield), &[of, field, ..]) => {
            let names = types.laid_out_fields(func.ty(of))?;
            match *names.get(position(func, types, names, field)?)? {
                "length" => Some(Use::Gives(length)),
                "size" => size_of(func, of).map(Use::Gives),
                "mem" | "ref" => Some(Use::Name),
                _ => None,
            }
        }
        (Op::Builtin(Builtin::Arraylen), &[array]) => {
            let is_list = types.array_parts(func.ty(array)).is_some_and(|(_, dims)| dims == 1);
            size_of(func, array).filter(|_| is_list).map(Use::First)
        }
        _ => None,
    }
}

/// The position of a field of a type that the run time lays out.
fn position(func: &Func, types: &Types, names: [&str; 2], field: Value) -> Option<usize> {
    match func.as_const(field)? {
        Const::Symbol(name) => names.iter().position(|&known| known == types.names().text(*name)),
        Const::Bits { ty: Type::INT64, bits } => usize::try_from(*bits).ok()?.checked_sub(1),
        _ => None,
    }
}

/// The size that an array was made with, which it keeps: no code changes its fields.
fn size_of(func: &Func, array: Value) -> Option<Value> {
    let def = func.def_inst(array)?;
    match (func.op(def), func.args(def)) {
        (Op::New(_), &[_, size]) => Some(size),
        _ => None,
    }
}
