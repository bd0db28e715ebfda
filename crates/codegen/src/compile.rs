//! Compiles one function: Cranelift IR to bytes and relocations.
//!
//! ```text
//!   Function ──limits──> budget ──> Context::compile ──> CompiledFunction
//!                │          │        (inside a fence)        ▲
//!                │          └ too costly for backtracking: single-pass register allocation (`budget.rs`)
//!                └ baseline: single_pass/mod.rs ─────────────┘ or, for instructions it does not support, as above
//! ```
//!
//! The result names no Cranelift type, so it can go to a linker in this process, to an object file or into a cache.
//! It refers to other code and data by [`Symbol`]s; the bytes contain no address.
//!
//! **The fence.** Cranelift can panic on IR that its verifier accepts (a missing lowering rule, an impossible register
//! constraint). Such a panic is caught, the context is discarded because its state is unknown, and the caller gets
//! [`CompileError::Panicked`] with the message. The message also reaches the panic hook, which prints it by default; the
//! hook is global to the process and belongs to the embedder, so it is not changed. In a build with `panic = "abort"`
//! there is no fence.
//!
//! **Limits.** Time is bounded by size: a function over a limit is refused before work starts. A compilation can be
//! stopped after the translation and after the mid-end ([`Step`]). Cranelift has no hook within its mid-end,
//! instruction selection or register allocation, so these always run to completion. Frames are limited because stack
//! checks reserve room for one unchecked frame (see `thread.rs`).
//!
//! Cost: Cranelift takes nearly all of the time. This file adds one walk for the estimate and copies of the outputs.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{DebugTag, ExternalName, Function, LibCall, Signature, UserStackMap};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa as CraneliftIsa};
use cranelift_codegen::{
    CodegenError, Context, Final, FinalizedMachReloc, FinalizedRelocTarget, MachBufferDebugTagList,
    MachBufferFinalized, MachDebugTagPos, verify_function,
};

use crate::budget::AllocationCost;
use crate::compiled::{
    CompiledFunction, FrameMap, MAX_FRAME_BYTES, MadeBy, RETURN_ADDRESS, RelocKind, RelocTarget, Relocation,
    Symbol, VariablePlace,
};
use crate::counters;
use crate::isa::{TargetIsa, Tier};
use crate::origin::Origins;
use crate::single_pass::SinglePass;
use crate::variables::places;
use crate::wide::{self, WideCode};

/// The most words that a signature's parameters may take. Cranelift panics above 64 KiB of arguments on the stack.
pub const MAX_PARAM_WORDS: usize = 4096;

/// Why a function could not be compiled.
#[derive(thiserror::Error, Debug)]
pub enum CompileError {
    /// The function is over a limit of [`Limits`], or over the frame limit. The input's size is at fault.
    #[error("`{name}` has {count} {what}; the limit is {limit}")]
    TooLarge {
        name: String,
        /// The counted unit, in the plural.
        what: &'static str,
        count: u64,
        /// The largest count allowed.
        limit: u64,
    },
    /// Cranelift refused the function. A defect of lowering, which must emit only what Cranelift supports.
    #[error("code generator refused `{name}`: {reason}")]
    Refused {
        name: String,
        /// Cranelift's message.
        reason: String,
    },
    /// Cranelift panicked. A defect of Cranelift or of lowering; the process is unharmed.
    #[error("code generator failed on `{name}`: {message}")]
    Panicked {
        name: String,
        /// The panic's message.
        message: String,
    },
    /// Compiling the function takes more memory than [`Limits::memory`], by an estimate from its size. The input's size is at fault.
    #[error("compiling `{name}` takes about {bytes} bytes, and the limit is {limit}")]
    TooMuchMemory {
        name: String,
        /// The estimate.
        bytes: usize,
        limit: usize,
    },
    /// The caller stopped the compilation at a [`Step`]. The function is not at fault.
    #[error("the generation of code for `{name}` was ended")]
    Stopped { name: String },
    /// The machine code uses a relocation or library routine that none of our linkers supports.
    #[error("code of `{name}` needs {what}, which cannot be linked")]
    Unlinkable {
        name: String,
        /// The relocation or routine.
        what: String,
    },
}

/// Sizes above which a function is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Cranelift instructions.
    pub instructions: usize,
    /// Basic blocks.
    pub blocks: usize,
    /// Bytes of stack that one activation may take. Above [`MAX_FRAME_BYTES`] the caller has to guard the entry, as
    /// `generate.rs` does.
    pub frame_bytes: u32,
    /// Bytes that Cranelift may take for the function, by the [estimate](memory_of).
    pub memory: usize,
}

impl Default for Limits {
    /// At the slowest measured rate a function at this limit compiles in about ten seconds.
    fn default() -> Self {
        let memory = 2 << 30;
        Limits { instructions: 2_000_000, blocks: 500_000, frame_bytes: MAX_FRAME_BYTES, memory }
    }
}

/// An estimate of the bytes that Cranelift needs at most to compile a function: its own IR, the machine instructions, and the live ranges of register allocation. At the peak of the
/// process, functions of 100,000 instructions took 2.0 KiB for each where all are calls, 1.6 where each uses the one before, and less than 0.4 where
/// registers are allocated in one pass.
pub fn memory_of(func: &Function) -> usize {
    const INST: usize = 2048;
    const BLOCK: usize = 512;
    INST * func.dfg.num_insts() + BLOCK * func.dfg.num_blocks()
}

/// A point at which the compilation of a function can be stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The function was translated to Cranelift's IR.
    Translated,
    /// Cranelift's mid-end has run. Code that is generated in a single pass, or for a function too large for
    /// backtracking register allocation, has no such step.
    Optimised,
}

/// Called at each step; `Break` stops the compilation there.
pub type Steps<'a> = dyn FnMut(Step) -> ControlFlow<()> + 'a;

/// Options of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompileOptions {
    /// The tier to compile for.
    pub tier: Tier,
    /// Whether to keep the listing of the machine code.
    pub listing: bool,
}

/// Compiles functions one at a time and keeps scratch memory between them. Each thread has its own.
pub struct Compiler {
    context: Context,
    single_pass: SinglePass,
    limits: Limits,
    /// The places of the value labels of the function that was compiled last, by label.
    labels: BTreeMap<u32, Vec<(u32, u32, VariablePlace)>>,
    /// Offsets of stack slots from the canonical frame address, by slot number, for the function that Cranelift
    /// compiled last. Empty if that function has no value labels.
    slots: BTreeMap<u32, i64>,
}

/// The meanings of a function's external names and source locations.
#[derive(Default)]
pub(crate) struct Externals {
    /// `u0:N`, by N.
    pub(crate) symbols: Vec<Symbol>,
    /// Code that follows the function's own: `u2:N`, by N.
    pub(crate) loops: Vec<WideCode>,
    /// The places in the source.
    pub(crate) origins: Origins,
}

impl Default for Compiler {
    fn default() -> Self {
        Compiler::new(Limits::default())
    }
}

impl Compiler {
    /// A compiler with the given limits.
    pub fn new(limits: Limits) -> Self {
        let (context, single_pass) = (Context::new(), SinglePass::default());
        Compiler { context, single_pass, limits, labels: BTreeMap::new(), slots: BTreeMap::new() }
    }

    /// Offsets of stack slots from the canonical frame address, by slot number, for the function that Cranelift
    /// compiled last. Empty if that function has no value labels.
    pub(crate) fn slots(&self) -> &BTreeMap<u32, i64> {
        &self.slots
    }

    /// The places of the value labels of the function that was compiled last, by label.
    pub(crate) fn take_labels(&mut self) -> BTreeMap<u32, Vec<(u32, u32, VariablePlace)>> {
        std::mem::take(&mut self.labels)
    }

    /// Compiles `func`, in which the external name `u0:N` means `symbols[N]`. Leaves `func` in an unspecified state:
    /// clear it before reuse.
    pub fn compile(
        &mut self,
        name: &str,
        func: &mut Function,
        symbols: Vec<Symbol>,
        isa: &TargetIsa,
        options: CompileOptions,
    ) -> Result<CompiledFunction, CompileError> {
        let externals = Externals { symbols, ..Externals::default() };
        self.compile_in_steps(name, func, externals, isa, options, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Compiler::compile`]; `reached` may stop the compilation after the mid-end.
    pub(crate) fn compile_in_steps(
        &mut self,
        name: &str,
        func: &mut Function,
        mut externals: Externals,
        isa: &TargetIsa,
        options: CompileOptions,
        reached: &mut Steps<'_>,
    ) -> Result<CompiledFunction, CompileError> {
        self.check_limits(name, func)?;
        self.labels.clear();
        self.slots.clear();
        let cost = (options.tier == Tier::Optimised).then(|| AllocationCost::of(func));
        let oversized = cost.is_some_and(|cost| cost.is_oversized());
        let in_one_pass = cost.is_none_or(|cost| cost.is_for_one_pass());
        // Only Cranelift reports the places of labelled values and makes listings.
        if in_one_pass
            && !options.listing
            && func.dfg.values_labels.is_none()
            && let Some(compiled) = self.compile_in_one_pass(name, func, &mut externals, isa)?
        {
            return Ok(compiled);
        }
        let runs_mid_end_apart = cost.is_some_and(|cost| !cost.is_slow_to_optimise()) && !oversized;
        let target = match cost {
            // Baseline skips the mid-end, which walks for each value all loops around it and the blocks that dominate
            // it.
            Some(cost) if cost.is_slow_to_optimise() => isa.for_tier(Tier::Baseline),
            _ if oversized => isa.for_oversized(),
            _ => isa.for_tier(options.tier),
        };

        // A callback that unwound may have left a function in the context.
        self.context.clear();
        std::mem::swap(&mut self.context.func, func);
        self.context.set_disasm(options.listing);
        let result = self.generate(name, isa, target, runs_mid_end_apart, reached).and_then(|()| {
            let made_by = if oversized { MadeBy::CraneliftOversized } else { MadeBy::Cranelift };
            self.extract(name, externals, made_by, &**isa.for_tier(options.tier))
        });
        std::mem::swap(&mut self.context.func, func);
        result
    }

    /// Compiles the function in the context.
    fn generate(
        &mut self,
        name: &str,
        isa: &TargetIsa,
        target: &OwnedTargetIsa,
        runs_mid_end_apart: bool,
        reached: &mut Steps<'_>,
    ) -> Result<(), CompileError> {
        if !runs_mid_end_apart {
            return self.fenced(name, |context, plane| {
                context.compile(&**target, plane).map(drop).map_err(|failed| describe(&failed.inner))
            });
        }
        // The mid-end runs by itself so that `keep_in_register` sees its result.
        self.fenced(name, |context, plane| {
            context.optimize(&**target, plane).map_err(|failed| describe(&failed))
        })?;
        if reached(Step::Optimised).is_break() {
            return Err(CompileError::Stopped { name: name.to_string() });
        }
        self.fenced(name, |context, plane| {
            counters::keep_in_register(context);
            let compiled = context.compile(&**isa.behind_mid_end(), plane);
            compiled.map(drop).map_err(|failed| describe(&failed.inner))
        })
    }

    /// Runs a part of Cranelift, whose panics become errors.
    fn fenced(
        &mut self,
        name: &str,
        part: impl FnOnce(&mut Context, &mut ControlPlane) -> Result<(), String>,
    ) -> Result<(), CompileError> {
        let context = &mut self.context;
        // Unwind safety: the part modifies nothing but the context, which is replaced after a panic.
        let fenced = catch_unwind(AssertUnwindSafe(|| part(context, &mut ControlPlane::default())));
        fenced
            .map_err(|payload| {
                self.context = Context::new();
                CompileError::Panicked { name: name.to_string(), message: message_of(payload) }
            })?
            .map_err(|reason| CompileError::Refused { name: name.to_string(), reason })
    }

    /// Generates code in a single pass. `None` if the function has an instruction that only Cranelift supports, or if
    /// the target has no single-pass generator.
    fn compile_in_one_pass(
        &mut self,
        name: &str,
        func: &Function,
        externals: &mut Externals,
        isa: &TargetIsa,
    ) -> Result<Option<CompiledFunction>, CompileError> {
        let Some(features) = isa.single_pass() else { return Ok(None) };
        let target = isa.for_tier(Tier::Baseline);
        if target.flags().enable_verifier()
            && let Err(errors) = verify_function(func, &**target)
        {
            return Err(CompileError::Refused { name: name.to_string(), reason: errors.to_string() });
        }
        let (single_pass, frame_bytes) = (&mut self.single_pass, self.limits.frame_bytes);
        // Unwind safety: `compile` resets all state at its start, so state left by a panic does not reach the next
        // function.
        let fenced = catch_unwind(AssertUnwindSafe(|| {
            let Externals { symbols, origins, .. } = externals;
            single_pass.compile(name, func, symbols, origins, features, frame_bytes).ok()
        }));
        fenced.map_err(|payload| CompileError::Panicked {
            name: name.to_string(),
            message: message_of(payload),
        })
    }

    fn check_limits(&self, name: &str, func: &Function) -> Result<(), CompileError> {
        let (bytes, limit) = (memory_of(func), self.limits.memory);
        if bytes > limit {
            return Err(CompileError::TooMuchMemory { name: name.to_string(), bytes, limit });
        }
        let checks = [
            ("instructions", func.dfg.num_insts(), self.limits.instructions),
            ("blocks", func.dfg.num_blocks(), self.limits.blocks),
            // Cranelift adds up slot sizes before our frame check can see the result.
            ("bytes of stack slots", slot_bytes(func), self.limits.frame_bytes as usize),
            ("words of parameters in one signature", param_words(func), MAX_PARAM_WORDS),
        ];
        match checks.into_iter().find(|(_, count, limit)| count > limit) {
            None => Ok(()),
            Some((what, count, limit)) => Err(CompileError::TooLarge {
                name: name.to_string(),
                what,
                count: count as u64,
                limit: limit as u64,
            }),
        }
    }

    fn extract(
        &mut self,
        name: &str,
        externals: Externals,
        made_by: MadeBy,
        target: &dyn CraneliftIsa,
    ) -> Result<CompiledFunction, CompileError> {
        let compiled = self.context.take_compiled_code();
        let Some(compiled) = compiled else {
            return Err(CompileError::Refused {
                name: name.to_string(),
                reason: "no code was generated".into(),
            });
        };
        let buffer = &compiled.buffer;
        let frame_bytes = buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset);
        if frame_bytes > self.limits.frame_bytes {
            return Err(CompileError::TooLarge {
                name: name.to_string(),
                what: "bytes of stack frame",
                count: frame_bytes.into(),
                limit: self.limits.frame_bytes.into(),
            });
        }
        let unlinkable = |what: String| CompileError::Unlinkable { name: name.to_string(), what };
        let returns = return_offsets(buffer);
        let Externals { mut symbols, loops, origins } = externals;
        let (code, places_of_loops) = with_loops(buffer.data(), &loops);
        let mut relocs = Vec::with_capacity(buffer.relocs().len());
        for reloc in buffer.relocs() {
            relocs
                .push(self.relocation(reloc, &mut symbols, &returns, &places_of_loops).map_err(unlinkable)?);
        }
        self.labels = places(&compiled.value_labels_ranges, target);
        if let Some(layout) = buffer.frame_layout().filter(|_| self.context.func.dfg.values_labels.is_some())
        {
            // The frame pointer is two words below the canonical frame address.
            let top = i64::from(layout.frame_to_fp_offset) + 16;
            let slots =
                layout.stackslots.iter().map(|(slot, at)| (slot.as_u32(), i64::from(at.offset) - top));
            self.slots.extend(slots);
        }
        let own = buffer.get_srclocs_sorted().iter();
        let own = own.filter_map(|range| Some((range.start, origins.origin(range.loc)?)));
        let of_loops = loops.iter().zip(&places_of_loops).flat_map(|(one, place)| {
            one.lines.iter().map(move |&(offset, line)| (place + offset, line.into()))
        });
        let lines = own.chain(of_loops).collect();
        Ok(CompiledFunction {
            name: name.to_string(),
            code,
            align: if loops.is_empty() { buffer.alignment } else { buffer.alignment.max(wide::ALIGN) },
            relocs,
            symbols,
            frame_bytes,
            frame_maps: frame_maps(buffer),
            lines,
            inlined: Vec::new(),
            file: None,
            variables: Vec::new(),
            made_by,
            listing: compiled.vcode.clone(),
        })
    }

    fn relocation(
        &self,
        reloc: &FinalizedMachReloc,
        symbols: &mut Vec<Symbol>,
        returns: &BTreeMap<u32, u32>,
        loops: &[u32],
    ) -> Result<Relocation, String> {
        let kind = RelocKind::from_clif(reloc.kind).ok_or_else(|| format!("relocation {}", reloc.kind))?;
        let target = match &reloc.target {
            FinalizedRelocTarget::Func(offset) => RelocTarget::Offset(*offset),
            FinalizedRelocTarget::ExternalName(ExternalName::User(reference)) => {
                let external = &self.context.func.params.user_named_funcs()[*reference];
                if external.namespace == RETURN_ADDRESS {
                    let offset = returns.get(&external.index).ok_or("the return address of no call")?;
                    let target = RelocTarget::Offset(*offset);
                    return Ok(Relocation { offset: reloc.offset, kind, target, addend: reloc.addend });
                }
                if external.namespace == wide::LOOP {
                    let offset = loops.get(external.index as usize).ok_or("a loop that is not there")?;
                    let target = RelocTarget::Offset(*offset);
                    return Ok(Relocation { offset: reloc.offset, kind, target, addend: reloc.addend });
                }
                if external.namespace != 0 || external.index as usize >= symbols.len() {
                    return Err(format!("external name u{}:{}", external.namespace, external.index));
                }
                RelocTarget::Symbol(external.index)
            }
            FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)) => {
                let routine = libcall_routine(*call).ok_or_else(|| format!("library routine {call}"))?;
                RelocTarget::Symbol(intern(symbols, Symbol::Routine(routine.to_string())))
            }
            FinalizedRelocTarget::ExternalName(other) => {
                return Err(format!("external name {}", other.display(None)));
            }
        };
        Ok(Relocation { offset: reloc.offset, kind, target, addend: reloc.addend })
    }
}

/// The code followed by its loops, and their offsets.
fn with_loops(code: &[u8], loops: &[WideCode]) -> (Vec<u8>, Vec<u32>) {
    let mut code = code.to_vec();
    let mut places = Vec::with_capacity(loops.len());
    for one in loops {
        code.resize(code.len().next_multiple_of(wide::ALIGN as usize), 0xcc);
        places.push(code.len() as u32);
        code.extend_from_slice(&one.bytes);
    }
    (code, places)
}

/// The return offsets of tagged calls, by tag.
fn return_offsets(buffer: &MachBufferFinalized<Final>) -> BTreeMap<u32, u32> {
    // The other instructions of a lowered call carry the tag as well, at their `Pre` positions.
    let behind = buffer.debug_tags().filter(|tags| tags.pos == MachDebugTagPos::Post);
    let numbered = |tags: MachBufferDebugTagList<'_>| match tags.tags {
        [DebugTag::User(number)] => Some((*number, tags.offset)),
        _ => None,
    };
    behind.filter_map(numbered).collect()
}

/// Frame maps relative to the frame pointer. Cranelift's offsets are relative to the stack pointer, `span` bytes below.
fn frame_maps(buffer: &MachBufferFinalized<Final>) -> Vec<FrameMap> {
    let map = |(return_offset, span, map): &(u32, u32, UserStackMap)| {
        let words = map.entries().map(|(_, offset)| offset as i32 - *span as i32).collect();
        FrameMap { return_offset: *return_offset, words }
    };
    buffer.user_stack_maps().iter().map(map).collect()
}

/// The index of `symbol`, which is added if absent. A linear search is enough: a function uses few routines.
fn intern(symbols: &mut Vec<Symbol>, symbol: Symbol) -> u32 {
    let at = symbols.iter().position(|s| *s == symbol).unwrap_or_else(|| {
        symbols.push(symbol);
        symbols.len() - 1
    });
    at as u32
}

/// The run-time routine that implements a Cranelift library call; `None` for calls that our settings rule out.
fn libcall_routine(call: LibCall) -> Option<&'static str> {
    Some(match call {
        LibCall::CeilF32 => "brolga_ceil_f32",
        LibCall::CeilF64 => "brolga_ceil_f64",
        LibCall::FloorF32 => "brolga_floor_f32",
        LibCall::FloorF64 => "brolga_floor_f64",
        LibCall::TruncF32 => "brolga_trunc_f32",
        LibCall::TruncF64 => "brolga_trunc_f64",
        LibCall::NearestF32 => "brolga_nearest_f32",
        LibCall::NearestF64 => "brolga_nearest_f64",
        LibCall::FmaF32 => "brolga_fma_f32",
        LibCall::FmaF64 => "brolga_fma_f64",
        LibCall::Memcpy => "brolga_memcpy",
        LibCall::Memmove => "brolga_memmove",
        LibCall::Memset => "brolga_memset",
        LibCall::Memcmp => "brolga_memcmp",
        LibCall::Probestack | LibCall::ElfTlsGetAddr | LibCall::ElfTlsGetOffset | LibCall::X86Pshufb => {
            return None;
        }
    })
}

fn slot_bytes(func: &Function) -> usize {
    func.sized_stack_slots.values().fold(0usize, |sum, slot| sum.saturating_add(slot.size as usize))
}

/// The largest number of parameter words in the signatures of a function and its callees.
fn param_words(func: &Function) -> usize {
    let words = |signature: &Signature| {
        signature.params.iter().map(|param| param.value_type.bytes().div_ceil(8) as usize).sum()
    };
    std::iter::once(&func.signature).chain(func.dfg.signatures.values()).map(words).max().unwrap_or(0)
}

fn describe(error: &CodegenError) -> String {
    match error {
        CodegenError::Verifier(errors) => errors.to_string(),
        other => other.to_string(),
    }
}

/// The message of a caught panic.
pub fn message_of(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(text) => text.to_string(),
            Err(_) => "panic without a message".to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use cranelift_codegen::ir::{
        ExtFuncData, InstBuilder, StackSlotData, StackSlotKind, UserExternalName, types,
    };
    use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

    use super::*;
    use crate::isa::IsaOptions;
    use crate::sig::{Abi, Signature};

    const OPTIMISED: CompileOptions = CompileOptions { tier: Tier::Optimised, listing: false };

    fn isa() -> TargetIsa {
        TargetIsa::new(IsaOptions { verify_clif: true, ..IsaOptions::default() }).unwrap()
    }

    fn build(sig: &Signature, body: impl FnOnce(&mut FunctionBuilder<'_>)) -> Function {
        let mut func = Function::new();
        func.signature = sig.clif();
        let mut scratch = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut func, &mut scratch);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        body(&mut b);
        b.seal_all_blocks();
        b.finalize(isa().frontend_config());
        func
    }

    fn identity() -> Function {
        build(&Signature::new([Abi::I64], [Abi::I64]), |b| {
            let x = b.block_params(b.current_block().unwrap())[0];
            b.ins().return_(&[x]);
        })
    }

    #[test]
    fn a_refused_function_is_an_error_with_the_verifier_text_and_the_compiler_stays_usable() {
        let mut compiler = Compiler::default();
        let mut ill_typed = build(&Signature::new([Abi::I64], [Abi::I32]), |b| {
            let x = b.block_params(b.current_block().unwrap())[0];
            b.ins().return_(&[x]);
        });
        let error = compiler.compile("f", &mut ill_typed, vec![], &isa(), OPTIMISED).unwrap_err();
        assert!(
            matches!(&error, CompileError::Refused { reason, .. } if reason.contains("return")),
            "{error}"
        );
        assert!(compiler.compile("g", &mut identity(), vec![], &isa(), OPTIMISED).is_ok());
    }

    #[test]
    fn a_panic_in_cranelift_is_an_error_and_the_compiler_stays_usable() {
        // Converting to an 8-bit integer passes the verifier and reaches an `unreachable!` on x86-64.
        let mut unsupported = build(&Signature::new([Abi::F64], [Abi::I8]), |b| {
            let x = b.block_params(b.current_block().unwrap())[0];
            let narrow = b.ins().fcvt_to_sint(types::I8, x);
            b.ins().return_(&[narrow]);
        });
        let mut compiler = Compiler::default();
        let result = compiler.compile("f", &mut unsupported, vec![], &isa(), OPTIMISED);
        if cfg!(target_arch = "x86_64") {
            assert!(matches!(result, Err(CompileError::Panicked { .. })), "{result:?}");
        }
        assert!(compiler.compile("g", &mut identity(), vec![], &isa(), OPTIMISED).is_ok());
    }

    #[test]
    fn a_frame_that_would_outrun_the_stack_check_is_refused() {
        let mut func = build(&Signature::default(), |b| {
            for _ in 0..3 {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, MAX_FRAME_BYTES / 2, 3);
                b.create_sized_stack_slot(data);
            }
            b.ins().return_(&[]);
        });
        let error = Compiler::default().compile("f", &mut func, vec![], &isa(), OPTIMISED).unwrap_err();
        assert!(matches!(error, CompileError::TooLarge { limit, .. } if limit == MAX_FRAME_BYTES.into()));
    }

    #[test]
    fn signatures_that_cranelift_panics_at_are_refused() {
        let wide = Signature::new(vec![Abi::I128; MAX_PARAM_WORDS / 2 + 1], []);
        let own = build(&wide, |b| {
            b.ins().return_(&[]);
        });
        let called = build(&Signature::default(), |b| {
            b.import_signature(wide.clif());
            b.ins().return_(&[]);
        });
        for mut func in [own, called] {
            let error = Compiler::default().compile("f", &mut func, vec![], &isa(), OPTIMISED).unwrap_err();
            let is_limit = |limit| limit == MAX_PARAM_WORDS as u64;
            assert!(matches!(error, CompileError::TooLarge { limit, .. } if is_limit(limit)), "{error}");
        }
        let most = Signature::new(vec![Abi::I64; MAX_PARAM_WORDS], []);
        let mut func = build(&most, |b| {
            b.ins().return_(&[]);
        });
        assert!(Compiler::default().compile("f", &mut func, vec![], &isa(), OPTIMISED).is_ok());
    }

    #[test]
    fn an_external_name_without_a_symbol_is_refused() {
        let mut func = build(&Signature::default(), |b| {
            let sig = b.import_signature(Signature::default().clif());
            let name = b.func.declare_imported_user_function(UserExternalName::new(0, 7));
            let callee = b.import_function(ExtFuncData {
                name: ExternalName::user(name),
                signature: sig,
                colocated: false,
                patchable: false,
            });
            b.ins().call(callee, &[]);
            b.ins().return_(&[]);
        });
        let error = Compiler::default().compile("f", &mut func, vec![], &isa(), OPTIMISED).unwrap_err();
        assert!(matches!(error, CompileError::Unlinkable { what, .. } if what.contains("u0:7")));
    }

    /// Loads `count` values and adds them up, the last one first.
    fn live_values(count: i32) -> Function {
        build(&Signature::new([Abi::Ptr], [Abi::I64]), |b| {
            let base = b.block_params(b.current_block().unwrap())[0];
            let flags = cranelift_codegen::ir::MemFlagsData::trusted();
            let values: Vec<_> = (0..count).map(|i| b.ins().load(types::I64, flags, base, 8 * i)).collect();
            let sum = values.iter().rev().copied().reduce(|a, v| b.ins().iadd(a, v)).unwrap();
            b.ins().return_(&[sum]);
        })
    }

    /// `count` empty loops in a row.
    fn loops(count: usize) -> Function {
        build(&Signature::new([Abi::I64], []), |b| {
            let stop = b.block_params(b.current_block().unwrap())[0];
            for _ in 0..count {
                let (head, behind) = (b.create_block(), b.create_block());
                b.ins().jump(head, &[]);
                b.switch_to_block(head);
                b.ins().brif(stop, behind, &[], head, &[]);
                b.switch_to_block(behind);
            }
            b.ins().return_(&[]);
        })
    }

    /// `count` nested empty loops.
    fn nest(count: usize) -> Function {
        build(&Signature::new([Abi::I64], []), |b| {
            let stop = b.block_params(b.current_block().unwrap())[0];
            let heads: Vec<_> = (0..count)
                .map(|_| {
                    let head = b.create_block();
                    b.ins().jump(head, &[]);
                    b.switch_to_block(head);
                    head
                })
                .collect();
            for &head in heads.iter().rev() {
                let behind = b.create_block();
                b.ins().brif(stop, behind, &[], head, &[]);
                b.switch_to_block(behind);
            }
            b.ins().return_(&[]);
        })
    }

    /// `count` conditions in a row, and as many values that are alive over all of them.
    fn live_over_blocks(count: i32) -> Function {
        build(&Signature::new([Abi::Ptr], [Abi::I64]), |b| {
            let base = b.block_params(b.current_block().unwrap())[0];
            let flags = cranelift_codegen::ir::MemFlagsData::trusted();
            let values: Vec<_> = (0..count).map(|i| b.ins().load(types::I64, flags, base, 8 * i)).collect();
            for &value in &values {
                let behind = b.create_block();
                b.ins().brif(value, behind, &[], behind, &[]);
                b.switch_to_block(behind);
            }
            let sum = values.iter().rev().copied().reduce(|a, v| b.ins().iadd(a, v)).unwrap();
            b.ins().return_(&[sum]);
        })
    }

    /// `count` values one after the other, each read by a cold successor of its own block, the first or the second.
    fn read_when_cold(count: i32, goes_first: bool) -> Function {
        build(&Signature::new([Abi::Ptr], []), |b| {
            let base = b.block_params(b.current_block().unwrap())[0];
            let flags = cranelift_codegen::ir::MemFlagsData::trusted();
            for i in 0..count {
                let value = b.ins().load(types::I64, flags, base, 8 * i);
                let (cold, behind) = (b.create_block(), b.create_block());
                b.set_cold_block(cold);
                match goes_first {
                    true => b.ins().brif(value, cold, &[], behind, &[]),
                    false => b.ins().brif(value, behind, &[], cold, &[]),
                };
                b.switch_to_block(cold);
                b.ins().store(flags, value, base, 0);
                b.ins().return_(&[]);
                b.switch_to_block(behind);
            }
            b.ins().return_(&[]);
        })
    }

    #[test]
    fn values_of_cold_successors_are_live_in_the_order_of_lowering() {
        let is_for_one_pass =
            |count, first| AllocationCost::of(&read_when_cold(count, first)).is_for_one_pass();
        assert!(is_for_one_pass(10_000, true));
        assert!(!is_for_one_pass(10_000, false));
        assert!(!is_for_one_pass(50, true));
    }

    #[test]
    fn the_mid_end_is_skipped_where_many_blocks_dominate_many_instructions() {
        let is_slow = |count| AllocationCost::of(&loops(count)).is_slow_to_optimise();
        assert!(!is_slow(2_000) && is_slow(60_000));
    }

    #[test]
    fn many_values_alive_over_many_blocks_are_compiled_in_one_pass() {
        let made_by = |mut func: Function, listing| {
            let options = CompileOptions { tier: Tier::Optimised, listing };
            Compiler::default().compile("f", &mut func, vec![], &isa(), options).unwrap().made_by
        };
        let in_one_pass =
            if isa().single_pass().is_some() { MadeBy::SinglePass } else { MadeBy::CraneliftOversized };
        assert_eq!(made_by(live_over_blocks(1_500), false), in_one_pass);
        assert_eq!(made_by(live_over_blocks(1_500), true), MadeBy::CraneliftOversized);
        assert_eq!(made_by(live_over_blocks(60), false), MadeBy::Cranelift);
        // Many values in one block cost what their instructions cost.
        assert_eq!(made_by(live_values(4_000), false), MadeBy::CraneliftOversized);
    }

    #[test]
    fn shapes_that_are_slow_to_backtrack_on_get_single_pass_allocation() {
        let oversized = |mut func: Function, tier| {
            let options = CompileOptions { tier, listing: false };
            let compiled = Compiler::default().compile("f", &mut func, vec![], &isa(), options);
            compiled.unwrap().made_by == MadeBy::CraneliftOversized
        };
        assert!(oversized(live_values(4_000), Tier::Optimised));
        assert!(oversized(loops(2_000), Tier::Optimised));
        assert!(!oversized(live_values(100), Tier::Optimised));
        assert!(!oversized(loops(100), Tier::Optimised));
        assert!(oversized(nest(600), Tier::Optimised));
        assert!(!oversized(nest(20), Tier::Optimised));
        // The baseline tier allocates in a single pass anyway.
        assert!(!oversized(loops(2_000), Tier::Baseline));
    }

    #[test]
    fn i128_and_f16_cross_calls() {
        let sig = Signature::new(
            [Abi::I64, Abi::I128, Abi::F16, Abi::I64, Abi::I64, Abi::I128, Abi::I128],
            [Abi::I128, Abi::F16],
        );
        let func = build(&sig, |b| {
            let params = b.block_params(b.current_block().unwrap()).to_vec();
            let sum = b.ins().iadd(params[1], params[6]);
            b.ins().return_(&[sum, params[2]]);
        });
        for tier in [Tier::Baseline, Tier::Optimised] {
            let options = CompileOptions { tier, listing: true };
            let compiled =
                Compiler::default().compile("f", &mut func.clone(), vec![], &isa(), options).unwrap();
            assert!(compiled.listing.is_some());
        }
    }
}
