//! The interpreter's main loop: frames, control flow, exceptions.
//!
//! ```text
//! step:  statement ──► Flow ─┬─ Value, Values   stored; next statement
//!                            ├─ Undefined       result marked undefined; next statement
//!                            ├─ Jump            φ of the target, in parallel; its first other statement
//!                            ├─ Called          a frame was pushed; its return resumes here
//!                            └─ Return          the frame is popped; its `Then` handles the results
//!        exception ──► innermost handler: frames above it are popped, control continues at its catch block
//! ```
//!
//! A token of `enter` has a serial number, so each execution of an `enter` is a separate handler.

use super::error::{At, Eval, Fault, InterpError, Outcome, Stop};
use super::jobs::Waiting;
use super::places::{Modify, Place};
use super::value::{Token, Val};
use super::{Interp, shape};
use brolga_ir::constant::Const;
use brolga_ir::entity::{Block, FuncId, Inst, Value};
use brolga_ir::func::{Func, ValueDef};
use brolga_ir::op::{Level, Op, REACHED, UNDEFINED};
use brolga_ir::types::{LowType, Type};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

/// The maximum nesting of aggregate constants; text allows less.
const MAX_CONST_DEPTH: usize = 512;

/// A running function.
pub(super) struct Frame<'m> {
    pub(super) id: FuncId,
    pub(super) func: &'m Func,
    block: Block,
    /// The current statement; in a calling frame, the call.
    inst: Option<Inst>,
    values: Vec<Option<Val>>,
    /// The value stored by each ϒ, with a serial number: φᶜ takes the latest.
    upsilons: FxHashMap<Inst, (u64, Option<Val>)>,
    /// The addresses of the stack slots.
    pub(super) slots: Vec<u64>,
    then: Then,
}

/// What happens to a call's results when it returns.
#[derive(Clone, Debug)]
pub(super) enum Then {
    /// They become the results of the calling statement.
    Assign,
    /// The result replaces the old value in a place.
    Modify(Box<Modify>),
    /// They are returned to a C function that called the program.
    C(Box<Waiting>),
}

/// An installed exception handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handler {
    frame: usize,
    catch: Block,
    token: Token,
}

/// The outcome of a statement.
#[derive(Clone, Debug)]
pub(super) enum Flow {
    Value(Val),
    Values(Vec<Val>),
    Undefined,
    Jump(Block),
    Called,
    Return(Vec<Val>),
}

impl Flow {
    pub(super) const NOTHING: Flow = Flow::Value(Val::NOTHING);
}

impl<'m> Interp<'m> {
    pub(super) fn run_from(
        &mut self,
        start: impl FnOnce(&mut Self) -> Eval<Flow>,
    ) -> Result<Vec<Val>, Outcome> {
        let mut flow = start(self);
        loop {
            let next = match flow {
                Ok(Flow::Value(val)) if self.frames.is_empty() => return Ok(vec![val]),
                Ok(Flow::Return(vals) | Flow::Values(vals)) if self.frames.is_empty() => return Ok(vals),
                Ok(flow) => self.apply_flow(flow),
                Err(stop) => Err(stop),
            };
            flow = match next {
                Ok(Some(vals)) => return Ok(vals),
                Ok(None) => self.step(),
                Err(Stop::Throw(exception)) => self.catch(exception)?,
                Err(stop) => return Err(self.outcome_without_place(stop)),
            };
        }
    }

    /// Applies the outcome of a statement. `Some` when the outermost function returned.
    fn apply_flow(&mut self, flow: Flow) -> Eval<Option<Vec<Val>>> {
        match flow {
            Flow::Value(val) => self.advance(Some(vec![val]))?,
            Flow::Values(vals) => self.advance(Some(vals))?,
            Flow::Undefined => self.advance(None)?,
            Flow::Jump(block) => self.enter_block(block)?,
            Flow::Called => {}
            Flow::Return(vals) => {
                let depth = self.frames.len();
                if self.handlers.last().is_some_and(|h| h.frame + 1 >= depth) {
                    return Err(Fault::Handlers.into());
                }
                self.check_results(&vals)?;
                let Some(frame) = self.pop_frame() else { return Err(Fault::NoTerminator.into()) };
                let vals = match frame.then {
                    Then::Assign => vals,
                    // These lead to a call or a value, so the recursion is one level deep.
                    Then::Modify(modify) => {
                        let new = vals.into_iter().next().unwrap_or(Val::NOTHING);
                        let flow = self.finish_modify(*modify, new)?;
                        return self.apply_flow(flow);
                    }
                    Then::C(waiting) => {
                        let flow = self.return_to_c(*waiting, &vals)?;
                        return self.apply_flow(flow);
                    }
                };
                if self.frames.is_empty() {
                    return Ok(Some(vals));
                }
                self.advance(Some(vals))?;
            }
        }
        Ok(None)
    }

    /// Unwinds to the innermost handler, or to a C function inside it; an error if there is neither.
    fn catch(&mut self, exception: Val) -> Result<Eval<Flow>, Outcome> {
        if let Some(&called) = self.c_frames.last()
            && self.handlers.last().is_none_or(|handler| handler.frame < called)
        {
            while self.frames.len() > called + 1 {
                self.pop_frame();
            }
            if let Some(Frame { then: Then::C(waiting), .. }) = self.pop_frame() {
                return Ok(self.throw_to_c(*waiting, exception));
            }
        }
        let Some(handler) = self.handlers.pop() else { return Err(Outcome::Thrown(exception)) };
        while self.frames.len() > handler.frame + 1 {
            self.pop_frame();
        }
        self.exceptions.push(exception);
        Ok(Ok(Flow::Jump(handler.catch)))
    }

    // ----- frames -----

    /// Pushes a function's frame; `args` start with the function object in high IR.
    pub(super) fn push_call(&mut self, id: FuncId, mut args: Vec<Val>, then: Then) -> Eval<Flow> {
        let func = &self.module[id];
        let bytes = func.value_count() as u64 * size_of::<Option<Val>>() as u64;
        let stack_bytes = self.stack_bytes.saturating_add(bytes);
        if self.frames.len() >= self.options.max_depth || stack_bytes > self.options.max_stack_bytes {
            return Err(self.exception("StackOverflowError", Vec::new()));
        }
        if !self.checked.contains(&id) {
            shape::check(func)?;
            self.checked.insert(id);
        }
        let params = &func.sig.params;
        if func.sig.vararg && func.level == Level::High && !params.is_empty() {
            let fixed = params.len() - 1;
            if args.len() < fixed {
                return Err(Fault::ArgumentCount { expected: fixed, given: args.len() }.into());
            }
            let rest = args.split_off(fixed);
            args.push(self.new_tuple(rest)?);
        }
        if args.len() != params.len() {
            return Err(Fault::ArgumentCount { expected: params.len(), given: args.len() }.into());
        }
        // An operand that does not have the type asserted by its `invoke` throws. A call from outside has no
        // such statement.
        let is_asserted = func.level == Level::High && !self.frames.is_empty();
        for (arg, param) in args.iter().zip(params) {
            if is_asserted && !self.is_a(arg, param.ty) {
                return Err(self.type_error("typeassert", param.ty, arg.clone()));
            }
            self.check_type(arg, param.ty)?;
        }
        let mut values = vec![None; func.value_count()];
        for (&value, arg) in func.params().iter().zip(args) {
            values[value.index()] = Some(arg);
        }
        let Some(entry) = func.entry() else { return Err(Fault::NoTerminator.into()) };
        let mut slots = Vec::new();
        for (_, slot) in func.slots() {
            // A slot that cannot be allocated is a stack overflow.
            match self.memory.allocate(u64::from(slot.size), 1 << slot.align_log2.min(12)) {
                Ok(address) => slots.push(address),
                Err(_) => {
                    for address in slots {
                        self.memory.free(address)?;
                    }
                    return Err(self.exception("StackOverflowError", Vec::new()));
                }
            }
        }
        self.stack_bytes = stack_bytes;
        self.note_entry(id, entry);
        self.frames.push(Frame {
            id,
            func,
            block: entry,
            inst: func.first_inst(entry),
            values,
            upsilons: FxHashMap::default(),
            slots,
            then,
        });
        Ok(Flow::Called)
    }

    /// Removes the innermost frame with its stack slots.
    pub(super) fn pop_frame(&mut self) -> Option<Frame<'m>> {
        let frame = self.frames.pop()?;
        if let Then::C(_) = frame.then {
            self.c_frames.pop();
        }
        self.stack_bytes -= frame.values.len() as u64 * size_of::<Option<Val>>() as u64;
        for &address in &frame.slots {
            // A faulty program may have freed the slot already.
            let _ = self.memory.free(address);
        }
        Some(frame)
    }

    /// Makes the innermost frame, which was just pushed, return to a C function.
    pub(super) fn wait_for_innermost(&mut self, waiting: Waiting) -> Eval<()> {
        self.frame_mut()?.then = Then::C(Box::new(waiting));
        self.c_frames.push(self.frames.len() - 1);
        Ok(())
    }

    pub(super) fn frame(&self) -> Eval<&Frame<'m>> {
        self.frames.last().ok_or(Stop::Fault(Fault::NoTerminator))
    }

    fn frame_mut(&mut self) -> Eval<&mut Frame<'m>> {
        self.frames.last_mut().ok_or(Stop::Fault(Fault::NoTerminator))
    }

    /// The current statement.
    pub(super) fn at(&self) -> Option<At> {
        let frame = self.frames.last()?;
        Some(At {
            function: self.module[frame.id].symbol(&self.module.cx),
            block: frame.block,
            inst: frame.inst,
            place: frame.inst.map(|i| frame.func.place(i)).unwrap_or_default(),
        })
    }

    fn check_results(&self, vals: &[Val]) -> Eval<()> {
        let results = &self.frame()?.func.sig.results;
        if results.len() != vals.len() {
            return Err(Fault::OperandCount { op: "return".to_owned(), given: vals.len() }.into());
        }
        results.iter().zip(vals).try_for_each(|(&ty, val)| self.check_type(val, ty))
    }

    /// A fault unless the value has the type stated in the IR.
    pub(super) fn check_type(&self, val: &Val, ty: Type) -> Eval<()> {
        if self.is_a(val, ty) {
            return Ok(());
        }
        Err(Fault::TypeMismatch { expected: self.type_text(ty), given: self.type_text(val.ty(self.types())) }
            .into())
    }

    /// `isa`. Low pointers of all classes are plain addresses here, so each is an instance of the others.
    pub(super) fn is_a(&self, val: &Val, ty: Type) -> bool {
        let given = val.ty(self.types());
        let is_pointer = |ty: Type| matches!(ty.as_low(), Some(LowType::Ptr(_)));
        given == ty || self.types().is_subtype(given, ty) || is_pointer(given) && is_pointer(ty)
    }

    // ----- statements -----

    /// Stores the results of the statement and advances to the next one. `None` leaves them undefined.
    fn advance(&mut self, vals: Option<Vec<Val>>) -> Eval<()> {
        let frame = self.frame()?;
        let (func, Some(inst)) = (frame.func, frame.inst) else { return Err(Fault::NoTerminator.into()) };
        let results = func.results(inst);
        match vals {
            // A statement without results in the IR may still compute one.
            Some(vals) if results.len() > 0 => {
                if results.len() != vals.len() {
                    return Err(Fault::OperandCount { op: "result".to_owned(), given: vals.len() }.into());
                }
                for (value, val) in results.zip(vals) {
                    // In high IR the row's type is an assertion.
                    if func.level == Level::High && !self.is_a(&val, func.ty(value)) {
                        return Err(self.type_error("typeassert", func.ty(value), val));
                    }
                    self.check_type(&val, func.ty(value))?;
                    self.frame_mut()?.values[value.index()] = Some(val);
                }
            }
            Some(_) => {}
            None => {
                for value in results {
                    self.frame_mut()?.values[value.index()] = None;
                }
            }
        }
        self.frame_mut()?.inst = func.next_inst(inst);
        Ok(())
    }

    /// Evaluates the φ of a block in parallel and moves to its first other statement.
    fn enter_block(&mut self, block: Block) -> Eval<()> {
        let frame = self.frame()?;
        let (func, from) = (frame.func, frame.block);
        let mut at = func.first_inst(block);
        let mut vals = Vec::new();
        while let Some(inst) = at.filter(|&i| func.op(i) == Op::Phi) {
            self.spend()?;
            let edge = func.phi_edges(inst).find(|&(pred, _)| pred == from);
            let val = match edge {
                Some((_, value)) => self.lookup(value)?,
                None => None,
            };
            let Some(result) = func.result(inst) else {
                return Err(Fault::OperandCount { op: "φ".to_owned(), given: 0 }.into());
            };
            vals.push((result, val));
            at = func.next_inst(inst);
        }
        let frame = self.frame_mut()?;
        frame.block = block;
        frame.inst = at;
        let id = frame.id;
        self.note_entry(id, block);
        for (result, val) in vals {
            if let Some(val) = &val {
                self.check_type(val, func.ty(result))?;
            }
            self.frame_mut()?.values[result.index()] = val;
        }
        Ok(())
    }

    /// Counts entries into a block, if that is enabled.
    fn note_entry(&mut self, func: FuncId, block: Block) {
        if let Some(entered) = &mut self.entered {
            *entered.entry((func, block)).or_insert(0) += 1;
        }
    }

    pub(super) fn spend(&mut self) -> Eval<()> {
        if self.steps >= self.options.max_steps {
            return Err(Stop::OutOfFuel);
        }
        self.steps += 1;
        Ok(())
    }

    /// Spends units of the fuel.
    pub(super) fn spend_fuel(&mut self, units: u32) -> Eval<Flow> {
        self.fuel += u64::from(units);
        if self.fuel > self.options.max_fuel { Err(Stop::OutOfFuel) } else { Ok(Flow::NOTHING) }
    }

    fn step(&mut self) -> Eval<Flow> {
        self.spend()?;
        let frame = self.frame()?;
        let (func, Some(inst)) = (frame.func, frame.inst) else { return Err(Fault::NoTerminator.into()) };
        match func.op(inst) {
            Op::Phi => Err(Fault::PhiNotAtHead.into()),
            Op::Copy => self.pass_on(func, inst),
            Op::Goto => self.target(func, inst, 0),
            Op::Branch => {
                let [condition] = self.operands(func, inst)?;
                let taken = match condition {
                    Val::Bits { ty: Type::BOOL | Type::I8, bits: bits @ 0..=1 } => bits == 1,
                    other if func.level == Level::High => {
                        return Err(self.type_error("if", Type::BOOL, other));
                    }
                    other => return Err(self.bad_operand("a branch", "0 or 1", &other)),
                };
                self.target(func, inst, usize::from(!taken))
            }
            Op::Return => Ok(Flow::Return(self.all_operands(func, inst)?)),
            Op::Unreachable if func.level == Level::High => Err(self.message("ErrorException", REACHED)),
            Op::Unreachable => Err(Fault::Unreachable.into()),
            Op::Upsilon => {
                let val = match *func.args(inst) {
                    [] => None,
                    [value] => self.lookup(value)?,
                    ref more => {
                        return Err(Fault::OperandCount { op: "ϒ".to_owned(), given: more.len() }.into());
                    }
                };
                let serial = self.next_serial();
                self.frame_mut()?.upsilons.insert(inst, (serial, val));
                Ok(Flow::Undefined)
            }
            Op::PhiC => {
                let frame = self.frame()?;
                let stored = func
                    .args(inst)
                    .iter()
                    .filter_map(|&v| frame.upsilons.get(&func.def_inst(v)?))
                    .max_by_key(|(serial, _)| *serial);
                Ok(stored.and_then(|(_, val)| val.clone()).map_or(Flow::Undefined, Flow::Value))
            }
            Op::Enter => {
                let serial = self.next_serial();
                let token = Token { serial, exceptions: self.exceptions.len() };
                let &[_, catch] = func.inst_blocks(inst) else {
                    return Err(Fault::OperandCount { op: "enter".to_owned(), given: 0 }.into());
                };
                self.handlers.push(Handler { frame: self.frames.len() - 1, catch, token });
                if let Some(result) = func.result(inst) {
                    self.frame_mut()?.values[result.index()] = Some(Val::Token(token));
                }
                self.target(func, inst, 0)
            }
            Op::Leave => {
                for val in self.all_operands(func, inst)? {
                    let Val::Token(token) = val else {
                        return Err(self.bad_operand("leave", "a token", &val));
                    };
                    let depth = self.frames.len();
                    match self.handlers.pop() {
                        Some(handler) if handler.token == token && handler.frame + 1 == depth => {}
                        _ => return Err(Fault::Handlers.into()),
                    }
                }
                Ok(Flow::NOTHING)
            }
            Op::TheException => match self.exceptions.last() {
                Some(exception) => Ok(Flow::Value(exception.clone())),
                None => Err(Fault::NoException.into()),
            },
            Op::PopException => match self.operands(func, inst)? {
                [Val::Token(token)] if token.exceptions <= self.exceptions.len() => {
                    self.exceptions.truncate(token.exceptions);
                    Ok(Flow::NOTHING)
                }
                _ => Err(Fault::Handlers.into()),
            },
            op => match func.level {
                Level::High => self.high_op(func, inst, op),
                Level::Low => self.low_op(func, inst, op),
            },
        }
    }

    /// The outcome of a copy: the operand, which may be undefined.
    pub(super) fn pass_on(&mut self, func: &Func, inst: Inst) -> Eval<Flow> {
        match *func.args(inst) {
            [value] => Ok(self.lookup(value)?.map_or(Flow::Undefined, Flow::Value)),
            ref args => Err(self.bad_count(func, inst, args.len())),
        }
    }

    fn target(&self, func: &Func, inst: Inst, n: usize) -> Eval<Flow> {
        match func.inst_blocks(inst).get(n) {
            Some(&block) => Ok(Flow::Jump(block)),
            None => Err(self.bad_count(func, inst, n)),
        }
    }

    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    // ----- operands -----

    /// The current content of an SSA value; `None` if it is undefined.
    pub(super) fn lookup(&mut self, value: Value) -> Eval<Option<Val>> {
        let frame = self.frame()?;
        match frame.func.value_def(value) {
            ValueDef::Const(_) => self.constant(frame.func, value, 0),
            _ => Ok(frame.values[value.index()].clone()),
        }
    }

    pub(super) fn operand(&mut self, value: Value) -> Eval<Val> {
        match self.lookup(value)? {
            Some(known) => Ok(known),
            None if self.frame()?.func.level == Level::High => {
                let name = self.name(UNDEFINED);
                Err(self.undefined_variable(name))
            }
            None => Err(Fault::Undefined(value).into()),
        }
    }

    pub(super) fn all_operands(&mut self, func: &Func, inst: Inst) -> Eval<Vec<Val>> {
        func.args(inst).iter().map(|&v| self.operand(v)).collect()
    }

    pub(super) fn operands<const N: usize>(&mut self, func: &Func, inst: Inst) -> Eval<[Val; N]> {
        let vals = self.all_operands(func, inst)?;
        <[Val; N]>::try_from(vals).map_err(|vals| self.bad_count(func, inst, vals.len()))
    }

    fn constant(&mut self, func: &Func, value: Value, depth: usize) -> Eval<Option<Val>> {
        let (ty, fields) = match func.as_const(value) {
            Some(Const::Aggregate { ty, fields }) => (*ty, fields),
            Some(Const::Undef(_)) | None => return Ok(None),
            Some(simple) => return self.simple_const(simple).map(Some),
        };
        if depth > MAX_CONST_DEPTH {
            return Err(Fault::Unsupported(format!("the constant {value} nests too deep")).into());
        }
        let mut parts = Vec::with_capacity(fields.len());
        for &field in fields {
            if !func.has_value(field) {
                return Err(Fault::ForeignId(field.to_string()).into());
            }
            parts.push(self.constant(func, field, depth + 1)?);
        }
        Ok(Some(Val::aggregate(ty, parts)))
    }

    /// A constant other than an aggregate.
    pub(super) fn simple_const(&mut self, constant: &Const) -> Eval<Val> {
        Ok(match *constant {
            Const::Bits { ty, bits } => Val::bits(self.types(), ty, bits),
            Const::Singleton(ty) => match *self.types().kind(ty) {
                brolga_ir::types::TypeKind::TypeOf(of) => Val::Type(of),
                _ => Val::Singleton(ty),
            },
            Const::String(name) => self.string_constant(name)?,
            Const::Symbol(name) => Val::Symbol(name),
            Const::Type { of, .. } => Val::Type(of),
            Const::Module(name) => Val::Module(name),
            Const::Aggregate { ty, .. } | Const::Undef(ty) => {
                return Err(Fault::Type(format!("no constant of type `{}` here", self.type_text(ty))).into());
            }
            Const::Address(address) => self.address_of(address)?,
        })
    }

    // ----- faults -----

    pub(super) fn bad_count(&self, func: &Func, inst: Inst, given: usize) -> Stop {
        Fault::OperandCount { op: format!("{:?}", func.op(inst)), given }.into()
    }

    pub(super) fn bad_operand(&self, op: &str, expected: &'static str, given: &Val) -> Stop {
        let given = format!("a value of type `{}`", self.type_text(given.ty(self.types())));
        Fault::Operand { op: op.to_owned(), expected, given }.into()
    }

    /// The `ErrorException` of a builtin for an operand of an unsupported type.
    pub(super) fn wrong_operand(&mut self, op: &str, expected: &'static str, given: &Val) -> Stop {
        let given = self.type_text(given.ty(self.types()));
        self.message("ErrorException", &format!("{op} takes {expected}, not a value of type `{given}`"))
    }

    /// `TypeError(func, "", expected, got)`
    pub(super) fn type_error(&mut self, func: &str, expected: Type, got: Val) -> Stop {
        match self.new_string(Vec::new()) {
            Ok(context) => {
                let func = Val::Symbol(self.name(func));
                self.exception("TypeError", vec![func, context, Val::Type(expected), got])
            }
            Err(stop) => stop,
        }
    }

    pub(super) fn modify(&mut self, op: &'static str, place: Place, f: Val, operand: Val) -> Eval<Flow> {
        let old = self.read_place(&place)?;
        self.call_modify(Modify { op, place, f, operand, old })
    }

    fn call_modify(&mut self, modify: Modify) -> Eval<Flow> {
        let (f, args) = (modify.f.clone(), vec![modify.old.clone(), modify.operand.clone()]);
        self.apply(f, args, Then::Modify(Box::new(modify)))
    }

    /// Completes a change by a function with the function's result, or retries if the function has changed
    /// the place itself.
    pub(super) fn finish_modify(&mut self, modify: Modify, new: Val) -> Eval<Flow> {
        let Modify { op, place, .. } = modify;
        if !self.is_a(&new, place.ty()) {
            return Err(self.type_error(op, place.ty(), new));
        }
        let now = self.read_place(&place)?;
        if !self.egal(&now, &modify.old)? {
            return self.call_modify(Modify { old: now, ..modify });
        }
        self.write_place(op, &place, new.clone())?;
        self.pair(place.ty(), now, new).map(Flow::Value)
    }

    /// The outcome of a call that was evaluated without a frame.
    pub(super) fn returned(&mut self, val: Val, then: Then) -> Eval<Flow> {
        match then {
            Then::Assign => Ok(Flow::Value(val)),
            Then::Modify(modify) => self.finish_modify(*modify, val),
            Then::C(waiting) => self.return_to_c(*waiting, &[val]),
        }
    }
}

impl From<InterpError> for Outcome {
    fn from(error: InterpError) -> Outcome {
        Outcome::Error(Box::new(error))
    }
}
