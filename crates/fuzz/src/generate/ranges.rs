//! Loops over ranges, tuples, vectors and memories, in the idioms that Julia prints for `for x in …`.
//!
//! ```text
//!     plain                                 with flags                            by `iterate`
//!
//!     goto exit if not (start <= stop)      a  goto c if not (stop < start)       %u = iterate(r)
//! 1   %x = φ (start, %n)                    b  goto d                             goto exit if not (%u !== nothing)
//!     …                                     c  goto d                          1  %x = getfield(%u, 1)
//!     goto exit if not (%x !== stop)        d  %f = φ (b => true, c => false)     %s = getfield(%u, 2)
//!     %n = %x + step                           %i = φ (c => start)                …
//!     goto 1                                   goto exit if not !%f               %v = iterate(r, %s)
//! ```
//!
//! The test and the step precede the loop and are repeated at its latch. With flags, the φs of the item and
//! of the state have no operand for the edge on which there is no next item, as printed by Julia up to 1.10.
//! Bodies are regions with arbitrary contents, including `break` and `continue`.
//!
//! | source | done | item and state |
//! |---|---|---|
//! | `a:b` | `b < a`, later `state === b` | `a`, later `state + 1` |
//! | `a:s:b` | not (`a === b` or `(0 < s) === (a < b)`), later `state === b` | `a`, later `state + s` |
//! | a vector, a memory, a tuple | the number is not a valid index | the element, `state + 1` |
//! | `iterate` | the result is `nothing` | the result's fields |
//!
//! Starts and ends are constants or computed, including values near the limits of their type; steps are
//! positive, negative, and with the feature `throws` rarely zero, which is an `ArgumentError`. The distances
//! between them are small by construction, so loops are short.

use super::func::{FuncGen, Loop};
use super::iterate::{LAST, next_type, range_of, unit_range};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Const, Inst, Op, Type, Value};

/// The source of a loop's items.
#[derive(Clone, Copy)]
enum Source {
    /// The numbers of a range with both ends. They are fields of `range`, or known separately.
    Unit { ty: Type, start: Value, stop: Value, range: Option<Value> },
    /// The numbers of a range whose last element is known.
    Step { ty: Type, start: Value, step: Value, last: Value },
    /// The elements of a vector, with or without bounds checks.
    Vector { array: Value, element: Type, checked: bool, by_reference: bool },
    /// The elements of a memory.
    Memory { memory: Value, element: Type, checked: bool },
    /// The elements of a tuple of one type.
    Tuple { tuple: Value, element: Type, count: usize, checked: bool },
    /// The results of `iterate`, called by its types or by dispatch, with their own type or as values of
    /// unknown type.
    Iterate { range: Value, ty: Type, dynamic: bool, untyped: bool },
}

/// The printed form of a test for the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Flags,
}

/// A test for the end of a loop: its condition, and the value from which the next item is read, if there is
/// one.
struct Test {
    condition: Value,
    /// Whether the condition is true if there is no next item, rather than if there is one.
    is_done: bool,
    /// The result of `iterate`.
    result: Option<Value>,
}

/// The maximum number of iterations of each of these loops.
const MOST_TRIPS: u64 = 18;
/// The maximum number of elements of vectors, memories and tuples.
const MOST_ELEMENTS: usize = 6;
/// The number of statements of a test, a step and a call of `iterate`.
const ROUND: u64 = 25;

impl FuncGen<'_> {
    /// A loop over some source, with a region as body.
    pub(super) fn iterated_loop(&mut self, depth: usize) {
        if !self.affords(MOST_TRIPS * (self.left as u64 / 2 + ROUND)) {
            return self.straight();
        }
        let Some(source) = self.source() else { return self.straight() };
        let style = if self.rng.chance(50) { Style::Flags } else { Style::Plain };
        let carried = self.random_types(3);
        let first = self.values_for(&carried);
        let [header, latch, exit] = std::array::from_fn(|_| self.func.make_block());
        let exit_types = self.random_types(2);
        self.loops.push(Loop {
            exit,
            exit_types,
            exit_edges: Vec::new(),
            latch,
            latch_edges: Vec::new(),
            carried: carried.clone(),
            handlers: self.handlers,
        });
        let outer = self.scope();
        let (item, state) = self.advance(source, None, style);
        let Some(before) = self.block else { return };
        self.goto(header);
        self.repeat *= MOST_TRIPS;
        self.start(header);
        let item_type = self.func.ty(item);
        let (item_phi, item) = self.open_phi(item_type, before, item);
        let state_type = self.func.ty(state);
        let (state_phi, state) = self.open_phi(state_type, before, state);
        let phis: Vec<(Inst, Value)> =
            carried.iter().zip(&first).map(|(&ty, &value)| self.open_phi(ty, before, value)).collect();
        self.offer(item);
        phis.iter().for_each(|&(_, value)| self.offer(value));
        self.region(depth);
        self.continue_loop();
        self.leave_scope(outer);

        let edges = self.loops.last_mut().map(|l| std::mem::take(&mut l.latch_edges)).unwrap_or_default();
        self.open_join(latch, &carried, &edges);
        if self.block.is_some() {
            let next: Vec<Value> = self.at_hand[outer..].to_vec();
            let (next_item, next_state) = self.advance(source, Some(state), style);
            if let Some(from) = self.block {
                self.close_phi(item_phi, from, next_item);
                self.close_phi(state_phi, from, next_state);
                phis.iter().zip(&next).for_each(|(&(phi, _), &value)| self.close_phi(phi, from, value));
                self.goto(header);
            }
        }
        self.repeat /= MOST_TRIPS;
        self.leave_scope(outer);
        if let Some(Loop { exit, exit_types, exit_edges, .. }) = self.loops.pop() {
            self.open_join(exit, &exit_types, &exit_edges);
        }
    }

    // ----- tests and steps -----

    /// Leaves the loop if there is no next item; otherwise returns the item and the next state, which are
    /// available in the block that is then open.
    fn advance(&mut self, source: Source, state: Option<Value>, style: Style) -> (Value, Value) {
        let test = self.test(source, state);
        match style {
            Style::Plain => {
                let goes_on = match test.is_done {
                    true => self.intrinsic(Intrinsic::NotInt, &[test.condition], Type::BOOL),
                    false => test.condition,
                };
                let stay = self.func.make_block();
                self.exit_unless(goes_on, stay);
                self.step(source, state, test.result)
            }
            Style::Flags => self.advance_with_flags(source, state, &test),
        }
    }

    fn advance_with_flags(&mut self, source: Source, state: Option<Value>, test: &Test) -> (Value, Value) {
        let [first, second, join, stay] = std::array::from_fn(|_| self.func.make_block());
        let (end, more) = if test.is_done { (first, second) } else { (second, first) };
        self.branch(test.condition, first, second);
        let mut there = None;
        for block in [first, second] {
            self.start(block);
            let scope = self.scope();
            if block == more {
                let (item, state) = self.step(source, state, test.result);
                there = self.block.map(|from| (from, item, state));
            }
            self.leave_scope(scope);
            self.goto(join);
        }
        let (from, item, state) = there.expect("a step leaves its block open");
        self.start(join);
        let (yes, no) = (self.bits(Type::BOOL, 1), self.bits(Type::BOOL, 0));
        let (_, flag) = self.phi(Type::BOOL, &[(end, yes), (from, no)]);
        let item_type = self.func.ty(item);
        let (_, item) = self.phi(item_type, &[(from, item)]);
        let state_type = self.func.ty(state);
        let (_, state) = self.phi(state_type, &[(from, state)]);
        let goes_on = self.intrinsic(Intrinsic::NotInt, &[flag], Type::BOOL);
        self.exit_unless(goes_on, stay);
        (item, state)
    }

    fn test(&mut self, source: Source, state: Option<Value>) -> Test {
        let done = |condition| Test { condition, is_done: true, result: None };
        let more = |condition| Test { condition, is_done: false, result: None };
        match source {
            Source::Unit { ty, start, stop, range } => {
                let stop = self.field_of(range, "stop", ty).unwrap_or(stop);
                match state {
                    None => {
                        let start = self.field_of(range, "start", ty).unwrap_or(start);
                        done(self.less(ty, stop, start))
                    }
                    Some(state) => done(self.builtin(Builtin::Egal, &[state, stop], Type::BOOL)),
                }
            }
            Source::Step { ty, start, step, last } => match state {
                None => {
                    let zero = self.bits(ty, 0);
                    let only = self.builtin(Builtin::Egal, &[start, last], Type::BOOL);
                    let (up, rises) = (self.less(ty, zero, step), self.less(ty, start, last));
                    let forward = self.builtin(Builtin::Egal, &[up, rises], Type::BOOL);
                    more(self.intrinsic(Intrinsic::OrInt, &[only, forward], Type::BOOL))
                }
                Some(state) => done(self.builtin(Builtin::Egal, &[state, last], Type::BOOL)),
            },
            Source::Vector { .. } | Source::Memory { .. } => {
                let length = self.length_of(source);
                let state = state.unwrap_or_else(|| self.bits(Type::INT64, 1));
                let one = self.bits(Type::INT64, 1);
                let index = self.intrinsic(Intrinsic::SubInt, &[state, one], Type::INT64);
                let bits = [index, length].map(|v| self.intrinsic(Intrinsic::Bitcast, &[v], Type::UINT64));
                more(self.intrinsic(Intrinsic::UltInt, &bits, Type::BOOL))
            }
            Source::Tuple { count, .. } => {
                let (one, count) = (self.bits(Type::INT64, 1), self.bits(Type::INT64, count as u128));
                let state = state.unwrap_or(one);
                let low = self.intrinsic(Intrinsic::SleInt, &[one, state], Type::BOOL);
                let high = self.intrinsic(Intrinsic::SleInt, &[state, count], Type::BOOL);
                more(self.intrinsic(Intrinsic::AndInt, &[low, high], Type::BOOL))
            }
            Source::Iterate { range, ty, dynamic, .. } => {
                let operands: Vec<Value> = std::iter::once(range).chain(state).collect();
                let result = self.iterate(ty, dynamic, &operands);
                let nothing = self.func.constant(Const::Singleton(Type::NOTHING));
                let condition = self.builtin(Builtin::Egal, &[result, nothing], Type::BOOL);
                Test { condition, is_done: true, result: Some(result) }
            }
        }
    }

    /// The next item and the next state, given that there is an item.
    fn step(&mut self, source: Source, state: Option<Value>, result: Option<Value>) -> (Value, Value) {
        let one = self.bits(Type::INT64, 1);
        match source {
            Source::Unit { ty, start, range, .. } => {
                let one = self.bits(ty, 1);
                let item = match state {
                    None => self.field_of(range, "start", ty).unwrap_or(start),
                    Some(state) => self.intrinsic(Intrinsic::AddInt, &[state, one], ty),
                };
                (item, item)
            }
            Source::Step { ty, start, step, .. } => {
                let next = |this: &mut Self, state| this.intrinsic(Intrinsic::AddInt, &[state, step], ty);
                let item = state.map_or(start, |state| next(self, state));
                (item, item)
            }
            Source::Vector { .. } | Source::Memory { .. } | Source::Tuple { .. } => {
                let state = state.unwrap_or(one);
                let item = self.element(source, state);
                (item, self.intrinsic(Intrinsic::AddInt, &[state, one], Type::INT64))
            }
            Source::Iterate { untyped, .. } => {
                let two = self.bits(Type::INT64, 2);
                let pair = self.cx.types.tuple(&[Type::INT64, Type::INT64]).unwrap_or(Type::ANY);
                let result = result.unwrap_or(one);
                let (pair, field) = if untyped {
                    (result, Type::ANY)
                } else {
                    (self.emit_hidden(Op::Pi, &[result], pair), Type::INT64)
                };
                let item = self.builtin(Builtin::Getfield, &[pair, one], field);
                (item, self.builtin(Builtin::Getfield, &[pair, two], field))
            }
        }
    }

    fn iterate(&mut self, ty: Type, dynamic: bool, operands: &[Value]) -> Value {
        if dynamic {
            return self.dynamic_call("iterate", operands);
        }
        let params: Vec<Type> = [ty, Type::INT64][..operands.len()].to_vec();
        let function = self.cx.types.base_function("iterate");
        let result = next_type(self.cx).unwrap_or(Type::ANY);
        self.steps += self.repeat * ROUND;
        self.invoke_function(function, &params, operands, result)
    }

    fn field_of(&mut self, range: Option<Value>, name: &str, ty: Type) -> Option<Value> {
        let range = range?;
        let name = self.symbol(name);
        Some(self.builtin(Builtin::Getfield, &[range, name], ty))
    }

    fn less(&mut self, ty: Type, a: Value, b: Value) -> Value {
        let op = if matches!(ty, Type::UINT8 | Type::UINT64) { Intrinsic::UltInt } else { Intrinsic::SltInt };
        self.intrinsic(op, &[a, b], Type::BOOL)
    }

    fn length_of(&mut self, source: Source) -> Value {
        match source {
            Source::Vector { array, by_reference: true, .. } => {
                let Ok(sizes) = self.cx.types.tuple(&[Type::INT64]) else { return self.bits(Type::INT64, 0) };
                let (name, one) = (self.symbol("size"), self.bits(Type::INT64, 1));
                let size = self.emit_hidden(Op::Builtin(Builtin::Getfield), &[array, name], sizes);
                self.builtin(Builtin::Getfield, &[size, one], Type::INT64)
            }
            Source::Vector { array, .. } => self.builtin(Builtin::Arraylen, &[array], Type::INT64),
            Source::Memory { memory, .. } => {
                let name = self.symbol("length");
                self.builtin(Builtin::Getfield, &[memory, name], Type::INT64)
            }
            _ => self.bits(Type::INT64, 0),
        }
    }

    fn element(&mut self, source: Source, index: Value) -> Value {
        match source {
            Source::Vector { array, element, checked, by_reference: false } => {
                let check = self.bits(Type::BOOL, checked.into());
                self.builtin(Builtin::Arrayref, &[check, array, index], element)
            }
            Source::Vector { element, checked, .. } | Source::Memory { element, checked, .. } => {
                let Some(first) = self.first_reference(source) else { return index };
                self.at_reference(first, element, index, checked)
            }
            Source::Tuple { tuple, element, checked, .. } => {
                let check = self.bits(Type::BOOL, checked.into());
                self.builtin(Builtin::Getfield, &[tuple, index, check], element)
            }
            _ => index,
        }
    }

    /// The reference to the first element of a vector or memory.
    fn first_reference(&mut self, source: Source) -> Option<Value> {
        match source {
            Source::Vector { array, element, .. } => {
                let (name, ty) = (self.symbol("ref"), self.cx.types.memory_ref(element).ok()?);
                Some(self.emit_hidden(Op::Builtin(Builtin::Getfield), &[array, name], ty))
            }
            Source::Memory { memory, element, .. } => {
                let ty = self.cx.types.memory_ref(element).ok()?;
                Some(self.emit_hidden(Op::Builtin(Builtin::Memoryrefnew), &[memory], ty))
            }
            _ => None,
        }
    }

    fn at_reference(&mut self, first: Value, element: Type, index: Value, checked: bool) -> Value {
        let (ty, check) = (self.func.ty(first), self.bits(Type::BOOL, checked.into()));
        let there = self.emit_hidden(Op::Builtin(Builtin::Memoryrefnew), &[first, index, check], ty);
        let order = self.symbol("not_atomic");
        self.builtin(Builtin::Memoryrefget, &[there, order, check], element)
    }

    // ----- sources -----

    fn source(&mut self) -> Option<Source> {
        match self.rng.below(10) {
            0..3 => self.unit_range(),
            3..6 => self.step_range(),
            6 | 7 if self.options.features.arrays => self.elements_of_array(),
            8 if self.options.features.throws => self.elements_of_tuple(),
            _ => self.iterated(),
        }
    }

    /// A start value: small, near a limit of its type, or one of a few computed numbers.
    fn range_start(&mut self, ty: Type) -> Value {
        let bits = self.cx.types.primitive(ty).map_or(64, |(bits, _)| u32::from(bits));
        let unsigned = matches!(ty, Type::UINT8 | Type::UINT64);
        let mask = u128::MAX >> (128 - bits);
        let greatest = if unsigned { mask } else { mask >> 1 };
        match self.rng.below(10) {
            0 => self.bits(ty, greatest - 20),
            1 => self.bits(ty, (greatest + 1).wrapping_add(20) & mask),
            2..5 => {
                let (raw, seven) = (self.value(ty), self.bits(ty, 7));
                let some = self.intrinsic(Intrinsic::AndInt, &[raw, seven], ty);
                let more = self.bits(ty, 30);
                self.intrinsic(Intrinsic::AddInt, &[some, more], ty)
            }
            _ if unsigned => self.bits(ty, 25),
            _ => {
                let near = self.rng.between(0, 4) as u128;
                self.bits(ty, near.wrapping_sub(2) & mask)
            }
        }
    }

    /// A number from `start - behind` to `start - behind + span - 1`. `span` is a power of two.
    /// [`FuncGen::range_start`] keeps away from the limits of the type.
    fn near(&mut self, ty: Type, start: Value, span: u128, behind: u128) -> Value {
        let distance = if self.rng.chance(40) {
            let distance = self.rng.below(span as usize) as u128;
            self.bits(ty, distance)
        } else {
            let (raw, mask) = (self.value(ty), self.bits(ty, span - 1));
            self.intrinsic(Intrinsic::AndInt, &[raw, mask], ty)
        };
        let behind = self.bits(ty, behind);
        let ahead = self.intrinsic(Intrinsic::AddInt, &[start, distance], ty);
        self.intrinsic(Intrinsic::SubInt, &[ahead, behind], ty)
    }

    fn range_type(&mut self) -> Type {
        let types =
            [Type::INT64, Type::INT64, Type::INT64, Type::INT32, Type::INT8, Type::UINT8, Type::UINT64];
        self.rng.pick(&types).copied().unwrap_or(Type::INT64)
    }

    fn unit_range(&mut self) -> Option<Source> {
        let ty = self.range_type();
        let from_one = self.rng.chance(40);
        let start = if from_one { self.bits(ty, 1) } else { self.range_start(ty) };
        // An unsigned start may have fewer than four numbers before it.
        let behind = if from_one { 1 } else { 4 };
        let stop = self.near(ty, start, 16, behind);
        let stop = self.unit_stop(ty, start, stop);
        let range = match self.rng.chance(40) {
            true => {
                let range = range_of(self.cx, "UnitRange", &[ty])?;
                Some(self.emit_hidden(Op::New(range), &[start, stop], range))
            }
            false => None,
        };
        Some(Source::Unit { ty, start, stop, range })
    }

    /// The end of a range as stored by `UnitRange`: for an empty range, the number before its start.
    fn unit_stop(&mut self, ty: Type, start: Value, stop: Value) -> Value {
        let (empty, one) = (self.less(ty, stop, start), self.bits(ty, 1));
        let before = self.intrinsic(Intrinsic::SubInt, &[start, one], ty);
        self.builtin(Builtin::Ifelse, &[empty, before, stop], ty)
    }

    fn step_range(&mut self) -> Option<Source> {
        let ty = Type::INT64;
        let start = self.range_start(ty);
        let stop = self.near(ty, start, 32, 16);
        let step = if self.rng.chance(60) {
            let step = self.rng.pick(&[1, 2, 3, 7, -1, -2, -3, -5]).copied().unwrap_or(1);
            self.bits(ty, u128::from(i64::cast_unsigned(step)))
        } else {
            // One of -3, -1, 1, 3, or a number from -4 to 3 including zero.
            let zero_too = self.options.features.throws && self.rng.chance(30);
            let (raw, four) = (self.value(ty), self.bits(ty, 4));
            let mask = self.bits(ty, if zero_too { 7 } else { 6 });
            let some = self.intrinsic(Intrinsic::AndInt, &[raw, mask], ty);
            let step = self.intrinsic(Intrinsic::SubInt, &[some, four], ty);
            if zero_too {
                step
            } else {
                let one = self.bits(ty, 1);
                self.intrinsic(Intrinsic::OrInt, &[step, one], ty)
            }
        };
        let function = self.cx.types.function_of(LAST);
        self.steps += self.repeat * ROUND;
        let last = self.invoke_function(function, &[ty; 3], &[start, step, stop], ty);
        if self.rng.chance(50) {
            return Some(Source::Step { ty, start, step, last });
        }
        let range = range_of(self.cx, "StepRange", &[ty, ty])?;
        let range = self.emit_hidden(Op::New(range), &[start, step, last], range);
        let last = self.field_of(Some(range), "stop", ty)?;
        Some(Source::Step { ty, start, step, last })
    }

    fn elements_of_array(&mut self) -> Option<Source> {
        let element = match self.rng.below(6) {
            0 if self.options.features.dynamic => Type::ANY,
            0 | 1 => self.palette.concrete(self.rng),
            _ => self.palette.float_or_int(self.rng),
        };
        let count = self.rng.below(MOST_ELEMENTS + 1);
        let checked = self.rng.chance(60);
        let values: Vec<Value> = (0..count).map(|_| self.value_for(element)).collect();
        let source = if self.rng.chance(70) {
            let array = self.vector(element, count)?;
            Source::Vector { array, element, checked, by_reference: self.rng.chance(50) }
        } else {
            let ty = self.cx.types.memory(element).ok()?;
            let (of, length) =
                (self.func.constant(self.cx.types.type_constant(ty)), self.bits(Type::INT64, count as u128));
            let memory = self.emit_hidden(Op::Builtin(Builtin::Memorynew), &[of, length], ty);
            Source::Memory { memory, element, checked }
        };
        let first = self.first_reference(source)?;
        for (index, value) in values.into_iter().enumerate() {
            let (index, check) = (self.bits(Type::INT64, index as u128 + 1), self.bits(Type::BOOL, 1));
            let ty = self.func.ty(first);
            let there = self.emit_hidden(Op::Builtin(Builtin::Memoryrefnew), &[first, index, check], ty);
            let order = self.symbol("not_atomic");
            self.emit_hidden(Op::Builtin(Builtin::Memoryrefset), &[there, value, order, check], element);
        }
        Some(source)
    }

    fn elements_of_tuple(&mut self) -> Option<Source> {
        let (element, count) = (self.palette.scalar(self.rng), self.rng.between(1, MOST_ELEMENTS));
        let ty = self.cx.types.tuple(&vec![element; count]).ok()?;
        let values: Vec<Value> = (0..count).map(|_| self.value(element)).collect();
        let tuple = self.emit_hidden(Op::Builtin(Builtin::Tuple), &values, ty);
        Some(Source::Tuple { tuple, element, count, checked: self.rng.chance(70) })
    }

    fn iterated(&mut self) -> Option<Source> {
        let ty = unit_range(self.cx);
        let start = self.range_start(Type::INT64);
        let stop = self.near(Type::INT64, start, 16, 4);
        let stop = self.unit_stop(Type::INT64, start, stop);
        let range = self.emit_hidden(Op::New(ty), &[start, stop], ty);
        let dynamic = self.options.features.dynamic && self.rng.chance(40);
        let untyped = dynamic && self.rng.chance(50);
        Some(Source::Iterate { range, ty, dynamic, untyped })
    }
}
