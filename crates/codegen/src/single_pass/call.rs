//! Calls and returns.
//!
//! | | `tail` | the host's C (System V) | `preserve_all` |
//! |---|---|---|---|
//! | arguments | rdi, rsi, rdx, rcx, r8, r9; xmm0 to xmm7; then the stack | the same | none |
//! | results | rax, rcx, rdx, rsi, rdi, r8, r9, r10; xmm0 to xmm7 | rax, rdx, rcx; xmm0, xmm1 | none |
//! | arguments on the stack are popped by | the callee | the caller | |
//! | clobbered by a call | all registers with values | all registers with values | none |
//!
//! Arguments are a parallel move: the target of one may be the source of another. Moves whose target no other move reads come first; where there
//! are only cycles, one register is copied to the scratch register.

use cranelift_codegen::ir::{
    ArgumentExtension, ArgumentPurpose, Block, DebugTag, ExceptionTable, ExceptionTableItem, FuncRef, Inst,
    InstructionData, SigRef, Signature, Type, Value,
};
use cranelift_codegen::isa::CallConv;

use super::asm::{Gpr, Mem, R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI, RSP, Xmm};
use super::places::{self, Reg, is_float};
use super::{Emitter, External, Step, Unsupported, check};
use crate::compiled::FrameMap;

const ARGUMENTS: [Gpr; 6] = [RDI, RSI, RDX, RCX, R8, R9];
const TAIL_RESULTS: [Gpr; 8] = [RAX, RCX, RDX, RSI, RDI, R8, R9, R10];
const C_RESULTS: [Gpr; 3] = [RAX, RDX, RCX];

/// Where an argument is passed.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Reg(Reg),
    /// Bytes above the return address, or above the stack pointer at the call.
    Stack(i32),
}

/// The places of a function's arguments.
pub(super) fn arguments(signature: &Signature) -> impl Iterator<Item = Step<Place>> + '_ {
    let (mut ints, mut floats, mut stack) = (0, 0, 0);
    signature.params.iter().map(move |param| {
        check(param.value_type)?;
        if param.purpose != ArgumentPurpose::Normal || param.extension != ArgumentExtension::None {
            return Err(Unsupported);
        }
        let reg = match is_float(param.value_type) {
            true => {
                floats += 1;
                (floats <= 8).then(|| Reg::from(Xmm(floats - 1)))
            }
            false => {
                ints += 1;
                ARGUMENTS.get(ints - 1).copied().map(Reg::from)
            }
        };
        Ok(reg.map_or_else(
            || {
                stack += 8;
                Place::Stack(stack - 8)
            },
            Place::Reg,
        ))
    })
}

/// The registers of a function's results.
fn results(signature: &Signature) -> impl Iterator<Item = Step<Reg>> + '_ {
    let (mut ints, mut floats) = (0, 0);
    let (regs, most_floats): (&[Gpr], u8) = match signature.call_conv {
        CallConv::Tail => (&TAIL_RESULTS, 8),
        _ => (&C_RESULTS, 2),
    };
    signature.returns.iter().map(move |result| {
        check(result.value_type)?;
        if result.purpose != ArgumentPurpose::Normal || result.extension != ArgumentExtension::None {
            return Err(Unsupported);
        }
        if is_float(result.value_type) {
            floats += 1;
            return if floats <= most_floats { Ok(Xmm(floats - 1).into()) } else { Err(Unsupported) };
        }
        ints += 1;
        regs.get(ints - 1).copied().map(Reg::from).ok_or(Unsupported)
    })
}

/// Bytes of arguments on the stack.
pub(super) fn stack_bytes(signature: &Signature) -> Step<u32> {
    let mut bytes = 0u32;
    for place in arguments(signature) {
        if let Place::Stack(offset) = place? {
            bytes = offset as u32 + 8;
        }
    }
    Ok(bytes.next_multiple_of(16))
}

enum Callee {
    Near(u32),
    Far(u32),
    /// The address is in rax.
    InRax,
}

impl Emitter<'_> {
    pub(super) fn call(&mut self, inst: Inst, callee: FuncRef) -> Step {
        let signature = self.func.dfg.ext_funcs[callee].signature;
        self.make_call(inst, Some(callee), signature)?;
        self.bind_results(inst, signature)
    }

    pub(super) fn call_indirect(&mut self, inst: Inst, signature: SigRef) -> Step {
        self.make_call(inst, None, signature)?;
        self.bind_results(inst, signature)
    }

    fn bind_results(&mut self, inst: Inst, signature: SigRef) -> Step {
        let func = self.func;
        let signature = &func.dfg.signatures[signature];
        for (reg, &result) in results(signature).zip(func.dfg.inst_results(inst)) {
            self.places.define(self.asm, result, reg?);
        }
        Ok(())
    }

    /// The call itself. After it only its results are in registers, which no code uses yet.
    fn make_call(&mut self, inst: Inst, callee: Option<FuncRef>, signature: SigRef) -> Step {
        let func = self.func;
        let signature = &func.dfg.signatures[signature];
        let given = func.dfg.inst_args(inst);
        let (target, args) = match callee {
            Some(_) => (None, given),
            None => {
                let (&target, args) = given.split_first().ok_or(Unsupported)?;
                (Some(target), args)
            }
        };
        let keeps_registers = match signature.call_conv {
            CallConv::Tail | CallConv::SystemV => false,
            CallConv::PreserveAll if args.is_empty() && callee.is_some() => true,
            _ => return Err(Unsupported),
        };
        if !keeps_registers {
            self.places.save_around(self.asm, given);
        }
        let bytes = stack_bytes(signature)? as i32;
        self.pass(signature, args, target, bytes)?;
        match self.callee(callee)? {
            Callee::Near(symbol) => self.asm.call_symbol(symbol),
            Callee::Far(symbol) => {
                self.asm.mov_symbol(R11, symbol, 0);
                self.asm.call(R11);
            }
            Callee::InRax => self.asm.call(RAX),
        }
        self.note_return(inst);
        if bytes > 0 && signature.call_conv != CallConv::Tail {
            self.asm.add_rsp(bytes);
        }
        if !keeps_registers {
            self.places.forget_registers();
        }
        self.places.unlock();
        Ok(())
    }

    fn callee(&self, callee: Option<FuncRef>) -> Step<Callee> {
        let Some(callee) = callee else { return Ok(Callee::InRax) };
        let data = &self.func.dfg.ext_funcs[callee];
        match self.external(&data.name)? {
            External::Symbol(symbol) if data.colocated => Ok(Callee::Near(symbol)),
            External::Symbol(symbol) => Ok(Callee::Far(symbol)),
            External::Return(_) => Err(Unsupported),
        }
    }

    /// Moves arguments to where the callee expects them, and the address of the callee into rax.
    fn pass(&mut self, signature: &Signature, args: &[Value], target: Option<Value>, bytes: i32) -> Step {
        if bytes > 0 {
            if args.iter().any(|&arg| self.places.is_stack_pointer(self.func, arg)) {
                return Err(Unsupported);
            }
            self.places.push(bytes as u32);
            self.asm.sub_rsp(bytes);
        }
        let mut moves = Vec::with_capacity(args.len() + 1);
        for (place, &arg) in arguments(signature).zip(args) {
            match place? {
                Place::Reg(reg) => moves.push((reg, arg)),
                Place::Stack(offset) => {
                    let from = match self.places.register_of(arg) {
                        Some(reg) => reg,
                        None => {
                            let scratch = scratch(self.ty(arg));
                            self.places.fetch(self.asm, self.func, arg, scratch)?;
                            scratch
                        }
                    };
                    places::store(self.asm, Mem { base: RSP, disp: offset }, from);
                }
            }
        }
        moves.extend(target.map(|target| (Reg::from(RAX), target)));
        self.move_all(&moves)
    }

    /// Moves values to registers, all at once.
    fn move_all(&mut self, moves: &[(Reg, Value)]) -> Step {
        let mut pending: Vec<(Reg, Reg)> = Vec::with_capacity(moves.len());
        for &(to, value) in moves {
            pending.extend(
                self.places.register_of(value).map(|from| (to, from)).filter(|(to, from)| to != from),
            );
        }
        while !pending.is_empty() {
            let is_free = |&(to, _): &(Reg, Reg)| pending.iter().all(|&(_, from)| from != to);
            if let Some(at) = pending.iter().position(is_free) {
                let (to, from) = pending.swap_remove(at);
                places::copy(self.asm, to, from);
            } else {
                let (wanted, _) = pending[0];
                let scratch = if wanted.is_float() { Reg::SCRATCH_FLOAT } else { R11.into() };
                places::copy(self.asm, scratch, wanted);
                pending.iter_mut().filter(|(_, from)| *from == wanted).for_each(|(_, from)| *from = scratch);
            }
        }
        // Values in memory and rematerialized ones need no register but their own.
        for &(to, value) in moves {
            if self.places.register_of(value).is_none() {
                self.places.fetch(self.asm, self.func, value, to)?;
            }
        }
        Ok(())
    }

    /// Records the roots at the return address of a call, and the sites that name the address.
    fn note_return(&mut self, inst: Inst) {
        let func = self.func;
        for tag in func.debug_tags.get(inst) {
            if let DebugTag::User(number) = tag
                && let Some(&label) = self.returns.get(number)
            {
                self.asm.bind(label);
            }
        }
        if let Some(entries) = func.dfg.user_stack_map_entries(inst) {
            let slot = |slot: cranelift_codegen::ir::StackSlot| self.places.slots[slot.as_u32() as usize];
            let words = entries.iter().map(|entry| slot(entry.slot) + entry.offset as i32).collect();
            self.maps.push(FrameMap { return_offset: self.asm.offset(), words });
        }
    }

    /// A call whose exceptions continue in this function.
    pub(super) fn try_call(
        &mut self,
        inst: Inst,
        callee: Option<FuncRef>,
        table: ExceptionTable,
        next: Option<Block>,
    ) -> Step {
        let func = self.func;
        let table = &func.dfg.exception_tables[table];
        let signature = table.signature();
        self.landing(table.items().next())?;
        self.make_call(inst, callee, signature)?;
        let normal = *table.normal_return();
        let given: Vec<Reg> = results(&func.dfg.signatures[signature]).collect::<Step<_>>()?;
        let passed = self.passed(&normal);
        self.pass_on(&passed, &given)?;
        self.go_to(normal.block(&func.dfg.value_lists), next);
        Ok(())
    }

    /// The address where an exception of the call at the end of a block continues.
    pub(super) fn handler_address(&mut self, inst: Inst, block: Block, number: i64) -> Step {
        let func = self.func;
        let last = func.layout.last_inst(block).ok_or(Unsupported)?;
        let (InstructionData::TryCall { exception, .. } | InstructionData::TryCallIndirect { exception, .. }) =
            func.dfg.insts[last]
        else {
            return Err(Unsupported);
        };
        let number = usize::try_from(number).map_err(|_| Unsupported)?;
        let landing = self.landing(func.dfg.exception_tables[exception].items().nth(number))?;
        let to = self.places.temporary(self.asm)?;
        self.asm.lea_label(to, self.blocks[landing.as_u32() as usize]);
        self.define(inst, to);
        Ok(())
    }

    /// The block of a handler, to which nothing is passed.
    fn landing(&self, item: Option<ExceptionTableItem>) -> Step<Block> {
        let lists = &self.func.dfg.value_lists;
        match item {
            Some(ExceptionTableItem::Default(to)) if to.args(lists).len() == 0 => Ok(to.block(lists)),
            _ => Err(Unsupported),
        }
    }

    pub(super) fn return_(&mut self, inst: Inst) -> Step {
        let func = self.func;
        let values = func.dfg.inst_args(inst);
        let mut moves = Vec::with_capacity(values.len());
        for (reg, &value) in results(&func.signature).zip(values) {
            moves.push((reg?, value));
        }
        self.move_all(&moves)?;
        self.leave();
        Ok(())
    }
}

/// The scratch register for one instruction.
pub(super) fn scratch(ty: Type) -> Reg {
    if is_float(ty) { Reg::SCRATCH_FLOAT } else { R11.into() }
}
