//! The state of a function under construction, and the steps that all statements share.
//!
//! Invariants: `block`, if any, is placed, open (it has no terminator), and every value of `at_hand`
//! dominates its end. `repeat` bounds the executions of the open block, `steps` the instructions that a call
//! executes.

use super::palette::{Palette, holds_float};
use super::{Known, Options};
use crate::rng::Rng;
use brolga_ir::builtin::Builtin;
use brolga_ir::func::CalleeData;
use brolga_ir::hints::Inlining;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Callee, Const, Context, Func, Inst, Level, Op, Param, Signature, Type, Value};

/// How deep regions nest.
pub(super) const MAX_DEPTH: usize = 4;
/// A recursive function calls itself at most this often in one activation,
const SELF_CALLS: u32 = 2;
/// and at most this deep: the number that falls starts at three or less.
const SELF_DEPTH_MASK: u128 = 3;
/// Hence at most 1 + 2 + 4 + 8 activations.
const SELF_ACTIVATIONS: u64 = 15;

/// A hint now and then. No dice: with hints a seed gives the program that it gives without.
fn inlining(number: usize) -> Option<Inlining> {
    match number % 8 {
        1 => Some(Inlining::Always),
        5 => Some(Inlining::Never),
        _ => None,
    }
}

/// Memory that may be used at the open block.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) pointer: Value,
    pub(super) element: Type,
    /// How many elements, a power of two.
    pub(super) count: usize,
}

/// A loop around the open block: where `break` and `continue` go, and what they carry.
pub(super) struct Loop {
    pub(super) exit: Block,
    pub(super) exit_types: Vec<Type>,
    pub(super) exit_edges: Vec<(Block, Vec<Value>)>,
    pub(super) latch: Block,
    pub(super) latch_edges: Vec<(Block, Vec<Value>)>,
    pub(super) carried: Vec<Type>,
    /// How many handlers were installed outside of the loop.
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
    /// The open block; `None` where control does not come.
    pub(super) block: Option<Block>,
    pub(super) at_hand: Vec<Value>,
    pub(super) memories: Vec<Memory>,
    /// Mutable objects that may be used at the open block.
    pub(super) objects: Vec<Value>,
    pub(super) loops: Vec<Loop>,
    pub(super) repeat: u64,
    pub(super) steps: u64,
    /// How many more instructions may be made.
    pub(super) left: usize,
    /// How many handlers are installed.
    pub(super) handlers: usize,
    /// How the function calls itself, and how often it still may.
    pub(super) recursion: Option<(Known, Value, u32)>,
    /// Values that something uses, and values whose float bits are certain, by number.
    used: Vec<bool>,
    exact: Vec<bool>,
}

impl<'a> FuncGen<'a> {
    /// Makes function number `index` of a module. Gives what others need to call it, unless it may not be called.
    pub(super) fn generate(
        rng: &'a mut Rng,
        cx: &'a Context,
        palette: &'a Palette,
        known: &'a [Known],
        options: &'a Options,
        index: usize,
    ) -> (Func, Option<Known>) {
        let name = cx.names.intern(&function_name(rng, index));
        // A function without callers may rely on the bits of its floats.
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

    /// Returns at once if the falling number is zero, else notes how the function may call itself.
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

    /// Appends an instruction without result to the open block; without one nothing happens.
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

    /// Appends an instruction with one result, which is then at hand.
    pub(super) fn emit(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let value = self.emit_hidden(op, args, ty);
        self.offer(value);
        value
    }

    /// Appends an instruction with one result that later statements do not find.
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

    /// Calls a function by its argument types. A result of type `Union{}` is not put at hand. Two calls of eight say something about
    /// inlining.
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

    /// The same for a function of any module, by its type.
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

    /// A φ at the head of the open block, which holds nothing but φs yet.
    pub(super) fn phi(&mut self, ty: Type, edges: &[(Block, Value)]) -> (Inst, Value) {
        let (blocks, values): (Vec<Block>, Vec<Value>) = edges.iter().copied().unzip();
        let inst = self.emit_void(Op::Phi, &values, &blocks, &[ty]);
        let value = self.func.result(inst).expect("a φ has one result");
        if values.iter().all(|&v| self.is_exact(v)) {
            set(&mut self.exact, value);
        }
        (inst, value)
    }

    /// A φ whose edges are not all known yet: nothing is assumed about its bits.
    pub(super) fn open_phi(&mut self, ty: Type, from: Block, first: Value) -> (Inst, Value) {
        let inst = self.emit_void(Op::Phi, &[first], &[from], &[ty]);
        (inst, self.func.result(inst).expect("a φ has one result"))
    }

    /// Adds an edge to a φ that [`FuncGen::open_phi`] made.
    pub(super) fn close_phi(&mut self, phi: Inst, from: Block, value: Value) {
        set(&mut self.used, value);
        self.func.add_phi_edge(phi, from, value);
    }

    // ----- what is at hand -----

    /// Puts a value at hand.
    pub(super) fn offer(&mut self, value: Value) {
        self.at_hand.push(value);
    }

    /// Marks what is at hand now, for [`FuncGen::leave_scope`].
    pub(super) fn scope(&self) -> usize {
        self.at_hand.len()
    }

    /// Takes everything away that came to hand since the mark.
    pub(super) fn leave_scope(&mut self, scope: usize) {
        self.at_hand.truncate(scope);
    }

    /// Whether some instruction has the value as operand.
    pub(super) fn is_used(&self, value: Value) -> bool {
        get(&self.used, value)
    }

    /// Whether the bits of a value are the same in every engine, even if it is or holds a NaN.
    pub(super) fn is_exact(&self, value: Value) -> bool {
        get(&self.exact, value)
            || self.func.as_const(value).is_some()
            || !holds_float(self.cx, self.func.ty(value))
    }

    /// Notes that the bits of a value are certain.
    pub(super) fn set_exact(&mut self, value: Value) {
        set(&mut self.exact, value);
    }

    /// Whether so many more steps may be taken in the open block.
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

/// Names of all the kinds that the text has to quote.
fn function_name(rng: &mut Rng, index: usize) -> String {
    match rng.below(8) {
        0 => format!("θ{index}"),
        1 => format!("f{index}!"),
        2 => format!("#f#{index}"),
        _ => format!("f{index}"),
    }
}

/// The type of a function's result: most functions give a digest of what they made, so that little of it is dead.
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
