//! Builds functions from Rust: for embedders and their front ends.
//!
//! Every method checks its arguments and returns an error immediately; a statement that the verifier would
//! refuse is not added. [`Builder::finish`] runs the whole verifier, so a finished function can be compiled.
//!
//! ```
//! use brolga_ir::{Context, Type, build::{BuildError, Builder}, intrinsic::Intrinsic};
//!
//! fn sum_to() -> Result<brolga_ir::Func, BuildError> {
//!     // function sum_to(n); s = 0; i = 1; while i <= n; s += i; i += 1; end; s; end
//!     let cx = Context::new();
//!     let mut b = Builder::high(&cx, "sum_to", &[("n", Type::INT64)], Type::INT64);
//!     let (s, i) = (b.declare_var(Type::INT64), b.declare_var(Type::INT64));
//!     let n = b.param(0)?;
//!     let (zero, one) = (b.int(Type::INT64, 0)?, b.int(Type::INT64, 1)?);
//!     b.def_var(s, zero)?;
//!     b.def_var(i, one)?;
//!     let (head, body, done) = (b.create_block(), b.create_block(), b.create_block());
//!     b.goto(head)?;
//!
//!     b.switch_to_block(head)?; // not sealed: `body` will jump here
//!     let at = b.use_var(i)?;
//!     let more = b.intrinsic(Intrinsic::SleInt, &[at, n])?;
//!     b.branch(more, body, done)?;
//!
//!     b.seal_block(body)?;
//!     b.switch_to_block(body)?;
//!     let (sum, at) = (b.use_var(s)?, b.use_var(i)?);
//!     let sum = b.intrinsic(Intrinsic::AddInt, &[sum, at])?;
//!     let next = b.intrinsic(Intrinsic::AddInt, &[at, one])?;
//!     b.def_var(s, sum)?;
//!     b.def_var(i, next)?;
//!     b.goto(head)?;
//!     b.seal_block(head)?;
//!
//!     b.switch_to_block(done)?;
//!     let sum = b.use_var(s)?;
//!     b.ret(&[sum])?;
//!     b.finish()
//! }
//!
//! let func = sum_to().unwrap();
//! assert_eq!(func.blocks().count(), 4);
//!
//! let cx = Context::new();
//! let mut b = Builder::high(&cx, "wrong", &[("x", Type::INT64)], Type::INT64);
//! let (x, y) = (b.param(0).unwrap(), b.float64(1.0));
//! let error = b.intrinsic(Intrinsic::AddInt, &[x, y]).unwrap_err();
//! assert!(error.to_string().contains("operand 2 is `Float64`"));
//! ```
//!
//! **Blocks.** The entry exists from the start. A block gets its position in the layout when it is first switched to. A
//! block is *sealed* once all jumps to it are known; sealing early creates fewer φ. `finish` seals the
//! remaining blocks.
//!
//! **Variables** become values and φ (`vars`). A handler sees the last assignment before the exception, including
//! assignments inside the protected blocks.
//!
//! **Shapes.** [`Builder::if_else`], [`Builder::while_loop`] and [`Builder::try_catch`] make blocks and seal them ([`shapes`]).
//!
//! **Types.** [`Record`] declares structs, including the structs of closures.
//!
//! **Inlining** can be requested or forbidden for a function and for a call ([`Builder::set_inlining`],
//! [`Builder::set_call_inlining`]).

mod error;
mod hints;
mod records;
pub mod shapes;
mod vars;

pub use error::{BuildError, ForeignId};
pub use records::Record;
pub use vars::Variable;

use crate::builtin::Builtin;
use crate::constant::Const;
use crate::context::Context;
use crate::entity::{Block, Inst, Slot, Value};
use crate::func::{CalleeData, ForeignData, Func, LineColumn, Param, Place, Signature, SlotData, ValueName};
use crate::function_name::FunctionName;
use crate::intrinsic::{Intrinsic, Shape};
use crate::module::Module;
use crate::op::{Access, Level, Op};
use crate::runtime_fn::RuntimeFn;
use crate::signature::method_symbol;
use crate::types::{Type, TypeError};
use crate::verify::{Violation, point_into_printout, verify_func, verify_inst};
use cranelift_entity::SecondaryMap;
use vars::{Protection, Vars};

/// A function under construction.
#[derive(Debug)]
pub struct Builder<'c> {
    cx: &'c Context,
    func: Func,
    at: Block,
    place: Place,
    vars: Vars,
    ended: SecondaryMap<Block, bool>,
}

impl<'c> Builder<'c> {
    /// A function of high IR; argument 0, the function object, is added. The name may begin with a module, as
    /// in `A.g` ([`FunctionName::parse`]); otherwise the function belongs to `Main`. This applies to all
    /// function names here.
    pub fn high(cx: &'c Context, name: &str, params: &[(&str, Type)], result: Type) -> Self {
        let function = FunctionName::parse(&cx.names, name);
        let object = Param { name: None, ty: cx.types.function_named(function) };
        let named = params.iter().map(|&(text, ty)| Param { name: Some(cx.names.intern(text)), ty });
        let sig = Signature {
            params: [object].into_iter().chain(named).collect(),
            results: vec![result],
            vararg: false,
            ..Signature::default()
        };
        Self::new(cx, Func::new(cx.names.intern(cx.names.text(function.name)), Level::High, sig))
    }

    /// A method of high IR for callable objects of a type, such as closures. Argument 0 is the object.
    pub fn method_of(cx: &'c Context, object: Type, params: &[(&str, Type)], result: Type) -> Self {
        let object_param = Param { name: None, ty: object };
        let named = params.iter().map(|&(text, ty)| Param { name: Some(cx.names.intern(text)), ty });
        let sig = Signature {
            params: [object_param].into_iter().chain(named).collect(),
            results: vec![result],
            vararg: false,
            ..Signature::default()
        };
        let name = cx.names.intern(&cx.types.display(object).to_string());
        Self::new(cx, Func::new(name, Level::High, sig))
    }

    /// The called object: argument 0 of a function of high IR.
    pub fn callee(&self) -> Result<Value, BuildError> {
        self.func.params().first().copied().ok_or(BuildError::NoParam(0))
    }

    /// A function of low IR.
    pub fn low(cx: &'c Context, name: &str, params: &[Type], results: &[Type]) -> Self {
        let params = params.iter().map(|&ty| Param { name: None, ty }).collect();
        let sig = Signature { params, results: results.to_vec(), vararg: false, ..Signature::default() };
        Self::new(cx, Func::new(cx.names.intern(name), Level::Low, sig))
    }

    fn new(cx: &'c Context, mut func: Func) -> Self {
        let at = func.make_block();
        func.append_block(at);
        let mut vars = Vars::default();
        vars.mark_entry(at);
        Builder { cx, func, at, place: Place::default(), vars, ended: SecondaryMap::new() }
    }

    /// The function as built so far.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The type of a value of this function.
    pub fn type_of(&self, value: Value) -> Result<Type, BuildError> {
        self.known(value).map(|v| self.func.ty(v))
    }

    /// Argument `n`, from 0, without the function object.
    pub fn param(&self, n: usize) -> Result<Value, BuildError> {
        let first = usize::from(self.func.level == Level::High);
        self.func.params().get(n.saturating_add(first)).copied().ok_or(BuildError::NoParam(n))
    }

    /// Sets the source file of this function, for debuggers and profilers.
    pub fn set_file(&mut self, file: &str) {
        let file = self.cx.names.intern(file);
        self.func.set_file(Some(file));
    }

    /// Names a value after a variable of the source, which debuggers show.
    pub fn name_value(&mut self, value: Value, name: &str) -> Result<(), BuildError> {
        let ty = self.type_of(value)?;
        let name = self.cx.names.intern(name);
        self.func.name_value(ValueName { value, name, ty });
        Ok(())
    }

    /// Sets the source line of the statements added from now on; 0 for none.
    pub fn set_line(&mut self, line: u32) {
        self.set_line_column(line, 0);
    }

    /// Sets the source line and column of the statements added from now on, both from 1; 0 for none.
    /// [`LineColumn`] documents which columns are kept.
    pub fn set_line_column(&mut self, line: u32, column: u32) {
        self.place.at = LineColumn::new(line, column);
    }

    // ----- blocks -----

    /// The block to which statements are added.
    pub fn current_block(&self) -> Block {
        self.at
    }

    /// Creates a block.
    pub fn create_block(&mut self) -> Block {
        self.func.make_block()
    }

    /// Adds statements to this block from now on.
    pub fn switch_to_block(&mut self, block: Block) -> Result<(), BuildError> {
        self.known_block(block)?;
        if self.ended[block] {
            return Err(BuildError::SwitchToEnded(block));
        }
        if !self.func.is_placed(block) {
            self.func.append_block(block);
        }
        self.at = block;
        Ok(())
    }

    /// Declares that no more jumps to the block will be added.
    pub fn seal_block(&mut self, block: Block) -> Result<(), BuildError> {
        self.known_block(block)?;
        self.vars.seal(&mut self.func, block);
        Ok(())
    }

    // ----- variables -----

    /// A variable that holds values of this type.
    pub fn declare_var(&mut self, ty: Type) -> Variable {
        self.vars.declare(ty)
    }

    /// A variable that debuggers show by this name wherever the code keeps its value. In a function with such
    /// a variable they also show the arguments.
    pub fn declare_named_var(&mut self, name: &str, ty: Type) -> Variable {
        let name = self.cx.names.intern(name);
        self.vars.declare_named(name, ty)
    }

    /// Assigns to a variable.
    pub fn def_var(&mut self, variable: Variable, value: Value) -> Result<(), BuildError> {
        let given = self.type_of(value)?;
        let wanted = self.known_variable(variable)?;
        if given != wanted && !self.cx.types.is_subtype(given, wanted) {
            let (given, wanted) = (self.cx.types.display(given), self.cx.types.display(wanted));
            let message = format!("{variable} has the type `{wanted}`, but a `{given}` is assigned");
            return Err(BuildError::VariableType { variable, message });
        }
        if self.ended[self.at] && !self.vars.protections(self.at).is_empty() {
            return Err(BuildError::BlockEnded(self.at));
        }
        self.vars.define(variable, self.at, value);
        self.vars.name(&mut self.func, variable, value);
        for store in self.vars.store_for_handlers(&mut self.func, variable, self.at, value) {
            self.func.set_place(store, self.place);
            self.func.append_inst(store, self.at);
        }
        Ok(())
    }

    /// The value of a variable at the current point.
    pub fn use_var(&mut self, variable: Variable) -> Result<Value, BuildError> {
        let ty = self.known_variable(variable)?;
        match self.vars.value(&mut self.func, variable, self.at) {
            Some(value) => Ok(value),
            // An unreachable use may read any value.
            None if self.at != self.entry() && self.vars.preds(self.at).is_empty() => {
                Ok(self.func.constant(Const::Undef(ty)))
            }
            None => Err(BuildError::NeverAssigned(variable)),
        }
    }

    fn entry(&self) -> Block {
        // The constructor placed it, and blocks are never removed.
        self.func.entry().unwrap_or(self.at)
    }

    // ----- constants -----

    /// An integer of a primitive or low type.
    pub fn int(&mut self, ty: Type, value: i128) -> Result<Value, BuildError> {
        let width = match ty.as_low() {
            Some(low) if low.is_int() => Some(low.bits()),
            _ if ty == Type::BOOL => Some(1),
            _ => self.cx.types.primitive(ty).map(|(bits, _)| u32::from(bits)),
        };
        // Accepts both the signed and the unsigned range of the width.
        let fits = |bits: u32| bits >= 128 || (value >> (bits - 1) >= -1 && value >> bits <= 0);
        if !width.is_some_and(fits) {
            return Err(BuildError::Constant { value, ty: self.cx.types.display(ty).to_string() });
        }
        let bits = value as u128 & (u128::MAX >> (128 - width.unwrap_or(128).min(128)));
        Ok(self.func.constant(Const::Bits { ty, bits }))
    }

    /// A `Float64`, or `f64` in low IR.
    pub fn float64(&mut self, value: f64) -> Value {
        let ty = if self.func.level == Level::High { Type::FLOAT64 } else { Type::F64 };
        self.func.constant(Const::Bits { ty, bits: u128::from(value.to_bits()) })
    }

    /// A `Bool`, or an `i8` in low IR.
    pub fn bool(&mut self, value: bool) -> Value {
        let ty = if self.func.level == Level::High { Type::BOOL } else { Type::I8 };
        self.func.constant(Const::Bits { ty, bits: u128::from(value) })
    }

    /// The constant `nothing`.
    pub fn nothing(&mut self) -> Value {
        self.func.constant(Const::Singleton(Type::NOTHING))
    }

    /// A string constant.
    pub fn string(&mut self, text: &str) -> Value {
        let name = self.cx.names.intern(text);
        self.func.constant(Const::String(name))
    }

    /// A symbol constant.
    pub fn symbol(&mut self, text: &str) -> Value {
        let name = self.cx.names.intern(text);
        self.func.constant(Const::Symbol(name))
    }

    /// A type as a constant.
    pub fn type_value(&mut self, ty: Type) -> Value {
        self.func.constant(self.cx.types.type_constant(ty))
    }

    // ----- statements of both levels -----

    /// Adds any statement except terminators and φ.
    pub fn statement(&mut self, op: Op, args: &[Value], results: &[Type]) -> Result<Inst, BuildError> {
        if op.is_terminator() || op == Op::Phi {
            return Err(BuildError::NeedsResultType("a terminator or φ"));
        }
        self.add(op, args, &[], results)
    }

    /// Adds any statement with one result.
    pub fn value(&mut self, op: Op, args: &[Value], ty: Type) -> Result<Value, BuildError> {
        let inst = self.statement(op, args, &[ty])?;
        Ok(self.only_result(inst))
    }

    /// Adds an intrinsic whose result type follows from its operands.
    pub fn intrinsic(&mut self, op: Intrinsic, args: &[Value]) -> Result<Value, BuildError> {
        let first = match args.first() {
            Some(&first) => self.type_of(first)?,
            None => Type::NOTHING,
        };
        let flag = if self.func.level == Level::High { Type::BOOL } else { Type::I8 };
        let ty = match op.shape() {
            Shape::IntUnary
            | Shape::IntBinary
            | Shape::IntDivide
            | Shape::Shift
            | Shape::FloatUnary
            | Shape::FloatBinary
            | Shape::FloatTernary
            | Shape::PtrStore
            | Shape::AtomicStore => first,
            Shape::PtrOffset => match first {
                Type::TRACKED => Type::DERIVED,
                other => other,
            },
            Shape::IntCompare | Shape::FloatCompare | Shape::Query => flag,
            Shape::CheckedPair if self.func.level == Level::High => self.tuple_type(&[first, Type::BOOL])?,
            Shape::PtrLoad | Shape::AtomicLoad | Shape::AtomicSwap => {
                self.cx.types.pointee(first).unwrap_or(Type::ANY)
            }
            Shape::AtomicFence if self.func.level == Level::High => Type::NOTHING,
            Shape::CheckedPair
            | Shape::Convert(_)
            | Shape::AtomicFence
            | Shape::AtomicModify
            | Shape::AtomicReplace
            | Shape::Foreign => return Err(BuildError::NeedsResultType(op.name())),
        };
        self.value(Op::Intrinsic(op), args, ty)
    }

    /// Adds a conversion to a type.
    pub fn convert(&mut self, op: Intrinsic, value: Value, to: Type) -> Result<Value, BuildError> {
        self.value(Op::Intrinsic(op), &[value], to)
    }

    /// Checked arithmetic: returns the wrapped value, and whether it wrapped.
    pub fn checked(&mut self, op: Intrinsic, a: Value, b: Value) -> Result<(Value, Value), BuildError> {
        if self.func.level == Level::High {
            let pair = self.intrinsic(op, &[a, b])?;
            return Ok((self.element(pair, 1)?, self.element(pair, 2)?));
        }
        let ty = self.type_of(a)?;
        let inst = self.statement(Op::Intrinsic(op), &[a, b], &[ty, Type::I8])?;
        let mut results = self.func.results(inst);
        match (results.next(), results.next()) {
            (Some(value), Some(flag)) => Ok((value, flag)),
            _ => Err(BuildError::NeedsResultType(op.name())),
        }
    }

    /// Selects `a` if the condition is true, else `b`; both are computed.
    pub fn ifelse(&mut self, cond: Value, a: Value, b: Value) -> Result<Value, BuildError> {
        let ty = self.type_of(a)?;
        self.value(Op::Builtin(Builtin::Ifelse), &[cond, a, b], ty)
    }

    /// Calls a C function with these operands; `roots` stay alive during the call.
    pub fn foreign_call(
        &mut self,
        callee: ForeignData,
        args: &[Value],
        roots: &[Value],
    ) -> Result<Inst, BuildError> {
        let result = callee.result;
        let results: &[Type] =
            if self.func.level == Level::Low && result == Type::NOTHING { &[] } else { &[result] };
        let foreign = self.func.add_foreign(callee);
        let all: Vec<Value> = args.iter().chain(roots).copied().collect();
        self.statement(Op::ForeignCall(foreign), &all, results)
    }

    // ----- high IR -----

    /// A builtin with an explicit result type.
    pub fn builtin(&mut self, op: Builtin, args: &[Value], ty: Type) -> Result<Value, BuildError> {
        self.value(Op::Builtin(op), args, ty)
    }

    /// A tuple of the values.
    pub fn tuple(&mut self, elems: &[Value]) -> Result<Value, BuildError> {
        let types: Vec<Type> = elems.iter().map(|&v| self.type_of(v)).collect::<Result<_, _>>()?;
        let ty = self.tuple_type(&types)?;
        self.builtin(Builtin::Tuple, elems, ty)
    }

    /// Element `n`, from 1, of a tuple, or field `n` of a struct.
    pub fn element(&mut self, object: Value, n: u32) -> Result<Value, BuildError> {
        let ty = self.type_of(object)?;
        let index = (n as usize).checked_sub(1);
        let elem = index.and_then(|i| self.cx.types.field_type(ty, i)).unwrap_or(Type::ANY);
        let n = self.int(Type::INT64, i128::from(n))?;
        self.builtin(Builtin::Getfield, &[object, n], elem)
    }

    /// Reads a field of an object by name.
    pub fn getfield(&mut self, object: Value, field: &str) -> Result<Value, BuildError> {
        let ty = self.type_of(object)?;
        let types = &self.cx.types;
        let index = types.field_index(ty, self.cx.names.intern(field));
        let elem = index.and_then(|i| types.field_type(ty, i)).unwrap_or(Type::ANY);
        let field = self.symbol(field);
        self.builtin(Builtin::Getfield, &[object, field], elem)
    }

    /// Stores into a field of a mutable object.
    pub fn setfield(&mut self, object: Value, field: &str, value: Value) -> Result<(), BuildError> {
        let ty = self.type_of(value)?;
        let field = self.symbol(field);
        self.builtin(Builtin::Setfield, &[object, field, value], ty).map(|_| ())
    }

    /// An instance of a struct type from its leading fields.
    pub fn new_object(&mut self, ty: Type, fields: &[Value]) -> Result<Value, BuildError> {
        self.value(Op::New(ty), fields, ty)
    }

    /// Calls the method that `module` has for a named function and the types of these operands.
    pub fn call_method(&mut self, module: &Module, name: &str, args: &[Value]) -> Result<Value, BuildError> {
        let types: Vec<Type> = args.iter().map(|&v| self.type_of(v)).collect::<Result<_, _>>()?;
        let function = self.cx.types.function_of(name);
        let Some(id) = module.find_method(function, &types) else {
            let call = method_symbol(self.cx, function, &types);
            let candidates =
                module.methods(function).iter().map(|&id| module[id].symbol(&module.cx)).collect();
            return Err(BuildError::NoMethod { call, candidates });
        };
        let result = module[id].sig.results.first().copied().unwrap_or(Type::ANY);
        self.invoke(name, args, result)
    }

    /// Calls the method of a named function for the types of the operands, with this result type. Its existence is checked
    /// when the function becomes part of a module.
    pub fn invoke(&mut self, name: &str, args: &[Value], result: Type) -> Result<Value, BuildError> {
        let types = args.iter().map(|&v| self.type_of(v)).collect::<Result<_, _>>()?;
        let function = self.cx.types.function_of(name);
        let callee = self.func.add_callee(CalleeData::Method { function, args: types, result });
        let object = self.func.constant(Const::Singleton(function));
        let all: Vec<Value> = [object].iter().chain(args).copied().collect();
        self.value(Op::Invoke(callee), &all, result)
    }

    /// Calls the value `function`, by dispatch at run time.
    pub fn call(&mut self, function: Value, args: &[Value], result: Type) -> Result<Value, BuildError> {
        let all: Vec<Value> = [function].iter().chain(args).copied().collect();
        self.value(Op::Call, &all, result)
    }

    /// The singleton object of a named function.
    pub fn function_object(&mut self, name: &str) -> Value {
        let function = self.cx.types.function_of(name);
        self.func.constant(Const::Singleton(function))
    }

    // ----- low IR -----

    /// Creates a stack slot.
    pub fn create_slot(&mut self, size: u32, align_log2: u8) -> Slot {
        self.func.add_slot(SlotData::bytes(size, align_log2))
    }

    /// The address of a stack slot.
    pub fn slot_addr(&mut self, slot: Slot) -> Result<Value, BuildError> {
        let count = self.func.slots().count();
        if slot.as_u32() as usize >= count {
            return Err(self.foreign(ForeignId::Slot(slot), count));
        }
        self.value(Op::SlotAddr(slot), &[], Type::PTR)
    }

    /// Reads memory.
    pub fn load(&mut self, access: Access, address: Value, ty: Type) -> Result<Value, BuildError> {
        self.value(Op::Load(access), &[address], ty)
    }

    /// Writes memory.
    pub fn store(&mut self, access: Access, address: Value, value: Value) -> Result<(), BuildError> {
        self.statement(Op::Store(access), &[address, value], &[]).map(|_| ())
    }

    /// Calls compiled code by its symbol. The types of the operands are the parameter types.
    pub fn call_symbol(
        &mut self,
        symbol: &str,
        args: &[Value],
        results: &[Type],
    ) -> Result<Vec<Value>, BuildError> {
        let params = args.iter().map(|&v| self.type_of(v)).collect::<Result<_, _>>()?;
        let symbol = self.cx.names.intern(symbol);
        let callee = self.func.add_callee(CalleeData::Symbol { symbol, params, results: results.into() });
        let inst = self.statement(Op::CallSymbol(callee), args, results)?;
        Ok(self.func.results(inst).collect())
    }

    /// Calls the run time. A call that does not return ends the block.
    pub fn call_runtime(&mut self, f: RuntimeFn, args: &[Value]) -> Result<Vec<Value>, BuildError> {
        let inst = self.statement(Op::CallRuntime(f), args, f.results())?;
        if !f.returns() {
            self.unreachable()?;
        }
        Ok(self.func.results(inst).collect())
    }

    // ----- terminators -----

    /// Continues at the target.
    pub fn goto(&mut self, target: Block) -> Result<(), BuildError> {
        self.end(Op::Goto, &[], &[target], &[]).map(|_| ())
    }

    /// Continues at `then` if the condition is true, else at `other`.
    pub fn branch(&mut self, cond: Value, then: Block, other: Block) -> Result<(), BuildError> {
        self.end(Op::Branch, &[cond], &[then, other], &[]).map(|_| ())
    }

    /// Returns from the function and leaves all handlers in force.
    pub fn ret(&mut self, values: &[Value]) -> Result<(), BuildError> {
        let tokens: Vec<Value> = self.vars.protections(self.at).iter().rev().map(|p| p.token).collect();
        if !tokens.is_empty() {
            self.leave(&tokens)?;
        }
        self.end(Op::Return, values, &[], &[]).map(|_| ())
    }

    /// Ends a block whose end is never reached.
    pub fn unreachable(&mut self) -> Result<(), BuildError> {
        self.end(Op::Unreachable, &[], &[], &[]).map(|_| ())
    }

    /// Installs an exception handler and continues at `body`; returns the token for `leave`.
    pub fn enter(&mut self, body: Block, handler: Block) -> Result<Value, BuildError> {
        let inst = self.end(Op::Enter, &[], &[body, handler], &[Type::TOKEN])?;
        Ok(self.only_result(inst))
    }

    /// Removes the handlers of these tokens, innermost first.
    pub fn leave(&mut self, tokens: &[Value]) -> Result<(), BuildError> {
        self.statement(Op::Leave, tokens, &[]).map(|_| ())
    }

    /// Whether the current block has its terminator, so that no statement can be added to it.
    pub fn has_ended(&self) -> bool {
        self.ended[self.at]
    }

    /// Verifies and returns the function, or returns all violations.
    pub fn finish(mut self) -> Result<Func, BuildError> {
        self.vars.finish(&mut self.func).map_err(BuildError::NeverAssigned)?;
        if !self.func.value_names().is_empty() {
            for (n, param) in self.func.sig.params.clone().iter().enumerate() {
                if let (Some(name), Some(&value)) = (param.name, self.func.params().get(n)) {
                    self.func.name_value(ValueName { value, name, ty: param.ty });
                }
            }
        }
        match verify_func(self.cx, &self.func) {
            Ok(()) => Ok(self.func),
            Err(violations) => {
                let (text, diagnostics) = point_into_printout(self.cx, &self.func, &violations);
                Err(BuildError::Malformed { text, diagnostics })
            }
        }
    }

    // ----- helpers -----

    fn known(&self, value: Value) -> Result<Value, BuildError> {
        match self.func.has_value(value) {
            true => Ok(value),
            false => Err(self.foreign(ForeignId::Value(value), self.func.value_count())),
        }
    }

    fn known_block(&self, block: Block) -> Result<(), BuildError> {
        match self.func.is_block(block) {
            true => Ok(()),
            false => Err(self.foreign(ForeignId::Block(block), self.func.block_count())),
        }
    }

    fn known_variable(&self, variable: Variable) -> Result<Type, BuildError> {
        let unknown = || self.foreign(ForeignId::Variable(variable), self.vars.count());
        self.vars.ty(variable).ok_or_else(unknown)
    }

    fn foreign(&self, id: ForeignId, count: usize) -> BuildError {
        BuildError::Foreign { id, function: self.cx.names.text(self.func.name).to_owned(), count }
    }

    fn tuple_type(&self, elems: &[Type]) -> Result<Type, BuildError> {
        let types = &self.cx.types;
        types.tuple(elems).map_err(|e: TypeError| BuildError::Type(e.display(types).to_string()))
    }

    fn only_result(&self, inst: Inst) -> Value {
        self.func.result(inst).expect("callers made the instruction with one result")
    }

    fn end(
        &mut self,
        op: Op,
        args: &[Value],
        targets: &[Block],
        results: &[Type],
    ) -> Result<Inst, BuildError> {
        let entry = self.entry();
        for &target in targets {
            self.known_block(target)?;
            if target == entry {
                return Err(BuildError::EntryTarget);
            }
            if self.vars.is_sealed(target) {
                return Err(BuildError::Sealed(target));
            }
        }
        // A refused jump leaves the block without a terminator, so this is checked before the instruction is appended.
        self.vars.check_protection(self.at, targets, op == Op::Enter).map_err(BuildError::Protected)?;
        let inst = self.add(op, args, targets, results)?;
        let entered = match (op, targets, self.func.result(inst)) {
            (Op::Enter, &[_, handler], Some(token)) => Some(Protection { handler, token }),
            _ => None,
        };
        self.vars.protect(&mut self.func, self.at, targets, entered);
        self.ended[self.at] = true;
        for &target in targets {
            self.vars.add_pred(target, self.at);
        }
        Ok(inst)
    }

    fn add(
        &mut self,
        op: Op,
        args: &[Value],
        blocks: &[Block],
        results: &[Type],
    ) -> Result<Inst, BuildError> {
        if self.ended[self.at] {
            return Err(BuildError::BlockEnded(self.at));
        }
        for &arg in args {
            self.known(arg)?;
        }
        let is_id_known = match op {
            Op::Invoke(id) | Op::CallSymbol(id) | Op::CFunction(id) => {
                (id.as_u32() as usize) < self.func.callees().count()
            }
            Op::ForeignCall(id) => (id.as_u32() as usize) < self.func.foreigns().count(),
            Op::SlotAddr(id) => (id.as_u32() as usize) < self.func.slots().count(),
            Op::LoopInfo(id) => (id.as_u32() as usize) < self.func.metas().count(),
            _ => true,
        };
        if !is_id_known {
            let message = "the operation has an id that is not of this function".to_owned();
            return Err(BuildError::Rule { code: "structure-id", message });
        }
        let inst = self.func.make_inst(op, args, blocks, results);
        self.func.set_place(inst, self.place);
        if let Err(violation) = verify_inst(self.cx, &self.func, inst) {
            return Err(self.refuse(&violation));
        }
        self.func.append_inst(inst, self.at);
        if op == Op::Leave {
            self.vars.leave(self.at, args.len());
        }
        Ok(inst)
    }

    fn refuse(&self, violation: &Violation) -> BuildError {
        let shown = violation.diagnostic(self.cx, &self.func, &|_| crate::diag::Span::default());
        let notes: String = shown.notes.iter().map(|n| format!("; {n}")).collect();
        BuildError::Rule { code: shown.code, message: shown.message + &notes }
    }
}

#[cfg(test)]
mod tests;
