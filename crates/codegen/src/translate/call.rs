//! Calls: of compiled code, of the run time, of C.
//!
//! | callee | convention | name |
//! |---|---|---|
//! | compiled code of the same unit | `tail`, near | `Symbol::Function` |
//! | other compiled code | `tail`, at any distance | `Symbol::Function` |
//! | compiled code that may be replaced | `tail`, through a word (`cells.rs`) | `Symbol::IndirectCell` |
//! | an OSR check at a loop's head | no call, but a count (`cells.rs`) | `Symbol::Counter` |
//! | a routine of the run time | the host's C | `Symbol::Routine` |
//! | a C function | the host's C | `Symbol::Foreign`, or an address (`pointer.rs`) |
//!
//! Results that do not fit into registers are returned through a stack slot (`sig.rs`).
//!
//! **Throwing.** A throwing entry of the run time becomes the routine that records the exception, then `brolga_unwind`, or a
//! jump to the handler in force in the same function. Both are in the block of the throw, which is marked
//! cold.
//!
//! **Roots.** If placement has given a safepoint a map, its call gets the words as entries of a *user stack map*: Cranelift
//! then reports their distances from the stack pointer for its return address. Only the entries are used, which are exactly
//! the words of the map; the frontend's own spilling, which would store each value at its definition and reload it after
//! every call, is not. A call without a map costs nothing.
//!
//! **Operands of throws.** An operand of a call has to be in a certain register. Cranelift's register allocator joins a value with the φs that it
//! flows through and looks for one register for all of them, so a loop's counter that is the operand of a throw is assigned
//! that register in the loop, and is kept in memory, read and written in each iteration, where two throws disagree. So calls
//! that end in a throw get copies of integers and references that come from other blocks:
//!
//! ```text
//!   cold:  call brolga_throw_bounds_in(thread, a, i)    ==>    store i, word;  i' = atomic_load word;  call brolga_throw_bounds_in(thread, a', i')
//! ```
//!
//! The load is atomic because Cranelift replaces any other one by the stored value. Code of the first tier keeps the
//! operands: its allocator joins nothing. Cost: a word in the frame, and two instructions for each such operand, after the
//! function's hot code.
//!
//! An entry that may fail returns null when it has recorded an exception; then the code branches to its unwinding path.
//!
//! **C.** Scalars are passed as the platform defines. `lower` extends arguments narrower than 32 bits by their
//! signs, and takes structs apart. On x86-64 a variadic function expects the number of floats in a register that
//! Cranelift does not expose: such a call goes through a routine that sets it, which finds the function's address in the word of the
//! thread that stubs use. Not passed: 16-bit floats.

use brolga_ir::constant::Address;
use brolga_ir::func::CalleeData;
use brolga_ir::{Arch, Callee, Foreign, Inst, LowType, Name, PtrClass, RuntimeFn, Type};
use cranelift_codegen::ir::{
    self as clif, AbiParam, ArgumentPurpose, DebugTag, ExtFuncData, ExternalName, FuncRef, InstBuilder,
    MemFlagsData, Opcode, Signature as ClifSignature, StackSlotData, StackSlotKind, TrapCode,
    UserStackMapEntry, Value, ValueDef, types,
};
use cranelift_codegen::isa::CallConv;

use super::cells::Compiled;
use super::exception::Inside;
use super::{Done, TranslateError, Translation, UNREACHABLE_TRAP, abi_of};
use crate::callback::callback_name;
use crate::compiled::Symbol;
use crate::linkage::CallKind;
use crate::routines;
use crate::sig::{Abi, Signature, spare_param, word_offsets};
use crate::thread;

/// The routine that sets the number of float arguments for a variadic function.
const CALL_VARIADIC: &str = "brolga_call_variadic";

impl Translation<'_> {
    pub(super) fn call_symbol(&mut self, inst: Inst, callee: Callee) -> Done {
        let func = self.func;
        let CalleeData::Symbol { symbol, params, results } = func.callee(callee) else {
            return self.bad(inst);
        };
        let lows = |list: &[Type]| list.iter().map(|ty| ty.as_low()).collect::<Option<Vec<_>>>();
        let (Some(param_lows), Some(result_lows)) = (lows(params), lows(results)) else {
            return self.bad(inst);
        };
        if self.low_types(inst)? != param_lows || func.results(inst).len() != result_lows.len() {
            return self.bad(inst);
        }
        let kinds = |lows: Vec<LowType>| lows.into_iter().map(abi_of).collect::<Vec<_>>();
        let signature = Signature::new(kinds(param_lows), kinds(result_lows));
        let name = self.cx.names.text(*symbol).to_owned();
        let is_own = name == self.name && self.linkage.counter.is_none();
        let call_kind = if is_own { CallKind::Near } else { (self.linkage.call_kind)(&name) };
        let callee = match call_kind {
            CallKind::OsrCheck if signature == Signature::new([], [Abi::I8]) => {
                if self.asks_for_branch(inst) {
                    self.asked = Some(name);
                    return Ok(());
                }
                let answer = self.osr_check(name);
                return self.define(inst, &[answer]);
            }
            CallKind::OsrCheck => return self.bad(inst),
            CallKind::Cell => self.load_cell(name, &signature),
            CallKind::Near => Compiled::Known(self.import(Symbol::Function(name), signature.clif(), true)),
            CallKind::Far => Compiled::Known(self.import(Symbol::Function(name), signature.clif(), false)),
        };

        let mut args = Vec::with_capacity(params.len() + 1);
        let memory = signature.returns_through_memory().then(|| {
            let size = 8 * signature.result_words() as u32;
            let slot =
                self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3));
            self.b.ins().stack_addr(types::I64, slot, 0)
        });
        args.extend(memory);
        args.extend(self.args(inst)?);
        let given = self.call_compiled(inst, callee, &args);
        let made = match memory {
            None => given,
            Some(memory) => word_offsets(&signature.results)
                .map(|(abi, offset)| self.b.ins().load(abi.clif(), abi.word_flags(), memory, offset))
                .collect(),
        };
        self.define(inst, &made)
    }

    /// Calls compiled code; an exception continues at the handler in force.
    pub(super) fn call_compiled(&mut self, inst: Inst, callee: Compiled, args: &[Value]) -> Vec<Value> {
        let Some(Inside { enter, record }) = self.inside() else {
            let call = match callee {
                Compiled::Known(callee) => self.b.ins().call(callee, args),
                Compiled::Loaded(signature, address) => self.b.ins().call_indirect(signature, address, args),
            };
            self.map_roots(inst, call);
            return self.b.inst_results(call).to_vec();
        };
        let signature = match callee {
            Compiled::Known(callee) => self.b.func.dfg.ext_funcs[callee].signature,
            Compiled::Loaded(signature, _) => signature,
        };
        let results: Vec<_> =
            self.b.func.dfg.signatures[signature].returns.iter().map(|result| result.value_type).collect();
        let (go_on, landing) = (self.b.create_block(), self.landing(enter));
        let made = results.into_iter().map(|ty| self.b.append_block_param(go_on, ty)).collect();
        let call = match callee {
            Compiled::Known(callee) => record.call(&mut self.b, callee, args, go_on, landing),
            Compiled::Loaded(signature, address) => {
                record.call_indirect(&mut self.b, signature, address, args, go_on, landing)
            }
        };
        self.map_roots(inst, call);
        self.b.switch_to_block(go_on);
        made
    }

    /// Records at a call the locations of a safepoint's roots, if the frame is found by maps.
    pub(super) fn map_roots(&mut self, inst: Inst, call: clif::Inst) {
        let Some(map) = self.func.root_map(inst) else { return };
        let slot = self.stack_slot(map.slot);
        for &offset in &map.offsets {
            let entry = UserStackMapEntry { ty: types::I64, slot, offset };
            self.b.func.dfg.append_user_stack_map_entry(call, entry);
        }
    }

    /// Records that the next call leaves compiled code by itself; returns its tag.
    pub(super) fn note_exit(&mut self) -> DebugTag {
        let thread = self.thread();
        let number = self.exits;
        self.exits += 1;
        thread::note_exit(&mut self.b, thread, number, self.isa)
    }

    pub(super) fn foreign_call(&mut self, inst: Inst, foreign: Foreign) -> Done {
        let func = self.func;
        let data = func.foreign(foreign);
        let callee_name = data.name.map(|n| self.cx.names.text(n).to_owned());
        let refuse = |t: &Self, what| {
            Err(TranslateError::Foreign {
                name: t.name.clone(),
                callee: callee_name.clone().unwrap_or_else(|| "an address".to_owned()),
                what,
            })
        };
        let mut signature = ClifSignature::new(self.isa.host_call_conv());
        // Whether the callee expects the number of floats.
        let mut counted = false;
        for (n, ty) in data.params.iter().enumerate() {
            if let Some(words) = self.cx.types.tuple_elements(*ty) {
                if self.isa.arch() != Arch::X86_64 || signature.call_conv != CallConv::SystemV {
                    return refuse(self, "a struct in memory");
                }
                let purpose = ArgumentPurpose::StructArgument(8 * words.len() as u32);
                signature.params.push(AbiParam::special(types::I64, purpose));
                continue;
            }
            let Some(low) = ty.as_low() else { return self.bad(inst) };
            let variadic = data.variadic_after.is_some_and(|fixed| n >= fixed as usize);
            if low == LowType::V128 {
                return refuse(self, "a vector");
            }
            if low == LowType::F16 {
                return refuse(self, "a 16-bit float");
            }
            if variadic && low == LowType::F32 {
                return refuse(self, "a 32-bit float where C has promoted it");
            }
            counted |= low.is_float() && data.variadic_after.is_some();
            if variadic && cfg!(target_vendor = "apple") {
                return refuse(self, "a variadic argument");
            }
            signature.params.push(AbiParam::new(abi_of(low).clif()));
        }
        for result in data.low_results(&self.cx.types) {
            let Some(low) = result.as_low() else { return self.bad(inst) };
            if low == LowType::V128 {
                return refuse(self, "back a vector");
            }
            if low == LowType::F16 {
                return refuse(self, "back a 16-bit float");
            }
            signature.returns.push(AbiParam::new(abi_of(low).clif()));
        }
        let spare = spare_param(&signature.params, self.isa.arch(), signature.call_conv);
        let args = self.args(inst)?;
        let first = usize::from(data.name.is_none());
        // Operands after the declared arguments are for root placement; C never sees them.
        let Some(passed) = args.get(first..first + data.params.len()) else { return self.bad(inst) };
        for (n, ty) in data.params.iter().enumerate() {
            let wanted = match self.cx.types.tuple_elements(*ty) {
                Some(_) => Some(LowType::Ptr(PtrClass::Raw)),
                None => ty.as_low(),
            };
            if Some(self.low_type(inst, first + n)?) != wanted {
                return self.bad(inst);
            }
        }
        let mut given = passed.to_vec();
        if let Some(at) = spare {
            signature.params.insert(at, AbiParam::new(types::I64));
            given.insert(at, self.b.ins().iconst(types::I64, 0));
        }
        if data.name.is_none() && self.call_pointer(inst, data, passed, &signature, &given)? {
            return Ok(());
        }
        let target = match data.name {
            Some(name) => self.c_function_named(name, &signature)?,
            None => Compiled::Loaded(self.b.import_signature(signature.clone()), args[0]),
        };
        let exit = self.note_exit();
        let call = match target {
            _ if counted && self.isa.arch() == Arch::X86_64 => {
                let target = match target {
                    Compiled::Known(callee) => self.b.ins().func_addr(types::I64, callee),
                    Compiled::Loaded(_, address) => address,
                };
                let thread = self.thread();
                self.b.ins().store(MemFlagsData::trusted(), target, thread, thread::THREAD_LAZY);
                let symbol = Symbol::Routine(CALL_VARIADIC.to_owned());
                let callee = self.import(symbol, signature, false);
                self.b.ins().call(callee, &given)
            }
            Compiled::Known(callee) => self.b.ins().call(callee, &given),
            Compiled::Loaded(signature, address) => self.b.ins().call_indirect(signature, address, &given),
        };
        self.b.func.debug_tags.set(call, [exit]);
        self.map_roots(inst, call);
        let made = self.b.inst_results(call).to_vec();
        self.define(inst, &made)
    }

    /// A C function by its name. Code for object files leaves it to the system's linker; in the process one that was not there when the code was
    /// linked is looked for at each call, which throws if it is still missing.
    fn c_function_named(
        &mut self,
        name: Name,
        signature: &ClifSignature,
    ) -> Result<Compiled, TranslateError> {
        let weak = !self.isa.is_for_objects();
        let symbol = Symbol::Foreign { name: self.cx.names.text(name).to_owned(), library: None, weak };
        let callee = self.import(symbol, signature.clone(), false);
        if !weak {
            return Ok(Compiled::Known(callee));
        }
        let linked = self.b.ins().func_addr(types::I64, callee);
        let address = self.found(name, linked);
        Ok(Compiled::Loaded(self.b.import_signature(signature.clone()), address))
    }

    /// The address of a function or variable of C by its name, under the same rules.
    pub(super) fn c_global(&mut self, inst: Inst, name: Name) -> Done {
        let weak = !self.isa.is_for_objects();
        let symbol = Symbol::Foreign { name: self.cx.names.text(name).to_owned(), library: None, weak };
        let linked = self.symbol_address(symbol);
        let address = if weak { self.found(name, linked) } else { linked };
        self.define(inst, &[address])
    }

    /// The address to which a C symbol was linked. If that is null, it is looked up.
    fn found(&mut self, name: Name, linked: Value) -> Value {
        let (missing, go_on) = (self.cold_block(), self.b.create_block());
        let address = self.b.append_block_param(go_on, types::I64);
        self.b.ins().brif(linked, go_on, &[linked.into()], missing, &[]);
        self.b.switch_to_block(missing);
        let (thread, name) = (self.thread(), self.address(Address::Symbol(name)));
        let found = self.routine("brolga_foreign_symbol", &[thread, name]);
        if let Some(&found) = found.and_then(|call| self.b.inst_results(call).first()) {
            let pending = self.pending();
            self.b.ins().brif(found, go_on, &[found.into()], pending, &[]);
        } else {
            self.trap();
        }
        self.b.switch_to_block(go_on);
        address
    }

    /// The address of the code by which C calls a compiled function, which is in the same unit (`callback.rs`).
    pub(super) fn c_function(&mut self, inst: Inst, callee: Callee) -> Done {
        let CalleeData::Symbol { symbol, .. } = self.func.callee(callee) else { return self.bad(inst) };
        if self.isa.is_for_objects() {
            return self.unsupported(inst, "a function of C in code for object files");
        }
        let name = callback_name(self.cx.names.text(*symbol));
        // The caller has the signature; here only the address counts.
        let signature = ClifSignature::new(self.isa.host_call_conv());
        let callee = self.import(Symbol::Function(name), signature, false);
        let address = self.b.ins().func_addr(types::I64, callee);
        self.define(inst, &[address])
    }

    // ----- the run time -----

    pub(super) fn call_runtime(&mut self, inst: Inst, entry: RuntimeFn) -> Done {
        let made = self.runtime_values(inst, entry)?;
        self.define(inst, &made)
    }

    /// The result of a run-time entry for the operands; code continues after it if it has not failed.
    pub(super) fn runtime_values(
        &mut self,
        inst: Inst,
        entry: RuntimeFn,
    ) -> Result<Vec<Value>, TranslateError> {
        let lows = |list: &[Type]| list.iter().filter_map(|ty| ty.as_low()).collect::<Vec<_>>();
        let params = lows(entry.params());
        if self.low_types(inst)? != params {
            return self.bad(inst);
        }
        let wide = |low: LowType| match abi_of(low).clif() {
            types::I8 | types::I16 => types::I32,
            ty => ty,
        };
        let mut signature = ClifSignature::new(self.isa.host_call_conv());
        signature.params.push(AbiParam::new(types::I64));
        signature.params.extend(params.iter().map(|&low| AbiParam::new(wide(low))));
        signature
            .returns
            .extend(lows(entry.results()).into_iter().map(|low| AbiParam::new(abi_of(low).clif())));
        let mut args = vec![self.thread()];
        for (n, &low) in params.iter().enumerate() {
            let value = self.arg(inst, n)?;
            args.push(if low.is_float() || wide(low) == abi_of(low).clif() {
                value
            } else {
                self.b.ins().uextend(wide(low), value)
            });
        }
        if !entry.returns() {
            self.set_apart(&mut args[1..]);
        }
        let callee = self.import(Symbol::Routine(entry.symbol().to_owned()), signature, false);
        let call = self.b.ins().call(callee, &args);
        self.map_roots(inst, call);
        let made = self.b.inst_results(call).to_vec();
        if !entry.returns() {
            // Cranelift refuses a cold entry block.
            if let Some(block) = self.b.current_block()
                && self.b.func.layout.entry_block() != Some(block)
            {
                self.b.set_cold_block(block);
            }
            self.raise();
        }
        if entry.may_fail()
            && let Some(&object) = made.first()
        {
            let (pending, go_on) = (self.pending(), self.b.create_block());
            self.b.ins().brif(object, go_on, &[], pending, &[]);
            self.b.switch_to_block(go_on);
        }
        Ok(made)
    }

    /// Replaces values of other blocks by copies that the register allocator does not join with them; see *Operands of throws* in the header.
    fn set_apart(&mut self, values: &mut [Value]) {
        if self.shares_unwind {
            return;
        }
        for value in values {
            if self.b.func.dfg.value_type(*value) != types::I64 || !self.arrives(*value) {
                continue;
            }
            let slot = *self.apart.get_or_insert_with(|| {
                let word = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
                self.b.create_sized_stack_slot(word)
            });
            let place = self.b.ins().stack_addr(types::I64, slot, 0);
            self.b.ins().store(MemFlagsData::trusted(), *value, place, 0);
            *value = self.b.ins().atomic_load(types::I64, MemFlagsData::trusted(), place);
        }
    }

    /// Whether a value is in a register when the current block begins, rather than made in it or a constant.
    fn arrives(&self, value: Value) -> bool {
        let func = &self.b.func;
        match func.dfg.value_def(func.dfg.resolve_aliases(value)) {
            ValueDef::Result(made, _) => {
                !matches!(
                    func.dfg.insts[made].opcode(),
                    Opcode::Iconst | Opcode::SymbolValue | Opcode::FuncAddr
                ) && func.layout.inst_block(made) != self.b.current_block()
            }
            ValueDef::Param(..) | ValueDef::Union(..) => true,
        }
    }

    pub(super) fn safepoint(&mut self, inst: Inst) -> Done {
        let thread = self.thread();
        let (slow, go_on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        thread::poll(&mut self.b, thread, slow, go_on);
        self.b.switch_to_block(slow);
        let (name, args): (_, &[Value]) = match self.inside {
            None => ("brolga_safepoint", &[]),
            Some(_) => ("brolga_safepoint_status", &[thread]),
        };
        let call = self.routine(name, args);
        if let Some(call) = call {
            self.map_roots(inst, call);
        }
        if self.inside.is_none() {
            self.b.ins().jump(go_on, &[]);
        } else {
            let failed = self.routine_result(inst, call)?;
            let pending = self.pending();
            self.b.ins().brif(failed, pending, &[], go_on, &[]);
        }
        self.b.switch_to_block(go_on);
        Ok(())
    }

    /// Leaves for `throw`, which must end in a throw, if `bad` is true, and continues in a new block if not.
    pub(super) fn throw_if(&mut self, bad: Value, throw: fn(&mut Self)) {
        let (thrower, go_on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(thrower);
        // The exit goes first; see the header of this folder.
        self.b.ins().brif(bad, thrower, &[], go_on, &[]);
        self.b.switch_to_block(thrower);
        throw(self);
        self.b.switch_to_block(go_on);
    }

    /// Throws `DivideError` and ends the block.
    pub(super) fn throw_divide(&mut self) {
        self.throw(RuntimeFn::ThrowDivide.symbol());
    }

    /// Throws `StackOverflowError` and ends the block.
    pub(super) fn throw_stack_overflow(&mut self) {
        self.throw("brolga_throw_stack_overflow");
    }

    /// Throws an exception without operands, by its routine, and ends the block.
    fn throw(&mut self, routine: &'static str) {
        let thread = self.thread();
        let mut signature = ClifSignature::new(self.isa.host_call_conv());
        signature.params.push(AbiParam::new(types::I64));
        let callee = self.import(Symbol::Routine(routine.to_owned()), signature, false);
        self.b.ins().call(callee, &[thread]);
        self.raise();
        self.trap();
    }

    /// Continues at the innermost handler. The code after this is not reached.
    fn raise(&mut self) {
        if self.inside.is_none() && !self.shares_unwind {
            return self.unwind_here();
        }
        let (pending, rest) = (self.pending(), self.b.create_block());
        self.b.ins().jump(pending, &[]);
        self.b.switch_to_block(rest);
    }

    /// Continues at the handler of a caller.
    pub(super) fn unwind_here(&mut self) {
        let thread = self.thread();
        self.routine("brolga_unwind", &[thread]);
    }

    /// Ends a block that is never reached.
    pub(super) fn trap(&mut self) {
        self.b.ins().trap(TrapCode::unwrap_user(UNREACHABLE_TRAP));
    }

    /// Calls a routine of the code generator's own table; `None` if there is none of that name.
    pub(super) fn routine(&mut self, name: &'static str, args: &[Value]) -> Option<clif::Inst> {
        let signature = routines::routine(name)?.clif(self.isa.host_call_conv());
        let callee = self.import(Symbol::Routine(name.to_owned()), signature, false);
        Some(self.b.ins().call(callee, args))
    }

    /// Calls a routine of the table that returns a result.
    pub(super) fn routine_value(
        &mut self,
        inst: Inst,
        name: &'static str,
        args: &[Value],
    ) -> Result<Value, TranslateError> {
        let call = self.routine(name, args);
        self.routine_result(inst, call)
    }

    fn routine_result(&self, inst: Inst, call: Option<clif::Inst>) -> Result<Value, TranslateError> {
        match call.and_then(|call| self.b.func.dfg.inst_results(call).first().copied()) {
            Some(value) => Ok(value),
            None => self.unsupported(inst, "an operation without a routine"),
        }
    }

    /// The result of a routine that returns 128 bits. Arguments of 128 bits are split into halves.
    pub(super) fn wide_routine(
        &mut self,
        inst: Inst,
        name: &'static str,
        args: &[Value],
    ) -> Result<Value, TranslateError> {
        let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 4));
        let memory = self.b.ins().stack_addr(types::I64, slot, 0);
        let mut given = vec![memory];
        for &arg in args {
            if self.b.func.dfg.value_type(arg) == types::I128 {
                let (low, high) = self.b.ins().isplit(arg);
                given.extend([low, high]);
            } else {
                given.push(arg);
            }
        }
        if self.routine(name, &given).is_none() {
            return self.unsupported(inst, "an operation without a routine");
        }
        let flags = MemFlagsData::trusted();
        let low = self.b.ins().load(types::I64, flags, memory, 0);
        let high = self.b.ins().load(types::I64, flags, memory, 8);
        Ok(self.b.ins().iconcat(low, high))
    }

    /// The function reference for a symbol. It is imported again if the signature differs from its last import's.
    pub(super) fn import(&mut self, symbol: Symbol, signature: ClifSignature, near: bool) -> FuncRef {
        if let Some(&known) = self.imports.get(&symbol) {
            let known_signature = self.b.func.dfg.ext_funcs[known].signature;
            // A C function may be called with several signatures.
            if self.b.func.dfg.signatures[known_signature] == signature {
                return known;
            }
        }
        let signature = self.b.import_signature(signature);
        let name = self.external_name(symbol.clone());
        let data =
            ExtFuncData { name: ExternalName::user(name), signature, colocated: near, patchable: false };
        let callee = self.b.import_function(data);
        self.imports.insert(symbol, callee);
        callee
    }
}
