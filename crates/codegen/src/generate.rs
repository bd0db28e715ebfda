//! From a low function to machine code in one step: translate, then compile.
//!
//! **Large frames.** A function tests the stack limit after its frame is made, so the limit keeps one ordinary
//! frame in reserve. A function of many thousand statements may need a frame of megabytes. It is compiled under the name
//! `NAME#body`, and NAME is a small function that compares the stack pointer less that frame with the limit, then
//! jumps to the body with all its arguments in place.
//!
//! Each user (the engine in process, images) holds one [`Generator`] for each thread; it keeps the scratch
//! memory of all stages. No types of Cranelift are visible in its input or output.

use std::ops::ControlFlow;

use brolga_ir::{Context, Func};
use cranelift_codegen::ir::Function;

use crate::compile::{CompileError, CompileOptions, Compiler, Externals, Limits, Step, Steps};
use crate::compiled::{CompiledFunction, MAX_FRAME_BYTES, MAX_GUARDED_FRAME_BYTES, Symbol};
use crate::guard::guard_function;
use crate::isa::{TargetIsa, Tier};
use crate::linkage::CallLinkage;
use crate::origin::take_bodies;
use crate::translate::{TranslateError, TranslateOptions, Translated, Translator};
use crate::variables::{kept, variables};

/// Why a function did not become machine code.
#[derive(thiserror::Error, Debug)]
pub enum GenerateError {
    /// It has no translation.
    #[error(transparent)]
    Translate(#[from] TranslateError),
    /// Its translation could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// The output for one function.
#[derive(Clone, PartialEq, Debug)]
pub struct Generated {
    /// The machine code.
    pub function: CompiledFunction,
    /// The function's code, if its frame is so large that `function` only guards its entry.
    pub body: Option<CompiledFunction>,
    /// Constant bytes that it refers to, under their symbols.
    pub constants: Vec<(Symbol, Box<[u8]>)>,
    /// Cranelift's IR as text, if a listing was requested.
    pub clif: Option<String>,
}

/// Tables for this many blocks are kept.
const SMALL_CAPACITY: usize = 128;

/// The most that kept tables may be larger than the next function's number of blocks.
const MOST_EXCESS: usize = 8;

/// Generates code for functions one after the other.
pub struct Generator {
    translator: Translator,
    compiler: Compiler,
    clif: Function,
}

impl Generator {
    /// A generator that refuses functions above the limits.
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { frame_bytes: limits.frame_bytes.max(MAX_GUARDED_FRAME_BYTES), ..limits };
        Generator { translator: Translator::new(), compiler: Compiler::new(limits), clif: Function::new() }
    }

    /// Generates code for a verified low function. `linkage` determines how it reaches separately compiled code.
    pub fn generate(
        &mut self,
        cx: &Context,
        func: &Func,
        isa: &TargetIsa,
        options: CompileOptions,
        linkage: CallLinkage<'_>,
    ) -> Result<Generated, GenerateError> {
        self.generate_in_steps(cx, func, isa, options, linkage, &mut |_| ControlFlow::Continue(()))
    }

    /// The same; `reached` is called at each step, and may end the generation there ([`CompileError::Stopped`]).
    pub fn generate_in_steps(
        &mut self,
        cx: &Context,
        func: &Func,
        isa: &TargetIsa,
        options: CompileOptions,
        linkage: CallLinkage<'_>,
        reached: &mut Steps<'_>,
    ) -> Result<Generated, GenerateError> {
        self.forget_size(func);
        // Cranelift considers the order of branches only when it optimises; otherwise every instruction costs the same
        // compile time.
        let is_optimised = options.tier == Tier::Optimised;
        let translate = TranslateOptions {
            order_branches: is_optimised,
            share_unwind: !is_optimised,
            keep_variables: !is_optimised,
            ..TranslateOptions::default()
        };
        let translated = self.translator.translate(cx, func, isa, translate, linkage, &mut self.clif)?;
        let name = cx.names.text(func.name);
        if reached(Step::Translated).is_break() {
            return Err(CompileError::Stopped { name: name.to_owned() }.into());
        }
        let clif = options.listing.then(|| self.clif.display().to_string());
        let signature = self.clif.signature.clone();
        let compiler = &mut self.compiler;
        let Translated { symbols, data, homes, wide_loops: loops, origins } = translated;
        let externals = Externals { symbols, loops, origins };
        let mut function =
            compiler.compile_in_steps(name, &mut self.clif, externals, isa, options, reached)?;
        function.variables = match is_optimised {
            true => variables(cx, func, self.compiler.take_labels()),
            false => kept(cx, func, &homes, self.compiler.slots(), function.code.len()),
        };
        function.inlined = take_bodies(cx, func, &mut function.lines);
        function.file = func.file().map(|file| cx.names.text(file).to_owned());
        let mut body = None;
        if function.frame_bytes > MAX_FRAME_BYTES {
            function.name = format!("{name}#body");
            let frame = function.frame_bytes;
            let (mut guard, symbols) = guard_function(&function.name, signature, frame, isa);
            let guard = self.compiler.compile(name, &mut guard, symbols, isa, options)?;
            body = Some(std::mem::replace(&mut function, guard));
        }
        Ok(Generated { function, body, constants: data, clif })
    }

    /// Drops the tables of the last function if they are far larger than the next one needs. Cranelift allocates several
    /// tables of their capacity for each function, so after a large one every small one would cost as much.
    fn forget_size(&mut self, next: &Func) {
        let capacity = self.clif.layout.block_capacity();
        if capacity > SMALL_CAPACITY && capacity / MOST_EXCESS > next.block_count() {
            self.clif = Function::new();
        }
    }
}
