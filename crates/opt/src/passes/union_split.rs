//! Turns calls that dispatch at run time into calls of the methods that they can reach.
//!
//! ```text
//! area(s::Union{Cycle, Square})               b: isa(s, Cycle) ? c : q
//!                                              c: %1 = invoke area(π(s, Cycle));  goto t
//! b: %1 = call area(s)                  ==>    q: %2 = invoke area(π(s, Square));  goto t
//!    …                                         t: %3 = φ (c => %1, q => %2)
//!                                                 …
//! ```
//!
//! **Which methods.** The methods of the module whose parameters, including the function object, intersect the operands'
//! types. A callee that is only known to be a `Function`, or of unknown type, may be any closure or function with a method
//! that fits, so its type is tested like the arguments' types ([`guessed`] says which are tried). If there is one method
//! and it accepts all values of the operands' types, the call becomes an `invoke`. If there are at most
//! [`InlineLimits::max_methods`], they are tried one after the other, the more specific first, and other operands reach the
//! original call. The last test is left out where the earlier tests leave only operands that the last method accepts.
//!
//! **Which types.** A call that may reach more methods may have a *hint*: types with which it was made so far
//! (`brolga_ir::hints`). Then these are tested for, the most frequent first, each leads to its method, and all others reach the
//! original call. A test is for types without subtypes, so the method found for them is the one that the call would reach.
//! Operators of Base are tested for the usual numbers as well (`Int64`, `Float64`, `Bool`), if they have methods for these and no hint has a more frequent
//! type. `lower/mixed.rs` decides the form of the results.
//!
//! **Splatting calls** of tuples become calls with their elements first (`union_split/splat.rs`).
//!
//! An inlining hint of the call applies to all calls that it becomes.
//!
//! **When not.** Two methods that have operands in common, neither being more specific: such a call may be ambiguous. Methods that
//! collect arguments. Types for which a test would pass more values than the method accepts.
//!
//! The module is taken as the whole program: a method that is added later requires compiling the callers again, which the report lists.
//!
//! Phases, for each call, the last of a block first: 1 candidates and tests (reads). 2 cut the block after the call, put
//! tests and calls between. At the end one sweep for the results and for φ that name a block whose terminator has moved.
//!
//! Cost: a walk over all methods for each call (of all functions, if the callee is unknown), and `MAX_SPLITS` bounds the growth. Breaks every fact. Not
//! done: tests shared by several calls; values known by an earlier test.

mod splat;

use self::splat::splatted;
use crate::callgraph::overlapping;
use crate::facts::Fact;
use crate::heads::rename_phi_blocks;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::replace::Replacements;
use brolga_ir::builtin::Builtin;
use brolga_ir::func::CalleeData;
use brolga_ir::function_name::{BASE, is_library};
use brolga_ir::hints::Hint;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::scalar::Numbers;
use brolga_ir::{Block, Func, FuncId, Inst, Level, Module, Op, Type, TypeKind, Types, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::collections::BTreeSet;

pub(crate) const PASS: Pass = Pass::new("union-split", PassLevel::High, run).breaks(&[Fact::Cfg, Fact::Uses]);

/// The most frequent types of numbers in programs.
const USUAL: [Type; 3] = [Type::INT64, Type::FLOAT64, Type::BOOL];

/// Calls that are split in one function. Each adds a few blocks.
const MAX_SPLITS: usize = 200;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    if !splatted(func, cx) {
        return cx.changed();
    }
    let insts = func.blocks().flat_map(|b| func.block_insts(b));
    let mut calls: Vec<Inst> = insts.filter(|&i| func.op(i) == Op::Call).collect();
    if calls.is_empty() {
        return cx.changed();
    }
    calls.reverse();
    let mut results = Replacements::default();
    let mut ends: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for &call in calls.iter().take(MAX_SPLITS) {
        let operands: Vec<Value> = func.args(call).iter().map(|&v| results.resolve(v)).collect();
        // Code after a call that never returns is unreachable.
        if func.result(call).is_none_or(|v| func.ty(v) == Type::BOTTOM) {
            continue;
        }
        if operands.first().is_some_and(|&callee| cx.module.is_open(func.ty(callee))) {
            continue;
        }
        let choices = match choices(func, cx, &operands) {
            Some(choices) => choices,
            None => {
                let mut guessed = seen_choices(func, cx, call, &operands);
                if !guessed.is_empty() {
                    cx.count("guesses", 1);
                }
                add_usual_choices(func, cx, &operands, &mut guessed);
                if guessed.is_empty() {
                    continue;
                }
                guessed
            }
        };
        let asserted = func.result(call).map_or(Type::ANY, |v| func.ty(v));
        if !choices.iter().all(|choice| may_give(cx, choice.method, asserted)) {
            continue;
        }
        if !cx.spend("calls") {
            break;
        }
        for choice in &choices {
            cx.inlined(choice.method);
        }
        let home = func.inst_block(call);
        let split = Split { types: cx.types(), call, operands };
        let tail = match choices.as_slice() {
            [only] if only.tests.is_empty() => {
                split.replace(func, cx, only, &mut results);
                None
            }
            _ => split.spread(func, cx, &choices, &mut results),
        };
        if let (Some(home), Some(tail)) = (home, tail)
            && ends[home].is_none()
        {
            ends[home] = tail.into();
        }
    }
    results.apply(func, cx.context());
    rename_phi_blocks(func, &ends);
    cx.changed()
}

/// Whether a method's result may be of the asserted type of a call. Otherwise the call stays and throws when it is executed.
fn may_give(cx: &PassCx<'_>, method: FuncId, asserted: Type) -> bool {
    let declared = cx.module[method].sig.results.first();
    declared.is_none_or(|&ty| ty == Type::BOTTOM || !cx.types().is_disjoint(ty, asserted))
}

/// A method, the tests before its call, and the types of the operands.
struct Choice {
    method: FuncId,
    /// Operands with the types to test for; none if nothing else is left.
    tests: Vec<(usize, Type)>,
    /// The types of the operands when the tests hold, the callee's first.
    args: Vec<Type>,
}

/// The functions that a call of an unknown one may be guessed to reach, by the types of their objects: those whose methods have bodies here, but for the library's, of
/// which any module has only a few. A guess makes code need no function of another program, which may be broken, and is not called. Whoever compiles a module without
/// all methods of a function in it reports that ([`Module::note_open`]).
pub fn guessed(module: &Module) -> BTreeSet<Type> {
    let objects: BTreeSet<Type> = module.funcs().filter_map(|(_, func)| object_of(func)).collect();
    objects.into_iter().filter(|&object| is_guessed(module, object)).collect()
}

fn is_guessed(module: &Module, object: Type) -> bool {
    let is_library = match module.cx.types.kind(object) {
        TypeKind::Function(name) => is_library(module.cx.names.text(name.module)),
        _ => false,
    };
    let mut methods = module.methods(object).iter().peekable();
    let has_methods = methods.peek().is_some();
    !is_library && !module.is_open(object) && has_methods && methods.all(|&id| module[id].entry().is_some())
}

/// The type of the function object of a method.
fn object_of(func: &Func) -> Option<Type> {
    func.sig.params.first().filter(|_| func.level == Level::High).map(|object| object.ty)
}

/// The methods that a call may reach, in the order in which to try them.
fn choices(func: &Func, cx: &PassCx<'_>, operands: &[Value]) -> Option<Vec<Choice>> {
    let (module, types) = (cx.module, cx.types());
    let given: Vec<Type> = operands.iter().map(|&v| func.ty(v)).collect();
    let (&function, args) = given.split_first()?;
    // There is nothing to test.
    if given.iter().all(|&ty| types.is_concrete(ty))
        && let Some(method) = module.find_exact(function, args)
    {
        return Some(vec![Choice { method, tests: Vec::new(), args: given }]);
    }
    let params = |id: FuncId| module[id].sig.params.iter().map(|p| p.ty);
    let candidates: Vec<FuncId> = match types.is_concrete(function) {
        true => module.methods(function).to_vec(),
        false => {
            let guessed = guessed(module);
            let is_candidate = |func: &Func| object_of(func).is_some_and(|object| guessed.contains(&object));
            module.funcs().filter(|(_, func)| is_candidate(func)).map(|(id, _)| id).collect()
        }
    };
    let mut found = overlapping(module, candidates, &given, cx.options.inline.max_methods)?;
    if found.is_empty() {
        return None;
    }
    let narrower = |a: FuncId, b: FuncId| params(a).zip(params(b)).all(|(p, q)| types.is_subtype(p, q));
    let apart = |a: FuncId, b: FuncId| params(a).zip(params(b)).any(|(p, q)| types.is_disjoint(p, q));
    for (n, &a) in found.iter().enumerate() {
        if found[n + 1..].iter().any(|&b| !narrower(a, b) && !narrower(b, a) && !apart(a, b)) {
            return None;
        }
    }
    // There are few, and the relation is not a total order: repeatedly take one that no other is narrower than.
    let mut ordered = Vec::new();
    while !found.is_empty() {
        let first = found.iter().position(|&a| found.iter().all(|&b| a == b || !narrower(b, a)))?;
        ordered.push(found.remove(first));
    }
    let mut left = given.clone();
    let mut choices = Vec::new();
    for method in ordered {
        let wanted: Vec<Type> = params(method).collect();
        let args: Option<Vec<Type>> = left.iter().zip(&wanted).map(|(&l, &w)| meet(types, l, w)).collect();
        let args = args?;
        let tests: Vec<(usize, Type)> = (0..left.len())
            .filter(|&n| !types.is_subtype(left[n], wanted[n]))
            .map(|n| (n, wanted[n]))
            .collect();
        let (&callee, rest) = args.split_first()?;
        if module.find_method(callee, rest) != Some(method) {
            return None;
        }
        let done = tests.is_empty();
        if let &[(n, ty)] = tests.as_slice() {
            left[n] = types.difference(left[n], ty).ok()?;
        }
        choices.push(Choice { method, tests, args });
        if done {
            break;
        }
    }
    Some(choices)
}

/// The method for operands of exactly these types, which are to be tested for. Types without subtypes have one method, so the others do not matter.
fn exact_choice(func: &Func, cx: &PassCx<'_>, operands: &[Value], args: &[Type]) -> Option<Choice> {
    let (module, types) = (cx.module, cx.types());
    let fits = |(&v, &ty): (&Value, &Type)| types.is_concrete(ty) && types.is_subtype(ty, func.ty(v));
    if args.len() != operands.len() || !operands.iter().zip(args).all(fits) {
        return None;
    }
    // `x * x` has operands of one type.
    let alike = |n: usize| (0..n).all(|m| operands[m] != operands[n] || args[m] == args[n]);
    if !(1..args.len()).all(alike) {
        return None;
    }
    let (&callee, rest) = args.split_first()?;
    let is_known = operands.first().is_some_and(|&object| func.ty(object) == callee);
    if !is_known && !is_guessed(module, callee) {
        return None;
    }
    let method = module.find_method(callee, rest)?;
    let found = &module[method];
    let is_plain = found.level == Level::High && !found.sig.vararg && !found.sig.statics.is_open();
    let is_open = |&n: &usize| func.ty(operands[n]) != args[n];
    let tests: Vec<_> = (0..args.len()).filter(is_open).map(|n| (n, args[n])).collect();
    // With nothing to test the call would have been decided without a guess.
    (is_plain && !tests.is_empty()).then(|| Choice { method, tests, args: args.to_vec() })
}

/// The methods for the types with which a call was made, by its hint.
fn seen_choices(func: &Func, cx: &PassCx<'_>, call: Inst, operands: &[Value]) -> Vec<Choice> {
    let seen = func.hint(call).map_or(&[][..], |hint| &hint.seen);
    let choice = |args: &[Type]| exact_choice(func, cx, operands, args);
    seen.iter().filter_map(|seen| choice(&seen.types)).take(cx.options.inline.max_methods).collect()
}

/// The methods of an operator for the usual numbers, after the profiled ones.
fn add_usual_choices(func: &Func, cx: &PassCx<'_>, operands: &[Value], choices: &mut Vec<Choice>) {
    let (context, types) = (cx.context(), cx.types());
    let Some((&callee, args)) = operands.split_first() else { return };
    let function = func.ty(callee);
    let TypeKind::Function(name) = *types.kind(function) else { return };
    let is_operator = context.names.text(name.module) == BASE
        && Numbers::OPERATORS.contains(&context.names.text(name.name));
    if !is_operator {
        return;
    }
    let given: Vec<Type> = args.iter().map(|&v| func.ty(v)).collect();
    let or_given = |have: Type, ty: Type| if types.is_concrete(have) { have } else { ty };
    let kinds: Vec<Vec<Type>> = match *given {
        [a] => USUAL.iter().map(|&ty| vec![function, or_given(a, ty)]).collect(),
        [a, b] => {
            let [int, float, truth] = USUAL;
            let pairs = [(int, int), (float, float), (float, int), (int, float), (truth, truth)];
            pairs.iter().map(|&(x, y)| vec![function, or_given(a, x), or_given(b, y)]).collect()
        }
        _ => return,
    };
    for kind in kinds {
        if choices.len() >= cx.options.inline.max_methods {
            return;
        }
        if choices.iter().all(|choice| choice.args != kind) {
            choices.extend(exact_choice(func, cx, operands, &kind));
        }
    }
}

/// The type of a value of type `have` that is also a `wanted`; `None` if no type expresses that.
fn meet(types: &Types, have: Type, wanted: Type) -> Option<Type> {
    if types.is_subtype(have, wanted) {
        return Some(have);
    }
    if types.is_subtype(wanted, have) {
        return Some(wanted);
    }
    let mut inside = Vec::new();
    for &member in types.members(&have) {
        if types.is_subtype(member, wanted) {
            inside.push(member);
        } else if !types.is_disjoint(member, wanted) {
            return None;
        }
    }
    types.union(&inside).ok().filter(|&ty| ty != Type::BOTTOM)
}

struct Split<'a> {
    types: &'a Types,
    call: Inst,
    operands: Vec<Value>,
}

impl Split<'_> {
    fn asserted(&self, func: &Func) -> Type {
        func.result(self.call).map_or(Type::ANY, |v| func.ty(v))
    }

    /// Replaces the call by an `invoke` in place.
    fn replace(&self, func: &mut Func, cx: &PassCx<'_>, choice: &Choice, results: &mut Replacements) {
        let invoke = self.make_invoke(func, cx, choice, &self.operands);
        func.insert_before(invoke, self.call);
        if let (Some(old), Some(new)) = (func.result(self.call), func.result(invoke)) {
            results.set(old, new);
        }
        func.remove_inst(self.call);
    }

    fn make_invoke(&self, func: &mut Func, cx: &PassCx<'_>, choice: &Choice, operands: &[Value]) -> Inst {
        let asserted = self.asserted(func);
        let declared = cx.module[choice.method].sig.results.first().copied().unwrap_or(asserted);
        // A result of no type at all would have to end the block.
        let narrows = declared != Type::BOTTOM && self.types.is_subtype(declared, asserted);
        let result = if narrows { declared } else { asserted };
        let (function, args) = (choice.args[0], choice.args[1..].into());
        let callee = func.add_callee(CalleeData::Method { function, args, result });
        let invoke = func.make_inst(Op::Invoke(callee), operands, &[], &[result]);
        func.set_place(invoke, func.place(self.call));
        func.set_call_inlining(invoke, func.call_inlining(self.call));
        invoke
    }

    /// Inserts a chain of tests and calls after the call; the instructions that follow it get their own block.
    fn spread(
        &self,
        func: &mut Func,
        cx: &PassCx<'_>,
        choices: &[Choice],
        results: &mut Replacements,
    ) -> Option<Block> {
        let home = func.inst_block(self.call)?;
        let next = func.next_inst(self.call)?;
        let place = func.place(self.call);
        let tail = func.make_block();
        func.insert_block_after(tail, home);
        func.split_block(next, tail);
        let asserted = self.asserted(func);
        let old = func.result(self.call);
        let put = |func: &mut Func, block: Block, op: Op, args: &[Value], to: &[Block], ty: Option<Type>| {
            let inst = func.make_inst(op, args, to, ty.as_slice());
            func.set_place(inst, place);
            func.append_inst(inst, block);
            func.result(inst)
        };
        let (mut at, mut last) = (home, home);
        let mut edges: Vec<(Block, Value)> = Vec::new();
        let mut complete = false;
        // It is counted, but not guessed twice.
        let left = Hint { seen: Vec::new(), ..func.hint(self.call).cloned().unwrap_or_default() };
        func.remove_inst(self.call);
        for choice in choices {
            let mut holds = None;
            for &(n, ty) in &choice.tests {
                let wanted = func.constant(cx.types().type_constant(ty));
                let args = [self.operands[n], wanted];
                let test = put(func, at, Op::Builtin(Builtin::Isa), &args, &[], Some(Type::BOOL));
                holds = match (holds, test) {
                    (Some(a), Some(b)) => {
                        put(func, at, Op::Intrinsic(Intrinsic::AndInt), &[a, b], &[], Some(Type::BOOL))
                    }
                    (_, test) => test,
                };
            }
            let mut block = at;
            if let Some(holds) = holds {
                let [yes, no] = [(); 2].map(|()| func.make_block());
                func.insert_block_after(yes, last);
                func.insert_block_after(no, yes);
                put(func, at, Op::Branch, &[holds], &[yes, no], None);
                (block, at, last) = (yes, no, no);
            } else {
                complete = true;
            }
            let mut operands = self.operands.clone();
            for (operand, &ty) in operands.iter_mut().zip(&choice.args) {
                if func.ty(*operand) != ty {
                    *operand = put(func, block, Op::Pi, &[*operand], &[], Some(ty)).unwrap_or(*operand);
                }
            }
            let invoke = self.make_invoke(func, cx, choice, &operands);
            func.append_inst(invoke, block);
            edges.extend(func.result(invoke).map(|value| (block, value)));
            put(func, block, Op::Goto, &[], &[tail], None);
        }
        if !complete {
            let value = put(func, at, Op::Call, &self.operands, &[], Some(asserted));
            if let Some(call) = func.last_inst(at) {
                func.set_hint(call, left);
            }
            edges.extend(value.map(|value| (at, value)));
            put(func, at, Op::Goto, &[], &[tail], None);
        }
        let (blocks, values): (Vec<Block>, Vec<Value>) = edges.into_iter().unzip();
        let phi = func.make_inst(Op::Phi, &values, &blocks, &[asserted]);
        func.set_place(phi, place);
        func.prepend_inst(phi, tail);
        if let (Some(old), Some(new)) = (old, func.result(phi)) {
            results.set(old, new);
        }
        Some(tail)
    }
}
