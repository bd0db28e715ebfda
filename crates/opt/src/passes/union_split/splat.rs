//! Splatting calls of tuples whose elements are known.
//!
//! ```text
//! %2 = _apply_iterate(iterate, f, t, (x,))        %1 = getfield(t, 1)      t::Tuple{Int64, String}
//!                                           ==>   %2 = getfield(t, 2)
//!                                                 %3 = call f(%1, %2, x)
//! ```
//!
//! The first operand is not called for tuples, so it does not matter. A tuple's type tells how many elements there are, even where it leaves their types open.
//! What the call reaches is then decided like any other call; objects that the program makes only to splat them lose their uses. If one container is a union of
//! tuples, its type is tested first, and there is a call for each member.
//!
//! Not done: several containers that are unions, constant vectors.

use crate::heads::rename_phi_blocks;
use crate::pass::PassCx;
use crate::replace::Replacements;
use brolga_ir::builtin::Builtin;
use brolga_ir::{Block, Func, Inst, Op, Type, TypeKind, Types, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// Calls with more arguments stay: each element is an instruction.
const MAX_ELEMENTS: usize = 16;
/// Unions with more members stay.
const MAX_MEMBERS: usize = 4;

/// Replaces splatting calls by calls with the elements. `false` without fuel.
pub(super) fn splatted(func: &mut Func, cx: &mut PassCx<'_>) -> bool {
    if !split_unions(func, cx) {
        return false;
    }
    for inst in splats(func) {
        let Some(elements) = elements(func, cx.types(), inst) else { continue };
        if !cx.spend("splats") {
            return false;
        }
        let place = func.place(inst);
        let mut operands: Vec<Value> = func.args(inst)[1..2].to_vec();
        for (tuple, index, ty) in elements {
            let position = func.bits(cx.types(), Type::INT64, index as u128 + 1);
            let read = func.make_inst(Op::Builtin(Builtin::Getfield), &[tuple, position], &[], &[ty]);
            func.set_place(read, place);
            func.insert_before(read, inst);
            operands.extend(func.result(read));
        }
        func.set_op(inst, Op::Call, &operands);
    }
    true
}

fn splats(func: &Func) -> Vec<Inst> {
    let insts = func.blocks().flat_map(|b| func.block_insts(b));
    insts.filter(|&inst| func.op(inst) == Op::Builtin(Builtin::ApplyIterate)).collect()
}

/// The elements of a tuple type of a fixed length.
fn tuple_elements(types: &Types, ty: Type) -> Option<&[Type]> {
    match types.kind(ty) {
        TypeKind::Tuple { elems, vararg: None } => Some(elems),
        _ => None,
    }
}

/// The tuples' elements with their positions and types, if all containers are tuples with few of them.
fn elements(func: &Func, types: &Types, inst: Inst) -> Option<Vec<(Value, usize, Type)>> {
    let mut found = Vec::new();
    for &container in func.args(inst).get(2..)? {
        let elems = tuple_elements(types, func.ty(container))?;
        found.extend(elems.iter().enumerate().map(|(index, &ty)| (container, index, ty)));
    }
    (found.len() <= MAX_ELEMENTS).then_some(found)
}

/// Makes a call for each member of a container that is a union of tuples. `false` without fuel.
fn split_unions(func: &mut Func, cx: &mut PassCx<'_>) -> bool {
    let mut results = Replacements::default();
    let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    let mut all = splats(func);
    // The last of a block first, so that each is still in the block where it was.
    all.reverse();
    let mut has_fuel = true;
    for inst in all {
        let Some((at, members)) = open_union(func, cx.types(), inst) else { continue };
        if !cx.spend("splats") {
            has_fuel = false;
            break;
        }
        let home = func.inst_block(inst);
        let tail = split(func, cx.types(), inst, (at, &members), &mut results);
        if let (Some(home), Some(tail)) = (home, tail)
            && ends[home].is_none()
        {
            ends[home] = tail.into();
        }
    }
    results.apply(func, cx.context());
    rename_phi_blocks(func, &ends);
    has_fuel
}

/// The position of the only operand that is a union of tuples, and its members; all other containers are tuples.
fn open_union(func: &Func, types: &Types, inst: Inst) -> Option<(usize, Vec<Type>)> {
    func.result(inst).filter(|&result| func.ty(result) != Type::BOTTOM)?;
    let mut found = None;
    for (at, &container) in func.args(inst).iter().enumerate().skip(2) {
        let ty = func.ty(container);
        let members = types.members(&ty);
        if !members.iter().all(|&member| tuple_elements(types, member).is_some()) {
            return None;
        }
        match members {
            [_] => {}
            [_, ..] if members.len() <= MAX_MEMBERS && found.is_none() => {
                found = Some((at, members.to_vec()))
            }
            _ => return None,
        }
    }
    found
}

/// Puts a chain of tests in the place of a call; what follows it gets its own block, which is returned.
fn split(
    func: &mut Func,
    types: &Types,
    call: Inst,
    (at, members): (usize, &[Type]),
    results: &mut Replacements,
) -> Option<Block> {
    let (home, next, result) = (func.inst_block(call)?, func.next_inst(call)?, func.result(call)?);
    let (place, asserted, args) = (func.place(call), func.ty(result), func.args(call).to_vec());
    let tail = func.make_block();
    func.insert_block_after(tail, home);
    func.split_block(next, tail);
    let put = |func: &mut Func, block: Block, op: Op, args: &[Value], to: &[Block], ty: Option<Type>| {
        let inst = func.make_inst(op, args, to, ty.as_slice());
        func.set_place(inst, place);
        func.append_inst(inst, block);
        func.result(inst)
    };
    let mut edges: Vec<(Block, Value)> = Vec::new();
    let (mut block, mut last) = (home, home);
    let inlining = func.call_inlining(call);
    func.remove_inst(call);
    for (n, &member) in members.iter().enumerate() {
        let mut own = block;
        if n + 1 < members.len() {
            let wanted = func.constant(types.type_constant(member));
            let test = [args[at], wanted];
            let holds = put(func, block, Op::Builtin(Builtin::Isa), &test, &[], Some(Type::BOOL))?;
            let [yes, no] = [(); 2].map(|()| func.make_block());
            func.insert_block_after(yes, last);
            func.insert_block_after(no, yes);
            put(func, block, Op::Branch, &[holds], &[yes, no], None);
            (own, block, last) = (yes, no, no);
        }
        let mut operands = args.clone();
        operands[at] = put(func, own, Op::Pi, &[args[at]], &[], Some(member))?;
        let value = put(func, own, Op::Builtin(Builtin::ApplyIterate), &operands, &[], Some(asserted))?;
        if let Some(made) = func.last_inst(own) {
            func.set_call_inlining(made, inlining);
        }
        edges.push((own, value));
        put(func, own, Op::Goto, &[], &[tail], None);
    }
    let (blocks, values): (Vec<Block>, Vec<Value>) = edges.into_iter().unzip();
    let phi = func.make_inst(Op::Phi, &values, &blocks, &[asserted]);
    func.set_place(phi, place);
    func.prepend_inst(phi, tail);
    results.set(result, func.result(phi)?);
    Some(tail)
}
