//! Keeps counters in one register: rewrites uses of a counter's old value after Cranelift's mid-end.
//!
//! ```text
//! b1(v1):  …                                b1(v1):  …
//!          v2 = iadd v1, 1                           v2 = iadd v1, 1
//!          brif …, b1(v2), b2                        brif …, b1(v2), b2
//! b2:      v3 = iadd v1, 1         ==>      b2:      v3 -> v2
//!          v4 = icmp eq v1, v9                       v5 = isub v2, 1
//!                                                    v4 = icmp eq v5, v9
//! ```
//!
//! The mid-end rematerializes an addition of a constant in each block that uses it, and compares `x` with `y` instead of `x + 1` with
//! `y + 1`. After a loop both need the old value of the counter, which then lives as long as the next one. The two cannot share a register:
//! each iteration ends with a move and a jump of its own. So the uses of the old value that the next one reaches are expressed by the next value,
//! after the mid-end and before the register allocator.
//!
//! A *counter* is a parameter of a loop's head to which a block of the loop passes its sum with a constant, the *next value*. Phases for each: move the
//! addition down to the first use of its result in its block; leave the counter alone if the loop itself uses the old value after that
//! place; otherwise rewrite the uses outside of the loop. They become differences, because isel folds sums: it would use the
//! old value again.
//!
//! Cost: one sweep over the instructions, and one over those after the additions. Not done: an old value that the last block of a loop passes on; next
//! values that isel folds into an address together with another addition.

use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    Block, Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, ValueDef,
};
use rustc_hash::FxHashMap;

/// The next value of a counter.
#[derive(Clone, Copy)]
struct Next {
    /// The addition.
    add: Inst,
    /// Its result.
    value: Value,
    /// The addend.
    step: i64,
    /// The head of the loop.
    header: Block,
}

/// Rewrites uses after loops. Requires the graph, the dominators and the loops as the mid-end left them.
pub(crate) fn keep_in_register(context: &mut Context) {
    if context.loop_analysis.loops().next().is_none() {
        return;
    }
    let counters = counters(context);
    if counters.is_empty() {
        return;
    }
    let mut uses: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
    let func = &context.func;
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        for value in func.dfg.inst_values(inst) {
            let value = func.dfg.resolve_aliases(value);
            let list = uses.entry(value).or_default();
            if list.last() != Some(&inst) {
                list.push(inst);
            }
        }
    }
    for (old, next) in counters {
        let (of_old, of_next) = (uses.get(&old), uses.get(&next.value));
        if let (Some(of_old), Some(of_next)) = (of_old, of_next) {
            rewrite(context, old, next, of_old, of_next);
        }
    }
}

/// The counters of all loops, in the order of their heads.
fn counters(context: &Context) -> Vec<(Value, Next)> {
    let (func, mut found) = (&context.func, Vec::new());
    for latch in func.layout.blocks() {
        let Some(end) = func.layout.last_inst(latch) else { continue };
        let dfg = &func.dfg;
        for call in dfg.insts[end].branch_destination(&dfg.jump_tables, &dfg.exception_tables) {
            let header = call.block(&dfg.value_lists);
            let is_back = context.loop_analysis.is_loop_header(header).is_some()
                && context.domtree.block_dominates(header, latch);
            if !is_back {
                continue;
            }
            for (&old, arg) in dfg.block_params(header).iter().zip(call.args(&dfg.value_lists)) {
                let next = arg.as_value().and_then(|value| sum(func, dfg.resolve_aliases(value), old));
                // With two back edges there may be two next values.
                let is_first = found.iter().all(|&(known, _)| known != old);
                if let Some((add, value, step)) = next.filter(|_| is_first) {
                    found.push((old, Next { add, value, step, header }));
                }
            }
        }
    }
    found
}

/// The addition that makes a value of another one and a constant, and the constant.
fn sum(func: &Function, value: Value, old: Value) -> Option<(Inst, Value, i64)> {
    let ValueDef::Result(add, 0) = func.dfg.value_def(value) else { return None };
    let step = added(func, add, old)?;
    func.layout.inst_block(add).is_some().then_some((add, value, step))
}

/// The constant that an instruction adds to a value, if it does.
fn added(func: &Function, inst: Inst, to: Value) -> Option<i64> {
    let InstructionData::Binary { opcode: Opcode::Iadd, args } = func.dfg.insts[inst] else { return None };
    let args = args.map(|arg| func.dfg.resolve_aliases(arg));
    let other = match args {
        [a, b] if a == to => b,
        [a, b] if b == to => a,
        _ => return None,
    };
    let ValueDef::Result(made, 0) = func.dfg.value_def(other) else { return None };
    match func.dfg.insts[made] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm }
            if func.dfg.value_type(other).bits() <= 64 =>
        {
            Some(imm.bits())
        }
        _ => None,
    }
}

fn rewrite(context: &mut Context, old: Value, next: Next, of_old: &[Inst], of_next: &[Inst]) {
    let (func, domtree, loops) = (&mut context.func, &context.domtree, &context.loop_analysis);
    let Some(own) = loops.is_loop_header(next.header) else { return };
    let Some(home) = func.layout.inst_block(next.add) else { return };
    // The latest position of the addition.
    let in_home = |func: &Function, inst: Inst| func.layout.inst_block(inst) == Some(home);
    let mut first = func.layout.last_inst(home);
    for &user in of_next.iter().filter(|&&user| in_home(func, user)) {
        if first.is_none_or(|first| func.layout.pp_cmp(user, first).is_lt()) {
            first = Some(user);
        }
    }
    let Some(first) = first else { return };
    let mut behind = Vec::new();
    for &user in of_old.iter().filter(|&&user| user != next.add) {
        let Some(block) = func.layout.inst_block(user) else { continue };
        let is_reached = domtree.dominates(first, user, &func.layout);
        if is_reached && loops.is_in_loop(block, own) {
            return;
        }
        if is_reached {
            behind.push(user);
        }
    }
    let is_last = func.layout.next_inst(next.add) == Some(first);
    if !is_last && first != next.add {
        func.layout.remove_inst(next.add);
        func.layout.insert_inst(next.add, first);
    }
    let ty = func.dfg.value_type(old);
    for user in behind {
        match added(func, user, old) {
            Some(step) if step == next.step => {
                let same = func.dfg.first_result(user);
                func.dfg.clear_results(user);
                func.dfg.change_to_alias(same, next.value);
                func.layout.remove_inst(user);
            }
            Some(step) => {
                let mut cursor = FuncCursor::new(func).at_inst(user);
                let rest = constant(&mut cursor, ty, next.step.wrapping_sub(step));
                func.dfg.insts[user] =
                    InstructionData::Binary { opcode: Opcode::Isub, args: [next.value, rest] };
            }
            None => {
                let mut cursor = FuncCursor::new(func).at_inst(user);
                let back = constant(&mut cursor, ty, next.step);
                let again = cursor.ins().isub(next.value, back);
                let dfg = &mut func.dfg;
                let values = dfg.inst_values(user).map(|value| match dfg.resolve_aliases(value) {
                    value if value == old => again,
                    value => value,
                });
                let values: Vec<Value> = values.collect();
                dfg.overwrite_inst_values(user, values.into_iter());
            }
        }
    }
}

/// A constant of a type, before the cursor.
fn constant(cursor: &mut FuncCursor<'_>, ty: Type, value: i64) -> Value {
    let imm = Imm64::new(value).zero_extend_from_width(ty.bits());
    cursor.ins().iconst(ty, imm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{IsaOptions, TargetIsa, Tier};
    use cranelift_codegen::control::ControlPlane;
    use cranelift_codegen::ir::condcodes::IntCC;
    use cranelift_codegen::ir::{AbiParam, Signature, types};
    use cranelift_codegen::isa::CallConv;
    use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

    /// A loop that counts to its first parameter; `body` gets the old value in the loop, `exit` the old and the next one
    /// after it. Returns the old value and the function after the pass.
    fn counted(
        body: impl Fn(&mut FunctionBuilder<'_>, Value),
        exit: impl Fn(&mut FunctionBuilder<'_>, Value, Value, Value) -> Value,
    ) -> (Value, Context) {
        let isa = TargetIsa::new(IsaOptions::default()).unwrap();
        let mut context = Context::new();
        let func = &mut context.func;
        func.signature = Signature::new(CallConv::Tail);
        func.signature.params.extend([AbiParam::new(types::I64); 2]);
        func.signature.returns.push(AbiParam::new(types::I64));
        let mut scratch = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(func, &mut scratch);
        let [entry, head, behind] = [(); 3].map(|()| b.create_block());
        b.append_block_params_for_function_params(entry);
        let old = b.append_block_param(head, types::I64);
        b.switch_to_block(entry);
        let (n, last) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        let zero = b.ins().iconst(types::I64, 0);
        b.ins().jump(head, &[zero.into()]);
        b.switch_to_block(head);
        let one = b.ins().iconst(types::I64, 1);
        let next = b.ins().iadd(old, one);
        let goes_on = b.ins().icmp(IntCC::SignedLessThan, next, n);
        body(&mut b, old);
        b.ins().brif(goes_on, head, &[next.into()], behind, &[]);
        b.switch_to_block(behind);
        let result = exit(&mut b, old, next, last);
        b.ins().return_(&[result]);
        b.seal_all_blocks();
        b.finalize(isa.frontend_config());
        context.optimize(&**isa.for_tier(Tier::Optimised), &mut ControlPlane::default()).unwrap();
        keep_in_register(&mut context);
        context.compile(&**isa.behind_mid_end(), &mut ControlPlane::default()).unwrap();
        (old, context)
    }

    /// How many instructions use a value, in its own block and in others.
    fn users(context: &Context, value: Value) -> (usize, usize) {
        let func = &context.func;
        let ValueDef::Param(own, _) = func.dfg.value_def(value) else { return (0, 0) };
        let count = |is_own: bool| {
            let insts = func.layout.blocks().filter(|&block| (block == own) == is_own);
            let insts = insts.flat_map(|block| func.layout.block_insts(block));
            insts
                .filter(|&inst| {
                    func.dfg.inst_values(inst).any(|used| func.dfg.resolve_aliases(used) == value)
                })
                .count()
        };
        (count(true), count(false))
    }

    fn stores(b: &mut FunctionBuilder<'_>, old: Value) {
        let flags = cranelift_codegen::ir::MemFlagsData::trusted();
        b.ins().store(flags, old, old, 0);
    }

    #[test]
    fn nothing_behind_a_loop_asks_for_the_old_value() {
        // The mid-end makes `old == last` of it.
        let compared = |b: &mut FunctionBuilder<'_>, _: Value, next: Value, last: Value| {
            let one = b.ins().iconst(types::I64, 1);
            let end = b.ins().iadd(last, one);
            let is_last = b.ins().icmp(IntCC::Equal, next, end);
            let wide = b.ins().uextend(types::I64, is_last);
            b.ins().iadd(wide, next)
        };
        let (old, context) = counted(stores, compared);
        // The store and the addition.
        assert_eq!(users(&context, old), (2, 0), "{}", context.func);
        let (old, context) = counted(|_, _| {}, |_, old, _, _| old);
        assert_eq!(users(&context, old), (1, 0), "{}", context.func);
        let further = |b: &mut FunctionBuilder<'_>, old: Value, _: Value, _: Value| {
            let seven = b.ins().iconst(types::I64, 7);
            b.ins().iadd(old, seven)
        };
        let (old, context) = counted(stores, further);
        assert_eq!(users(&context, old), (2, 0), "{}", context.func);
    }

    #[test]
    fn a_loop_that_needs_both_values_stays_as_it_is() {
        let both = |b: &mut FunctionBuilder<'_>, old: Value| {
            let one = b.ins().iconst(types::I64, 1);
            let next = b.ins().iadd(old, one);
            let flags = cranelift_codegen::ir::MemFlagsData::trusted();
            b.ins().store(flags, next, next, 0);
            b.ins().store(flags, old, old, 8);
        };
        let (old, context) = counted(both, |_, old, _, _| old);
        assert_eq!(users(&context, old).1, 1, "{}", context.func);
    }
}
