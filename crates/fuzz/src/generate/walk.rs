//! Loops over memory and arrays: patterns that loop passes search for and that random accesses never form.
//!
//! ```text
//! %1 = malloc(n * size)        or a Vector; filled by a loop, with one value or a sequence of values
//! loop i = 1 … limit           up or down, tested first or last, the limit a constant or computed
//!    x = a[stride * i + c]     adjacent elements, every second element, reversed
//!    y = x op (b[…] | a carried sum      | a value from outside)
//!    y = if x < y; …           occasionally
//!    b[…] = y
//!    sum = sum op y
//! ```
//!
//! Every index is in bounds by construction: with `limit <= trips`, `stride * i + c` is at most the number of
//! elements. In about half of the cases a loop reads the same memory that it writes, so that accesses
//! overlap. Accesses of arrays are checked or unchecked, through `arrayref` as printed by Julia up to 1.10 or
//! `memoryref` as printed since 1.11; after the loops an index may be out of bounds.

use super::func::FuncGen;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Inst, Op, Type, Value};

/// Memory whose elements are all initialised.
#[derive(Clone, Copy)]
struct Row {
    place: Place,
    element: Type,
    count: usize,
}

#[derive(Clone, Copy)]
enum Place {
    /// The result of `malloc`, and the same as a pointer to elements.
    Raw { raw: Value, pointer: Value },
    /// A vector with checked or unchecked accesses.
    Vector { array: Value, checked: bool },
}

/// The iteration scheme of a loop.
#[derive(Clone, Copy)]
pub(super) struct Count {
    /// The maximum number of iterations; the minimum is one.
    pub(super) trips: usize,
    pub(super) limit: Value,
    pub(super) down: bool,
    pub(super) tests_first: bool,
}

/// The extra elements needed by indices beyond `stride * i`.
const MARGIN: usize = 2;
/// The approximate number of instructions per iteration.
const ROUND: u64 = 16;

impl FuncGen<'_> {
    /// One or two arrays or memories, and some loops over them.
    pub(super) fn walks(&mut self) {
        let Some(element) = self.number() else { return self.straight() };
        let count = self.rng.pick(&[6, 10, 18, 34]).copied().unwrap_or(6);
        if !self.affords(4 * ROUND * count as u64) {
            return self.straight();
        }
        let mut rows = vec![self.filled(element, count)];
        if self.rng.chance(60) {
            rows.push(self.filled(element, count));
        }
        for _ in 0..self.rng.between(1, 2) {
            self.walk(&rows);
        }
        for row in rows {
            let index = self.rng.between(1, row.count) as u128;
            let index = self.bits(Type::INT64, index);
            let value = self.load(row, index);
            self.offer(value);
            match row.place {
                Place::Raw { raw, .. } => self.free(raw),
                Place::Vector { array, .. } => self.far_element(array, row.element),
            }
        }
    }

    /// Occasionally accesses an element that is out of bounds about half of the time.
    fn far_element(&mut self, array: Value, element: Type) {
        if !self.options.features.throws || self.rng.chance(80) {
            return;
        }
        let (raw, mask, yes) =
            (self.value(Type::INT64), self.bits(Type::INT64, 31), self.bits(Type::BOOL, 1));
        let index = self.intrinsic(Intrinsic::AndInt, &[raw, mask], Type::INT64);
        self.builtin(Builtin::Arrayref, &[yes, array, index], element);
    }

    /// A type for the loops' computations.
    fn number(&mut self) -> Option<Type> {
        let narrow = |ty: &&Type| !matches!(**ty, Type::INT128 | Type::UINT128 | Type::FLOAT16);
        let all: Vec<Type> =
            self.palette.ints.iter().chain(&self.palette.floats).filter(narrow).copied().collect();
        self.rng.pick(&all).copied()
    }

    fn filled(&mut self, element: Type, count: usize) -> Row {
        let features = self.options.features;
        let is_vector = features.arrays && (!features.memory || self.rng.chance(60));
        let vector = if is_vector { self.vector(element, count) } else { None };
        let place = match vector {
            Some(array) => Place::Vector { array, checked: self.rng.chance(60) },
            None => {
                let (raw, pointer) = self.elements(element, count);
                Place::Raw { raw, pointer }
            }
        };
        let row = Row { place, element, count };
        let trips = self.bits(Type::INT64, count as u128);
        let (start, other) = (self.value(element), self.value(element));
        let same = self.rng.chance(40);
        let down = self.rng.chance(20);
        let count = Count { trips: count, limit: trips, down, tests_first: self.rng.chance(70) };
        self.counting(count, &[(start, element)], |this, index, carried| {
            this.put(row, carried[0], index);
            if same { vec![carried[0]] } else { vec![this.combine(element, carried[0], other)] }
        });
        row
    }

    /// A vector whose elements are not yet initialised.
    pub(super) fn vector(&mut self, element: Type, count: usize) -> Option<Value> {
        let types = &self.cx.types;
        let memory = types.memory(element).ok()?;
        let (reference, vector) = (types.memory_ref(element).ok()?, types.vector(element).ok()?);
        let size = types.tuple(&[Type::INT64]).ok()?;
        let (ty, length) =
            (self.func.constant(self.cx.types.type_constant(memory)), self.bits(Type::INT64, count as u128));
        let elements = self.emit_hidden(Op::Builtin(Builtin::Memorynew), &[ty, length], memory);
        let first = self.emit_hidden(Op::Builtin(Builtin::Memoryrefnew), &[elements], reference);
        let size = self.emit_hidden(Op::Builtin(Builtin::Tuple), &[length], size);
        Some(self.emit_hidden(Op::New(vector), &[first, size], vector))
    }

    fn walk(&mut self, rows: &[Row]) {
        let (Some(&from), Some(&to), Some(&beside)) =
            (self.rng.pick(rows), self.rng.pick(rows), self.rng.pick(rows))
        else {
            return;
        };
        let element = from.element;
        let stride = if self.rng.chance(80) { 1 } else { 2 };
        let trips = (from.count - MARGIN) / stride;
        let limit = if let (Place::Vector { array, .. }, 1, true) = (from.place, stride, self.rng.chance(50))
        {
            let (length, margin) = (
                self.builtin(Builtin::Arraylen, &[array], Type::INT64),
                self.bits(Type::INT64, MARGIN as u128),
            );
            self.intrinsic(Intrinsic::SubInt, &[length, margin], Type::INT64)
        } else if self.rng.chance(50) {
            self.bits(Type::INT64, trips as u128)
        } else {
            let (raw, mask) = (self.value(Type::INT64), (1 << trips.ilog2()) - 1);
            let mask = self.bits(Type::INT64, mask);
            let rest = self.intrinsic(Intrinsic::AndInt, &[raw, mask], Type::INT64);
            let one = self.bits(Type::INT64, 1);
            self.intrinsic(Intrinsic::AddInt, &[rest, one], Type::INT64)
        };
        let count = Count { trips, limit, down: self.rng.chance(20), tests_first: self.rng.chance(60) };
        let (sum, outside) = (self.value(element), self.value(element));
        let stores = self.rng.chance(75);
        let sums = self.counting(count, &[(sum, element)], |this, index, carried| {
            let at = this.index(index, stride, trips);
            let x = this.load(from, at);
            let other = match this.rng.below(4) {
                0 => carried[0],
                1 => outside,
                _ => {
                    let at = this.index(index, stride, trips);
                    this.load(beside, at)
                }
            };
            let mut y = this.combine(element, x, other);
            if this.rng.chance(30) {
                y = this.either(element, x, y);
            }
            if stores {
                let at = this.index(index, stride, trips);
                this.put(to, y, at);
            }
            vec![this.combine(element, carried[0], y)]
        });
        sums.into_iter().for_each(|sum| self.offer(sum));
    }

    /// An index that is in bounds in every iteration.
    fn index(&mut self, counter: Value, stride: usize, trips: usize) -> Value {
        let int = |this: &mut Self, op, a, b: usize| {
            let b = this.bits(Type::INT64, b as u128);
            this.intrinsic(op, &[a, b], Type::INT64)
        };
        if stride == 1 && self.rng.chance(15) {
            let last = self.bits(Type::INT64, trips as u128 + 1);
            return self.intrinsic(Intrinsic::SubInt, &[last, counter], Type::INT64);
        }
        let scaled = if stride == 1 { counter } else { int(self, Intrinsic::MulInt, counter, stride) };
        match self.rng.below(4) {
            0 => int(self, Intrinsic::AddInt, scaled, 1),
            1 => int(self, Intrinsic::AddInt, scaled, MARGIN),
            _ => scaled,
        }
    }

    /// The result of an operation such as a sum or product.
    fn combine(&mut self, ty: Type, a: Value, b: Value) -> Value {
        let ops: &[Intrinsic] = if matches!(ty, Type::FLOAT32 | Type::FLOAT64) {
            &[Intrinsic::AddFloat, Intrinsic::MulFloat, Intrinsic::SubFloat]
        } else {
            &[Intrinsic::AddInt, Intrinsic::XorInt, Intrinsic::SubInt, Intrinsic::MulInt, Intrinsic::AndInt]
        };
        let op = self.rng.pick(ops).copied().unwrap_or(ops[0]);
        self.intrinsic(op, &[a, b], ty)
    }

    /// One of two values, selected by a branch.
    fn either(&mut self, ty: Type, a: Value, b: Value) -> Value {
        let less =
            if matches!(ty, Type::FLOAT32 | Type::FLOAT64) { Intrinsic::LtFloat } else { Intrinsic::SltInt };
        let condition = self.intrinsic(less, &[a, b], Type::BOOL);
        let (then, join) = (self.func.make_block(), self.func.make_block());
        let Some(head) = self.block else { return b };
        self.branch(condition, then, join);
        self.start(then);
        let scope = self.scope();
        let other = self.combine(ty, b, a);
        self.leave_scope(scope);
        self.goto(join);
        self.start(join);
        self.phi(ty, &[(head, b), (then, other)]).1
    }

    /// A loop that consists of `body`, which gets the counter and the carried values and returns the next
    /// ones. Returns the carried values at the end; their types are given with their initial values.
    pub(super) fn counting(
        &mut self,
        count: Count,
        first: &[(Value, Type)],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let Some(before) = self.block else { return first.iter().map(|&(v, _)| v).collect() };
        let one = self.bits(Type::INT64, 1);
        let start = if count.down { count.limit } else { one };
        let [head, inside, after] = std::array::from_fn(|_| self.func.make_block());
        self.goto(head);
        let scope = self.scope();
        self.repeat *= count.trips as u64 + 1;
        self.start(head);
        let (counter_phi, counter) = self.open_phi(Type::INT64, before, start);
        let phis: Vec<(Inst, Value)> = first.iter().map(|&(v, ty)| self.open_phi(ty, before, v)).collect();
        let values: Vec<Value> = phis.iter().map(|&(_, v)| v).collect();
        let goes_on = |this: &mut Self, at: Value| {
            let ends = if count.down { [one, at] } else { [at, count.limit] };
            this.intrinsic(Intrinsic::SleInt, &ends, Type::BOOL)
        };
        if count.tests_first {
            let condition = goes_on(self, counter);
            self.branch(condition, inside, after);
            self.start(inside);
        }
        let next = body(self, counter, &values);
        let step = if count.down { Intrinsic::SubInt } else { Intrinsic::AddInt };
        let stepped = self.intrinsic(step, &[counter, one], Type::INT64);
        let mut from = self.block;
        if !count.tests_first {
            let condition = goes_on(self, stepped);
            self.branch(condition, inside, after);
            self.start(inside);
            from = Some(inside);
        }
        if let Some(from) = from {
            self.close_phi(counter_phi, from, stepped);
            phis.iter().zip(&next).for_each(|(&(phi, _), &v)| self.close_phi(phi, from, v));
            self.goto(head);
        }
        self.leave_scope(scope);
        self.repeat /= count.trips as u64 + 1;
        self.start(after);
        if count.tests_first { values } else { next }
    }

    fn load(&mut self, row: Row, index: Value) -> Value {
        match row.place {
            Place::Raw { pointer, .. } => {
                let align = self.align(row.element);
                self.intrinsic(Intrinsic::Pointerref, &[pointer, index, align], row.element)
            }
            Place::Vector { array, checked } => {
                let check = self.bits(Type::BOOL, checked.into());
                match self.reference(array, row.element, index, check) {
                    Some(reference) => {
                        let order = self.symbol("not_atomic");
                        self.builtin(Builtin::Memoryrefget, &[reference, order, check], row.element)
                    }
                    None => self.builtin(Builtin::Arrayref, &[check, array, index], row.element),
                }
            }
        }
    }

    fn put(&mut self, row: Row, value: Value, index: Value) {
        match row.place {
            Place::Raw { pointer, .. } => self.store_value(pointer, row.element, value, index),
            Place::Vector { array, checked } => {
                let check = self.bits(Type::BOOL, checked.into());
                match self.reference(array, row.element, index, check) {
                    Some(reference) => {
                        let order = self.symbol("not_atomic");
                        let operands = [reference, value, order, check];
                        self.emit_hidden(Op::Builtin(Builtin::Memoryrefset), &operands, row.element);
                    }
                    None => {
                        let ty = self.func.ty(array);
                        self.emit_hidden(Op::Builtin(Builtin::Arrayset), &[check, array, value, index], ty);
                    }
                }
            }
        }
    }

    /// Occasionally a reference to an element of a vector, through its field.
    fn reference(&mut self, array: Value, element: Type, index: Value, check: Value) -> Option<Value> {
        if self.rng.chance(60) {
            return None;
        }
        let ty = self.cx.types.memory_ref(element).ok()?;
        let field = self.symbol("ref");
        let first = self.emit_hidden(Op::Builtin(Builtin::Getfield), &[array, field], ty);
        Some(self.emit_hidden(Op::Builtin(Builtin::Memoryrefnew), &[first, index, check], ty))
    }
}
