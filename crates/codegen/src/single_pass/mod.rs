//! Cranelift's IR to x86-64 in one pass, for short compile times.
//!
//! ```text
//!   Function ── count ──► how often each value is used, where, and unused values
//!            ── emit ───► block by block, instruction by instruction: bytes      cold blocks last
//!            ── finish ─► distances of jumps, size of the frame
//! ```
//!
//! Cranelift's own fastest setting selects instructions by matching trees, makes a second form of the function for them, allocates
//! registers in that, and emits from it. Here each instruction of the IR becomes machine instructions when it is visited, with the
//! registers that are free then. The conventions are Cranelift's, so that functions of both call each other: arguments,
//! results, callee-saved registers, frame pointers, stack maps, exceptional returns. It is a baseline compiler of the kind that
//! engines for WebAssembly and JavaScript have (V8's Liftoff and Sparkplug).
//!
//! | file | content |
//! |---|---|
//! | `asm` | bytes |
//! | `places` | places of values |
//! | `count` | facts computed ahead |
//! | `int`, `float`, `memory` | instructions |
//! | `call`, `control` | calls and returns; branches and their arguments |
//!
//! **Left to Cranelift.** Everything that is not handled here is [`Unsupported`], and Cranelift compiles the whole function:
//! vectors and integers of 128 bits, `fma`, frames over the given limit, conventions other than `tail`, position-independent code, other processors.
//! So nothing here has to be complete, and rare instructions are not worth support.
//!
//! **Preconditions.** The function has been verified, or is made by the translator, whose output is verified in debug builds.
//! A value whose place is unknown is `Unsupported`, never a guess.
//!
//! Cost: linear; two visits of each instruction. A fifth of the instructions that Cranelift executes at its fastest, for code that is faster
//! (`benches/compile_cost/README.md`).
//!
//! Not done: registers that live across blocks or calls, addresses with an index, short jumps.

pub(crate) mod asm;
mod call;
mod control;
mod count;
mod float;
mod int;
mod memory;
mod places;

use cranelift_codegen::ir::{
    Block, ExternalName, Function, GlobalValueData, Inst, InstructionData, Opcode, Type, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use rustc_hash::FxHashMap;
use target_lexicon::Architecture;

use self::asm::{Asm, Finished, Gpr, Label, Mem, Precision, R12, R13, R14, RBP, RBX, Width};
use self::places::{Places, Reg, fits};
use crate::compiled::{CompiledFunction, FrameMap, MadeBy, RETURN_ADDRESS, Symbol};
use crate::origin::{Origin, Origins};

/// The single pass does not support an instruction, type or convention of the function.
#[derive(Debug)]
pub(crate) struct Unsupported;

type Step<T = ()> = Result<T, Unsupported>;

/// Processor features beyond SSE2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    has_popcnt: bool,
    has_lzcnt: bool,
    has_bmi1: bool,
    has_sse41: bool,
}

impl Features {
    /// The features of a processor that the single pass supports, for code whose addresses are known when it is linked.
    pub(crate) fn of(isa: &dyn TargetIsa) -> Option<Features> {
        if isa.triple().architecture != Architecture::X86_64 || isa.flags().is_pic() {
            return None;
        }
        let flags = isa.isa_flags();
        let has = |name| flags.iter().any(|flag| flag.name == name && flag.as_bool() == Some(true));
        Some(Features {
            has_popcnt: has("has_popcnt"),
            has_lzcnt: has("has_lzcnt"),
            has_bmi1: has("has_bmi1"),
            has_sse41: has("has_sse41"),
        })
    }
}

/// Memory that is kept between functions.
#[derive(Default)]
pub(crate) struct SinglePass {
    asm: Asm,
    places: Places,
    /// Labels of blocks.
    blocks: Vec<Label>,
    /// By block: the number of its incoming edges.
    ways: Vec<u32>,
    /// The blocks in the order of the code.
    order: Vec<Block>,
    /// Labels of return addresses, by the number of the call.
    returns: FxHashMap<u32, Label>,
}

/// Properties of a function that its prologue depends on.
#[derive(Clone, Copy, Default)]
struct Shape {
    /// Whether exceptions arrive in it.
    catches: bool,
    /// Bytes of arguments that the caller passed on the stack.
    passed: u16,
}

impl SinglePass {
    /// Compiles a function whose frame takes at most `most_frame_bytes` bytes. `symbols` are the meanings of its external
    /// names; they are taken when it succeeds.
    pub(crate) fn compile(
        &mut self,
        name: &str,
        func: &Function,
        symbols: &mut Vec<Symbol>,
        origins: &Origins,
        features: Features,
        most_frame_bytes: u32,
    ) -> Step<CompiledFunction> {
        if func.signature.call_conv != CallConv::Tail {
            return Err(Unsupported);
        }
        self.asm.clear(32 * func.dfg.num_insts());
        self.places.clear(func);
        self.returns.clear();
        let mut shape = Shape { catches: self.count(func)?, ..Shape::default() };
        self.blocks.clear();
        for _ in 0..func.dfg.num_blocks() {
            let label = self.asm.label();
            self.blocks.push(label);
        }
        let frame_at = self.asm.prologue();
        self.lay_out(func, &mut shape, most_frame_bytes)?;
        let mut emitter = Emitter {
            func,
            features,
            asm: &mut self.asm,
            places: &mut self.places,
            blocks: &self.blocks,
            ways: &self.ways,
            returns: &mut self.returns,
            shape,
            fused: None,
            origins,
            lines: Vec::new(),
            maps: Vec::new(),
        };
        emitter.enter()?;
        emitter.blocks(&self.order)?;
        let Emitter { lines, maps, .. } = emitter;
        let frame_bytes = self.places.extent();
        if frame_bytes > most_frame_bytes {
            return Err(Unsupported);
        }
        self.asm.set_frame(frame_at, self.places.frame());
        let Finished { code, relocs } = self.asm.finish().ok_or(Unsupported)?;
        Ok(CompiledFunction {
            name: name.to_owned(),
            code,
            align: ALIGNMENT,
            relocs,
            symbols: std::mem::take(symbols),
            frame_bytes,
            frame_maps: maps,
            lines,
            inlined: Vec::new(),
            file: None,
            variables: Vec::new(),
            made_by: MadeBy::SinglePass,
            listing: None,
        })
    }

    /// Assigns offsets to stack slots and to arguments that the caller passed on the stack.
    fn lay_out(&mut self, func: &Function, shape: &mut Shape, most_frame_bytes: u32) -> Step {
        if shape.catches {
            self.places.reserve(8 * CALLEE_SAVED.len() as u32, 8);
        }
        for slot in func.sized_stack_slots.values() {
            // Frames begin at multiples of 16, here as in Cranelift, so more cannot be had.
            let align = 1 << slot.align_shift.clamp(3, 4);
            let disp = self.places.reserve(slot.size, align);
            if self.places.frame() > most_frame_bytes {
                return Err(Unsupported);
            }
            self.places.slots.push(disp);
        }
        shape.passed = u16::try_from(call::stack_bytes(&func.signature)?).map_err(|_| Unsupported)?;
        Ok(())
    }
}

/// Functions begin at a multiple of this.
const ALIGNMENT: u32 = 16;

/// The registers that a callee of the `tail` convention keeps, beside the frame pointer. A callee that an exception leaves does not restore
/// them, so a function in which exceptions arrive saves them at its entry and restores them when it returns.
const CALLEE_SAVED: [Gpr; 4] = [RBX, R12, R13, R14];

/// The function being compiled.
struct Emitter<'a> {
    func: &'a Function,
    features: Features,
    asm: &'a mut Asm,
    places: &'a mut Places,
    blocks: &'a [Label],
    ways: &'a [u32],
    returns: &'a mut FxHashMap<u32, Label>,
    shape: Shape,
    /// A comparison that is emitted by the branch after it.
    fused: Option<Inst>,
    origins: &'a Origins,
    lines: Vec<(u32, Origin)>,
    maps: Vec<FrameMap>,
}

impl Emitter<'_> {
    /// After the prologue: saves registers, and records the places of arguments.
    fn enter(&mut self) -> Step {
        if self.shape.catches {
            for (n, &reg) in CALLEE_SAVED.iter().enumerate() {
                self.asm.store(saved(n), reg, Width::B64);
            }
        }
        let func = self.func;
        let entry = func.layout.entry_block().ok_or(Unsupported)?;
        let params = func.dfg.block_params(entry);
        for (place, &param) in call::arguments(&func.signature).zip(params) {
            match place? {
                call::Place::Reg(reg) => self.places.define(self.asm, param, reg),
                call::Place::Stack(offset) => self.places.set_passed(param, 16 + offset),
            }
        }
        Ok(())
    }

    /// Restores registers, and returns.
    fn leave(&mut self) {
        if self.shape.catches {
            for (n, &reg) in CALLEE_SAVED.iter().enumerate() {
                self.asm.load(reg, saved(n));
            }
        }
        self.asm.leave_and_return(self.shape.passed);
    }

    fn blocks(&mut self, order: &[Block]) -> Step {
        let func = self.func;
        let mut before = None;
        for (n, &block) in order.iter().enumerate() {
            if let Some(before) = before {
                // A block with this one predecessor finds in registers the values at its end.
                let is_only_way = self.ways[block.as_u32() as usize] == 1
                    && func.block_successors(before).any(|next| next == block);
                if !is_only_way {
                    self.places.forget_registers();
                }
            }
            self.asm.bind(self.blocks[block.as_u32() as usize]);
            self.block(block, order.get(n + 1).copied())?;
            before = Some(block);
        }
        Ok(())
    }

    /// `next` is the block whose code follows.
    fn block(&mut self, block: Block, next: Option<Block>) -> Step {
        let func = self.func;
        let mut insts = func.layout.block_insts(block).peekable();
        while let Some(inst) = insts.next() {
            let data = &func.dfg.insts[inst];
            let opcode = data.opcode();
            if places::is_rematerialized(opcode) || !self.is_wanted(inst, opcode) {
                continue;
            }
            if let Some(&behind) = insts.peek()
                && self.is_for_branch(inst, data, behind)
            {
                self.fused = Some(inst);
                continue;
            }
            self.note_line(inst);
            self.instruction(inst, data, next)?;
            self.places.unlock();
            self.release_operands(inst);
        }
        Ok(())
    }

    fn is_wanted(&self, inst: Inst, opcode: Opcode) -> bool {
        count::has_effect(opcode) || self.func.dfg.inst_results(inst).iter().any(|&v| self.places.is_used(v))
    }

    /// Whether a comparison is only used by the branch that is the next instruction.
    fn is_for_branch(&self, inst: Inst, data: &InstructionData, behind: Inst) -> bool {
        let dfg = &self.func.dfg;
        let InstructionData::Brif { arg, .. } = dfg.insts[behind] else { return false };
        let is_comparison =
            matches!(data, InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. });
        is_comparison && dfg.first_result(inst) == arg && self.places.is_last_use(arg)
    }

    fn note_line(&mut self, inst: Inst) {
        let origin = self.origins.origin(self.func.srcloc(inst));
        let last = self.lines.last().map_or_else(Origin::default, |&(_, last)| last);
        if let Some(origin) = origin.filter(|&origin| origin != last) {
            self.lines.push((self.asm.offset(), origin));
        }
    }

    fn instruction(&mut self, inst: Inst, data: &InstructionData, next: Option<Block>) -> Step {
        match *data {
            InstructionData::Unary { opcode, arg } => self.unary(inst, opcode, arg),
            InstructionData::Binary { opcode, args } => self.binary(inst, opcode, args),
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => self.compare(inst),
            InstructionData::Ternary { opcode: Opcode::Select, args } => self.select(inst, args),
            InstructionData::Load { opcode, arg, offset, .. } => self.load(inst, opcode, arg, offset.into()),
            InstructionData::Store { opcode: Opcode::Store, args, offset, .. } => {
                self.store(args, offset.into())
            }
            InstructionData::LoadNoOffset { opcode, arg, .. } => self.no_offset(inst, opcode, arg),
            InstructionData::StoreNoOffset { opcode: Opcode::AtomicStore, args, .. } => {
                self.atomic_store(args)
            }
            InstructionData::AtomicRmw { op, args, .. } => self.atomic_rmw(inst, op, args),
            InstructionData::AtomicCas { args, .. } => self.atomic_cas(inst, args),
            InstructionData::UnaryGlobalValue { opcode: Opcode::SymbolValue, global_value } => {
                let GlobalValueData::Symbol { name, offset, colocated, tls: false } =
                    &self.func.global_values[global_value]
                else {
                    return Err(Unsupported);
                };
                self.symbol(inst, name, offset.bits(), *colocated)
            }
            InstructionData::FuncAddr { func_ref, .. } => {
                let callee = &self.func.dfg.ext_funcs[func_ref];
                self.symbol(inst, &callee.name, 0, callee.colocated)
            }
            InstructionData::ExceptionHandlerAddress { block, imm, .. } => {
                self.handler_address(inst, block, imm.bits())
            }
            InstructionData::Call { opcode: Opcode::Call, func_ref, .. } => self.call(inst, func_ref),
            InstructionData::CallIndirect { opcode: Opcode::CallIndirect, sig_ref, .. } => {
                self.call_indirect(inst, sig_ref)
            }
            InstructionData::TryCall { func_ref, exception, .. } => {
                self.try_call(inst, Some(func_ref), exception, next)
            }
            InstructionData::TryCallIndirect { exception, .. } => self.try_call(inst, None, exception, next),
            InstructionData::Jump { destination, .. } => self.jump(&destination, next),
            InstructionData::Brif { arg, blocks, .. } => self.branch(arg, &blocks, next),
            InstructionData::MultiAry { opcode: Opcode::Return, .. } => self.return_(inst),
            InstructionData::Trap { opcode: Opcode::Trap, .. } => {
                self.asm.ud2();
                Ok(())
            }
            InstructionData::NullAry { opcode: Opcode::Fence } => {
                self.asm.mfence();
                Ok(())
            }
            InstructionData::NullAry { opcode: Opcode::Nop } => Ok(()),
            _ => Err(Unsupported),
        }
    }

    /// The address of a symbol of the linker, or of the place after a call.
    fn symbol(&mut self, inst: Inst, name: &ExternalName, offset: i64, is_near: bool) -> Step {
        let to = self.places.temporary(self.asm)?;
        match self.external(name)? {
            External::Symbol(symbol) if is_near => self.asm.lea_symbol(to, symbol, offset),
            External::Symbol(symbol) => self.asm.mov_symbol(to, symbol, offset),
            External::Return(number) => {
                let label = self.asm.label();
                self.returns.insert(number, label);
                self.asm.lea_label(to, label);
            }
        }
        self.define(inst, to);
        Ok(())
    }

    fn external(&self, name: &ExternalName) -> Step<External> {
        let ExternalName::User(reference) = name else { return Err(Unsupported) };
        let user = &self.func.params.user_named_funcs()[*reference];
        match user.namespace {
            0 => Ok(External::Symbol(user.index)),
            RETURN_ADDRESS => Ok(External::Return(user.index)),
            _ => Err(Unsupported),
        }
    }

    // ----- shorter names -----

    fn ty(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    fn result(&self, inst: Inst) -> Value {
        self.func.dfg.first_result(inst)
    }

    fn gpr(&mut self, value: Value) -> Step<Gpr> {
        self.places.use_gpr(self.asm, self.func, value)
    }

    fn xmm(&mut self, value: Value) -> Step<asm::Xmm> {
        self.places.use_xmm(self.asm, self.func, value)
    }

    /// A register with the left operand in it, for the result.
    fn left(&mut self, left: Value, others: &[Value]) -> Step<Reg> {
        self.places.result_from(self.asm, self.func, left, others)
    }

    /// Records that a register holds the first result.
    fn define(&mut self, inst: Inst, reg: impl Into<Reg>) {
        let result = self.result(inst);
        self.places.define(self.asm, result, reg);
    }

    fn address(&mut self, value: Value, offset: i32) -> Step<Mem> {
        self.places.address(self.asm, self.func, value, offset)
    }
}

/// The meaning of an external name.
enum External {
    /// The number of a symbol.
    Symbol(u32),
    /// The number of a call whose return address it is.
    Return(u32),
}

/// Where a callee-saved register is kept.
fn saved(n: usize) -> Mem {
    Mem { base: RBP, disp: -8 * (n as i32 + 1) }
}

/// The width of an integer type.
fn width(ty: Type) -> Step<Width> {
    match ty {
        types::I8 => Ok(Width::B8),
        types::I16 => Ok(Width::B16),
        types::I32 => Ok(Width::B32),
        types::I64 => Ok(Width::B64),
        _ => Err(Unsupported),
    }
}

/// The precision of a float type.
fn precision(ty: Type) -> Step<Precision> {
    match ty {
        types::F32 => Ok(Precision::F32),
        types::F64 => Ok(Precision::F64),
        _ => Err(Unsupported),
    }
}

/// Refuses values that need more than one register.
fn check(ty: Type) -> Step {
    if fits(ty) { Ok(()) } else { Err(Unsupported) }
}
