//! The state of a function under construction, and the steps that all statements share.
//!
//! Invariants: `block`, if any, is placed, open (it has no terminator), and every value of `at_hand`
//! dominates its end. `repeat` bounds the executions of the open block, `steps` the instructions executed by
//! a call.

use super::palette::{Palette, holds_float};
use super::{Known, Options};
use crate::rng::Rng;
use brolga_ir::builtin::Builtin;
use brolga_ir::func::CalleeData;
use brolga_ir::hints::Inlining;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Callee, Const, Context, Func, Inst, Level, Op, Param, Signature, Type, Value};

/// The maximum nesting depth of regions.
pub(super) const MAX_DEPTH: usize = 4;
/// The maximum number of calls of itself in one activation of a recursive function,
const SELF_CALLS: u32 = 2;
/// and a mask for the decreasing argument, which bounds the depth: it starts at three or less.
const SELF_DEPTH_MASK: u128 = 3;
/// Hence the maximum number of activations: 1 + 2 + 4 + 8.
const SELF_ACTIVATIONS: u64 = 15;

/// An occasional hint. It does not use random numbers, so that hints do not change the rest of the program.
fn inlining(number: usize) -> Option<Inlining> {
    match number % 8 {
        1 => Some(Inlining::Always),
        5 => Some(Inlining::Never),
        _ => None,
    }
}

/// Memory that may be used in the open block.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) pointer: Value,
    pub(super) element: Type,
    /// The number of elements, a power of two.
    pub(super) count: usize,
}

/// A loop around the open block: the targets of `break` and `continue`, and the values passed to them.
pub(super) struct Loop {
    pub(super) exit: Block,
    pub(super) exit_types: Vec<Type>,
    pub(super) exit_edges: Vec<(Block, Vec<Value>)>,
    pub(super) latch: Block,
    pub(super) latch_edges: Vec<(Block, Vec<Value>)>,
    pub(super) carried: Vec<Type>,
    /// The number of handlers installed outside the loop.
    pub(super) handlers: usize,
}

/// A function under construction.
pub(super) struct FuncGen<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) cx: &'a Context,
    pub(super) palette: &'a Palette,
    pub(super) known: &'a [Known],
    pub(super) options: &'a Options,
    pub(super) func: Func,
    pub(super) result: Type,
    /// The open block; `None` where the code would be unreachable.
    pub(super) block: Option<Block>,
    pub(super) at_hand: Vec<Value>,
    pub(super) memories: Vec<Memory>,
    /// Mutable objects that may be used in the open block.
    pub(super) objects: Vec<Value>,
    pub(super) loops: Vec<Loop>,
    pub(super) repeat: u64,
    pub(super) steps: u64,
    /// The number of instructions that may still be made.
    pub(super) left: usize,
    /// The number of installed handlers.
    pub(super) handlers: usize,
    /// The function itself, its decreasing argument, and the number of calls of itself that may still be
    /// made.
    pub(super) recursion: Option<(Known, Value, u32)>,
    /// By value: whether it is used, and whether its float bits are certain.
    used: Vec<bool>,
    exact: Vec<bool>,
}

impl<'a> FuncGen<'a> {
    /// Makes function number `index` of a module. Returns the facts that callers need, unless it may not be
    /// called.
    pub(super) fn generate(
        rng: &'a mut Rng,
        cx: &'a Context,
        palette: &'a Palette,
        known: &'a [Known],
        options: &'a Options,
        index: usize,
    ) -> (Func, Option<Known>) {
        let name = cx.names.intern(&function_name(rng, index));
        // A function without callers may rely on the bits of its float arguments.
        let is_root = rng.chance(40) || index + 1 == options.functions;
        let recursive = !is_root && options.features.calls && rng.chance(30);
        let mut params: Vec<Type> = (0..rng.between(1, 5)).map(|_| palette.any(rng)).collect();
        if recursive {
            params[0] = Type::INT64;
        }
        let result = result_type(rng, cx, palette);
        let sig = signature(rng, cx, name, &params, result);
        let mut func = Func::new(name, Level::High, sig);
        func.inlining = inlining(index);
        let mut this = FuncGen {
            cx,
            palette,
            known,
            options,
            func,
            result,
            block: None,
            at_hand: Vec::new(),
            memories: Vec::new(),
            objects: Vec::new(),
            loops: Vec::new(),
            repeat: 1,
            steps: 0,
            left: rng.between(options.size / 2, options.size + options.size / 2).max(1),
            handlers: 0,
            recursion: None,
            used: Vec::new(),
            exact: Vec::new(),
            rng,
        };
        let arguments = this.func.params()[1..].to_vec();
        for &argument in &arguments {
            this.offer(argument);
            if is_root {
                this.set_exact(argument);
            }
        }
        let entry = this.func.make_block();
        this.start(entry);
        let fact = Known { name, params, result, steps: 0 };
        if recursive {
            this.descend(arguments[0], &fact);
        }
        this.body();
        let activations = if recursive { SELF_ACTIVATIONS } else { 1 };
        let fact = Known { steps: this.steps * activations, ..fact };
        (this.func, (!is_root).then_some(fact))
    }

    fn body(&mut self) {
        while self.block.is_some() && self.left > 0 {
            self.region(MAX_DEPTH);
        }
        if self.block.is_some() {
            self.return_late();
        }
    }

    /// Returns if the decreasing argument is zero; otherwise records how the function may call itself.
    fn descend(&mut self, argument: Value, fact: &Known) {
        let mask = self.bits(Type::INT64, SELF_DEPTH_MASK);
        let number = self.intrinsic(Intrinsic::AndInt, &[argument, mask], Type::INT64);
        let zero = self.bits(Type::INT64, 0);
        let more = self.intrinsic(Intrinsic::SltInt, &[zero, number], Type::BOOL);
        let (go_on, stop) = (self.func.make_block(), self.func.make_block());
        self.branch(more, go_on, stop);
        let scope = self.scope();
        self.start(stop);
        self.return_early();
        self.leave_scope(scope);
        self.start(go_on);
        let one = self.bits(Type::INT64, 1);
        let less = self.intrinsic(Intrinsic::SubInt, &[number, one], Type::INT64);
        self.recursion = Some((fact.clone(), less, SELF_CALLS));
    }

    // ----- instructions -----

    /// Appends an instruction without result to the open block, if a block is open.
    pub(super) fn emit_void(&mut self, op: Op, args: &[Value], blocks: &[Block], results: &[Type]) -> Inst {
        let inst = self.func.make_inst(op, args, blocks, results);
        for &arg in args {
            set(&mut self.used, arg);
        }
        if let Some(block) = self.block {
            self.func.append_inst(inst, block);
        }
        self.steps += self.repeat;
        self.left = self.left.saturating_sub(1);
        inst
    }

    /// Appends an instruction with one result, which becomes available.
    pub(super) fn emit(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let value = self.emit_hidden(op, args, ty);
        self.offer(value);
        value
    }

    /// Appends an instruction with one result that does not become available.
    pub(super) fn emit_hidden(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let inst = self.emit_void(op, args, &[], &[ty]);
        self.func.result(inst).expect("the instruction was made with one result")
    }

    pub(super) fn intrinsic(&mut self, intrinsic: Intrinsic, args: &[Value], ty: Type) -> Value {
        self.emit(Op::Intrinsic(intrinsic), args, ty)
    }

    pub(super) fn builtin(&mut self, builtin: Builtin, args: &[Value], ty: Type) -> Value {
        self.emit(Op::Builtin(builtin), args, ty)
    }

    /// Calls a function by its argument types. A result of type `Union{}` does not become available. Two of
    /// eight calls have an inlining hint.
    pub(super) fn invoke(
        &mut self,
        name: brolga_ir::Name,
        params: &[Type],
        args: &[Value],
        ty: Type,
    ) -> Value {
        let function = self.cx.types.function(name);
        self.invoke_function(function, params, args, ty)
    }

    /// Like [`FuncGen::invoke`], for a function of any module, given by its type.
    pub(super) fn invoke_function(
        &mut self,
        function: Type,
        params: &[Type],
        args: &[Value],
        ty: Type,
    ) -> Value {
        let callee = CalleeData::Method { function, args: params.into(), result: ty };
        let callee: Callee = self.func.add_callee(callee);
        let object = self.func.constant(Const::Singleton(function));
        let operands: Vec<Value> = std::iter::once(object).chain(args.iter().copied()).collect();
        let value = if ty == Type::BOTTOM {
            self.emit_hidden(Op::Invoke(callee), &operands, ty)
        } else {
            self.emit(Op::Invoke(callee), &operands, ty)
        };
        if let Some(call) = self.func.def_inst(value) {
            self.func.set_call_inlining(call, inlining(callee.as_u32() as usize));
        }
        value
    }

    pub(super) fn bits(&mut self, ty: Type, bits: u128) -> Value {
        self.func.bits(&self.cx.types, ty, bits)
    }

    pub(super) fn symbol(&mut self, text: &str) -> Value {
        let name = self.cx.names.intern(text);
        self.func.constant(Const::Symbol(name))
    }

    // ----- blocks -----

    /// Places a block and opens it.
    pub(super) fn start(&mut self, block: Block) {
        self.func.append_block(block);
        self.block = Some(block);
    }

    /// Ends the open block.
    pub(super) fn end(&mut self, op: Op, args: &[Value], targets: &[Block]) {
        self.emit_void(op, args, targets, &[]);
        self.block = None;
    }

    pub(super) fn goto(&mut self, target: Block) {
        self.end(Op::Goto, &[], &[target]);
    }

    pub(super) fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        self.end(Op::Branch, &[condition], &[then, otherwise]);
    }

    /// A φ at the head of the open block, which contains only φs so far.
    pub(super) fn phi(&mut self, ty: Type, edges: &[(Block, Value)]) -> (Inst, Value) {
        let (blocks, values): (Vec<Block>, Vec<Value>) = edges.iter().copied().unzip();
        let inst = self.emit_void(Op::Phi, &values, &blocks, &[ty]);
        let value = self.func.result(inst).expect("a φ has one result");
        if values.iter().all(|&v| self.is_exact(v)) {
            set(&mut self.exact, value);
        }
        (inst, value)
    }

    /// A φ whose edges are not all known yet, so its bits are not considered certain.
    pub(super) fn open_phi(&mut self, ty: Type, from: Block, first: Value) -> (Inst, Value) {
        let inst = self.emit_void(Op::Phi, &[first], &[from], &[ty]);
        (inst, self.func.result(inst).expect("a φ has one result"))
    }

    /// Adds an edge to a φ made by [`FuncGen::open_phi`].
    pub(super) fn close_phi(&mut self, phi: Inst, from: Block, value: Value) {
        set(&mut self.used, value);
        self.func.add_phi_edge(phi, from, value);
    }

    // ----- what is at hand -----

    /// Makes a value available.
    pub(super) fn offer(&mut self, value: Value) {
        self.at_hand.push(value);
    }

    /// A mark of the available values, for [`FuncGen::leave_scope`].
    pub(super) fn scope(&self) -> usize {
        self.at_hand.len()
    }

    /// Removes all values that became available since the mark.
    pub(super) fn leave_scope(&mut self, scope: usize) {
        self.at_hand.truncate(scope);
    }

    /// Whether an instruction has the value as an operand.
    pub(super) fn is_used(&self, value: Value) -> bool {
        get(&self.used, value)
    }

    /// Whether the bits of a value are the same in every engine, even if it is or contains a NaN.
    pub(super) fn is_exact(&self, value: Value) -> bool {
        get(&self.exact, value)
            || self.func.as_const(value).is_some()
            || !holds_float(self.cx, self.func.ty(value))
    }

    /// Records that the bits of a value are certain.
    pub(super) fn set_exact(&mut self, value: Value) {
        set(&mut self.exact, value);
    }

    /// Whether the open block may execute this many more steps.
    pub(super) fn affords(&self, steps: u64) -> bool {
        steps.saturating_mul(self.repeat).saturating_add(self.steps) <= self.options.max_steps
    }
}

fn set(marks: &mut Vec<bool>, value: Value) {
    let index = value.as_u32() as usize;
    if marks.len() <= index {
        marks.resize(index + 1, false);
    }
    marks[index] = true;
}

fn get(marks: &[bool], value: Value) -> bool {
    marks.get(value.as_u32() as usize).copied().unwrap_or(false)
}

/// Names of all kinds that have to be quoted in text.
fn function_name(rng: &mut Rng, index: usize) -> String {
    match rng.below(8) {
        0 => format!("θ{index}"),
        1 => format!("f{index}!"),
        2 => format!("#f#{index}"),
        _ => format!("f{index}"),
    }
}

/// The type of a function's result: most functions return a digest of their values, so that few of them are
/// dead.
fn result_type(rng: &mut Rng, cx: &Context, palette: &Palette) -> Type {
    let plain = palette.any(rng);
    let with_digest = match rng.below(10) {
        0..2 => return plain,
        2..5 => return Type::UINT64,
        _ => cx.types.tuple(&[palette.concrete(rng), Type::UINT64]),
    };
    with_digest.unwrap_or(plain)
}

fn signature(rng: &mut Rng, cx: &Context, name: brolga_ir::Name, params: &[Type], result: Type) -> Signature {
    let object = Param { name: None, ty: cx.types.function(name) };
    let named = params.iter().enumerate().map(|(index, &ty)| {
        let name = (!rng.chance(10)).then(|| cx.names.intern(&format!("x{index}")));
        Param { name, ty }
    });
    Signature {
        params: std::iter::once(object).chain(named).collect(),
        results: vec![result],
        vararg: false,
        ..Signature::default()
    }
}
