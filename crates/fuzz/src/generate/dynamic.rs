//! Calls of operators on values whose types are known only at run time.
//!
//! ```text
//! %3 = dynamic Base.:+(%1, %2)::Any      numbers of any types; a method of the module, or the rules of Base
//! %4 = dynamic Base.:<(%3, 2.5)::Any     asserted to be a Bool, or that and a branch
//! %5 = Core.isa(%3, Float32)             a value narrowed to its type
//!
//! loop      acc = φ (first, …)::Any      numbers of one type …
//!           acc = acc + x
//!           acc = i === k ? y : acc      … until one iteration makes it a value of another type
//! ```
//!
//! Code for such calls tests for the likely types and has a fallback for the others, so the types of values
//! have to change where the tests are: between calls of a function (arguments of type `Any`), on the paths to
//! a φ, and between iterations of a loop.
//!
//! Most values are numbers, so that most calls return. The bits of a NaN in a value of type `Any` are never
//! considered certain.

use super::func::FuncGen;
use super::walk::Count;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Const, Op, Type, Value};

/// Operators whose results are numbers; the first ones accept all numbers.
const NUMBERS: [&str; 12] = ["+", "-", "*", "+", "-", "*", "min", "max", "/", "&", "|", "⊻"];
/// The number of these that do not throw for floats.
const OF_FLOATS: usize = 9;
const DIVISIONS: [&str; 3] = ["÷", "%", "rem"];
const TRUTHS: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];
const UNARY: [&str; 3] = ["-", "abs", "+"];

/// The number of statements of the longest operator method, including the call.
const CALL_STEPS: u64 = 8;
/// The number of calls and other statements per loop iteration.
const ROUND: u64 = 60;
/// The maximum number of iterations.
const MOST_ROUNDS: usize = 8;

impl FuncGen<'_> {
    /// A statement on values of any type.
    pub(super) fn dynamic_statement(&mut self) {
        if !self.affords(CALL_STEPS) {
            return self.straight();
        }
        match self.rng.below(10) {
            0..5 => {
                let (x, y) = (self.operand(), self.operand());
                self.number_of(x, y);
            }
            5 => {
                let (x, name) = (self.operand(), self.rng.pick(&UNARY).copied().unwrap_or("-"));
                self.dynamic_call(name, &[x]);
            }
            6 | 7 => {
                let (x, y) = (self.operand(), self.operand());
                let truth = self.truth_of(x, y);
                self.asserted(truth, Type::BOOL);
            }
            8 => {
                let (a, b) = (self.operand(), self.operand());
                self.mixed(a, b);
            }
            _ => {
                let value = self.operand();
                let ty = self.number_type();
                if self.options.features.throws && self.rng.chance(15) {
                    self.asserted(value, ty);
                } else {
                    let asked = self.func.constant(self.cx.types.type_constant(ty));
                    self.builtin(Builtin::Isa, &[value, asked], Type::BOOL);
                }
            }
        }
    }

    /// A call resolved by the types of its operands.
    pub(super) fn dynamic_call(&mut self, name: &str, operands: &[Value]) -> Value {
        let function = self.cx.types.base_function(name);
        let object = self.func.constant(Const::Singleton(function));
        let operands: Vec<Value> = std::iter::once(object).chain(operands.iter().copied()).collect();
        self.steps += self.repeat * CALL_STEPS;
        self.emit(Op::Call, &operands, Type::ANY)
    }

    /// A value of unknown type, or a number of a known type.
    fn operand(&mut self) -> Value {
        match self.rng.below(10) {
            0..6 => match self.find(Type::ANY) {
                Some(value) => value,
                None => self.value(Type::ANY),
            },
            6 => self.value(Type::ANY),
            7 => self.literal(Type::ANY),
            8 if self.palette.own.is_some() => {
                let own = self.palette.own.unwrap_or(Type::INT64);
                self.value(own)
            }
            _ => {
                let ty = self.number_type();
                self.value(ty)
            }
        }
    }

    /// A type of numbers; the most common types are chosen more often.
    fn number_type(&mut self) -> Type {
        match self.rng.below(8) {
            0..3 => Type::INT64,
            3 | 4 if !self.palette.floats.is_empty() => Type::FLOAT64,
            5 => Type::BOOL,
            6 => self.palette.float_or_int(self.rng),
            _ => self.palette.int(self.rng),
        }
    }

    fn number_of(&mut self, x: Value, y: Value) -> Value {
        let throws = self.options.features.throws;
        let names: &[&str] = match self.rng.below(16) {
            0 if throws => &DIVISIONS,
            1 if throws => &NUMBERS,
            _ => &NUMBERS[..OF_FLOATS],
        };
        let name = self.rng.pick(names).copied().unwrap_or("+");
        self.dynamic_call(name, &[x, y])
    }

    fn truth_of(&mut self, x: Value, y: Value) -> Value {
        let name = self.rng.pick(&TRUTHS).copied().unwrap_or("<");
        self.dynamic_call(name, &[x, y])
    }

    fn asserted(&mut self, value: Value, ty: Type) -> Value {
        let asked = self.func.constant(self.cx.types.type_constant(ty));
        self.builtin(Builtin::Typeassert, &[value, asked], ty)
    }

    /// One of two values, as type `Any` regardless of their types.
    pub(super) fn mixed(&mut self, a: Value, b: Value) -> Value {
        let exact = self.is_exact(a) && self.is_exact(b);
        let condition = self.value(Type::BOOL);
        let chosen = self.builtin(Builtin::Ifelse, &[condition, a, b], Type::ANY);
        if exact {
            self.set_exact(chosen);
        }
        chosen
    }

    /// Tests the type of a value of type `Any`, and continues with the value narrowed to that type.
    pub(super) fn split_any(&mut self, depth: usize) {
        let Some(value) = self.find(Type::ANY) else { return self.dynamic_statement() };
        let ty = self.number_type();
        let asked = self.func.constant(self.cx.types.type_constant(ty));
        let is_it = self.builtin(Builtin::Isa, &[value, asked], Type::BOOL);
        let (then, otherwise, join) =
            (self.func.make_block(), self.func.make_block(), self.func.make_block());
        let types = self.random_types(2);
        let mut edges = Vec::new();
        self.branch(is_it, then, otherwise);
        let scope = self.scope();
        self.start(then);
        let exact = self.is_exact(value);
        let narrow = self.emit(Op::Pi, &[value], ty);
        if exact {
            self.set_exact(narrow);
        }
        self.region(depth);
        self.go_to_join(join, &types, &mut edges);
        self.leave_scope(scope);
        self.arm(otherwise, depth, join, &types, &mut edges);
        self.open_join(join, &types, &edges);
    }

    /// A loop over values of type `Any`, one of which gets another type in one iteration.
    pub(super) fn dynamic_loop(&mut self) {
        let trips = self.rng.between(2, MOST_ROUNDS);
        if !self.affords(trips as u64 * ROUND) {
            return self.straight();
        }
        let first: Vec<(Value, Type)> =
            (0..self.rng.between(1, 3)).map(|_| (self.operand(), Type::ANY)).collect();
        let (outside, other) = (self.operand(), self.operand());
        let limit = if self.rng.chance(50) {
            self.bits(Type::INT64, trips as u128)
        } else {
            let (raw, mask) = (self.value(Type::INT64), self.bits(Type::INT64, (1 << trips.ilog2()) - 1));
            let rest = self.intrinsic(Intrinsic::AndInt, &[raw, mask], Type::INT64);
            let one = self.bits(Type::INT64, 1);
            self.intrinsic(Intrinsic::AddInt, &[rest, one], Type::INT64)
        };
        let count = Count { trips, limit, down: self.rng.chance(10), tests_first: self.rng.chance(60) };
        let round = self.rng.between(0, trips) as u128;
        let round = self.bits(Type::INT64, round);
        let changed = self.rng.below(first.len());
        let ends = self.counting(count, &first, |this, index, carried| {
            let mut values = carried.to_vec();
            values.push(outside);
            for _ in 0..this.rng.between(1, 3) {
                let (x, y) = (this.one_of(&values, index), this.one_of(&values, index));
                let made = this.number_of(x, y);
                values.push(made);
            }
            if this.rng.chance(60) {
                let chosen = this.by_truth(&values, index);
                values.push(chosen);
            }
            let mut next: Vec<Value> = carried.iter().map(|_| this.newest(&values)).collect();
            let now = this.builtin(Builtin::Egal, &[index, round], Type::BOOL);
            next[changed] = this.builtin(Builtin::Ifelse, &[now, other, next[changed]], Type::ANY);
            next
        });
        ends.into_iter().for_each(|end| self.offer(end));
    }

    /// A value in a loop, the loop's counter, or a constant.
    fn one_of(&mut self, values: &[Value], index: Value) -> Value {
        match self.rng.below(10) {
            0 => index,
            1 => self.literal(Type::ANY),
            _ => self.newest(values),
        }
    }

    /// A value, more often a recent one.
    fn newest(&mut self, values: &[Value]) -> Value {
        let from = if self.rng.chance(50) { values.len() / 2 } else { 0 };
        self.rng.pick(&values[from..]).copied().unwrap_or(values[0])
    }

    /// A value, or one computed from it, by a branch on a comparison.
    fn by_truth(&mut self, values: &[Value], index: Value) -> Value {
        let (x, y) = (self.one_of(values, index), self.one_of(values, index));
        let truth = self.truth_of(x, y);
        let truth = self.asserted(truth, Type::BOOL);
        let (then, join) = (self.func.make_block(), self.func.make_block());
        let Some(head) = self.block else { return x };
        self.branch(truth, then, join);
        self.start(then);
        let scope = self.scope();
        let made = self.number_of(y, x);
        self.leave_scope(scope);
        self.goto(join);
        self.start(join);
        self.phi(Type::ANY, &[(head, x), (then, made)]).1
    }

    /// Bits that distinguish a value of type `Any` from others if it is a number of a common type.
    pub(super) fn any_as_uint64(&mut self, value: Value) -> Value {
        let (join, mut edges) = (self.func.make_block(), Vec::new());
        let exact = self.is_exact(value);
        for ty in [Type::INT64, Type::FLOAT64, Type::BOOL, Type::FLOAT32, Type::INT32] {
            if matches!(ty, Type::FLOAT64 | Type::FLOAT32) && self.palette.floats.is_empty() {
                continue;
            }
            let asked = self.func.constant(self.cx.types.type_constant(ty));
            let is_it = self.emit_hidden(Op::Builtin(Builtin::Isa), &[value, asked], Type::BOOL);
            let (then, otherwise) = (self.func.make_block(), self.func.make_block());
            self.branch(is_it, then, otherwise);
            let scope = self.scope();
            self.start(then);
            let narrow = self.emit_hidden(Op::Pi, &[value], ty);
            if exact {
                self.set_exact(narrow);
            }
            if let (Some(bits), Some(here)) = (self.as_uint64(narrow), self.block) {
                edges.push((here, bits));
            }
            self.goto(join);
            self.leave_scope(scope);
            self.start(otherwise);
        }
        let rest = self.bits(Type::UINT64, 77);
        edges.extend(self.block.map(|here| (here, rest)));
        self.goto(join);
        self.start(join);
        self.phi(Type::UINT64, &edges).1
    }
}
