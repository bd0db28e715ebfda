//! Options of an [`Engine`](crate::Engine).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use brolga_cache::Cache;
use brolga_codegen::compile::Limits;
use brolga_codegen::isa::{CpuTarget, Tier};
use brolga_codegen::target::{self, Target};
use brolga_gcroots::Lowering as Roots;
use brolga_ir::Arch;
use brolga_ir::doors::Door;
use brolga_jit::{JitOptions, LinkerKind, Mapping};
use brolga_opt::{CheckBounds, CpuFeatures, ExtraPass, OptLevel};
use brolga_runtime::heap::{HeapOptions, Stress};
use brolga_runtime::{Doors, Output, RuntimeOptions, Traces};

use crate::error::Error;

/// The number of objects and frames that a stress collection may visit before collections become rarer.
const STRESS_WORK: u32 = 256;

/// Options of engines and sessions, each with a default that suits most programs. Created by [`Options::new`] and changed by methods:
///
/// ```
/// # extern crate brolga_engine as brolga;
/// # mod brolga_opt_level { pub use brolga_opt::OptLevel; }
/// use brolga::{Engine, Options};
/// use brolga_opt::OptLevel;
/// let engine = Engine::new(Options::new().opt_level(OptLevel::O1))?;
/// # Ok::<(), brolga::Error>(())
/// ```
pub struct Options {
    pub(crate) level: OptLevel,
    pub(crate) roots: Roots,
    pub(crate) opt: brolga_opt::Options,
    pub(crate) jit: JitOptions,
    pub(crate) doors: Option<Doors>,
    pub(crate) runtime: RuntimeOptions,
    /// Whether the processor features were set explicitly, rather than derived from the target.
    has_cpu_features: bool,
    /// The targets of images, if there are several, or one that is not a [`CpuTarget`].
    pub(crate) targets: Vec<Target>,
    /// Features of the processor that code of images may not use, by Cranelift's names without `has_`.
    pub(crate) masked: Vec<(String, bool)>,
    /// The cache searched before code is compiled.
    pub(crate) cache: Option<Arc<Cache>>,
    /// Whether programs are priced.
    pub(crate) fuel: bool,
    /// The time limit for compiling a program.
    pub(crate) compile_limit: Option<Duration>,
    /// The number of threads that build images; zero means one.
    pub(crate) image_threads: usize,
    /// The functions to whose reach images are trimmed.
    pub(crate) trim: Option<Vec<String>>,
    /// Receives the report of an image build.
    pub(crate) report: Option<Box<ToldReport>>,
    /// Receives the progress of an image build.
    pub(crate) progress: Option<Box<ToldProgress>>,
}

/// The observer of the progress and outcome of an image build.
pub(crate) type ToldProgress = dyn Fn(Progress<'_>) + Send + Sync;
pub(crate) type ToldReport = dyn Fn(&BuildReport) + Send + Sync;

/// The report of an image build.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BuildReport {
    /// The number of functions with code.
    pub functions: usize,
    /// The time of the passes.
    pub optimise: Duration,
    /// The time of code generation.
    pub generate: Duration,
    /// The working time of each thread.
    pub threads: Vec<Duration>,
}

impl fmt::Display for BuildReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        let (optimise, generate) = (ms(&self.optimise), ms(&self.generate));
        write!(f, "{} functions, passes {optimise:.1} ms, code {generate:.1} ms", self.functions)?;
        self.threads
            .iter()
            .enumerate()
            .try_for_each(|(at, time)| write!(f, ", thread {at} {:.1} ms", ms(time)))
    }
}

/// A completed step of an image build: a function has its low form, or machine code for one of the targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress<'a> {
    /// The function's symbol.
    pub symbol: &'a str,
    /// The number of completed steps.
    pub done: usize,
    /// The number of all steps. It may grow while callees of the program are found.
    pub of: usize,
}

impl Default for Options {
    fn default() -> Options {
        let options = Options {
            level: OptLevel::default(),
            roots: Roots::default(),
            opt: brolga_opt::Options::default(),
            jit: JitOptions::default(),
            doors: None,
            runtime: RuntimeOptions::default(),
            has_cpu_features: false,
            targets: Vec::new(),
            masked: Vec::new(),
            cache: None,
            fuel: false,
            compile_limit: None,
            image_threads: 0,
            trim: None,
            report: None,
            progress: None,
        };
        options.cpu_target(CpuTarget::Native)
    }
}

impl Options {
    /// Creates the default options: only programs without doors, optimised at `O2`, all bounds checked, printing to the standard output.
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets the optimisation level. `O0` also uses the fastest code generation.
    #[must_use]
    pub fn opt_level(mut self, level: OptLevel) -> Options {
        self.level = level;
        self
    }

    /// Also accepts programs that are not fully checked, and external code and addresses. The list of doors is
    /// [`brolga_ir::doors`]; without this, a program with doors is refused, with the position and name of each. The embedder is responsible for what passes through them ([`Doors::open`]).
    #[must_use]
    pub fn doors(mut self, doors: Doors) -> Options {
        self.doors = Some(doors);
        self
    }

    /// Whether array bounds are checked everywhere, nowhere, or as the program specifies. Checks are omitted only with open doors: without
    /// them, "as the program specifies" means everywhere, and "nowhere" is an error.
    #[must_use]
    pub fn check_bounds(mut self, check: CheckBounds) -> Options {
        self.opt.check_bounds = check;
        self
    }

    /// The features of the target processor that results depend on: `muladd_float` rounds once with `fma`, as in Julia, and twice without. By
    /// default they are derived from the [target](Options::cpu_target). With `CpuFeatures::default()` the same program computes the same floats everywhere.
    #[must_use]
    pub fn cpu_features(mut self, cpu: CpuFeatures) -> Options {
        self.opt.cpu = cpu;
        self.has_cpu_features = true;
        self
    }

    /// Sets the features of a target, unless others were set explicitly.
    fn features_of_target(mut self, features: CpuFeatures) -> Options {
        if !self.has_cpu_features {
            self.opt.cpu = features;
        }
        self
    }

    /// The processors that the code targets: in this process, processors up to its own; in images, any. An engine for a target that the processor
    /// does not support is refused.
    #[must_use]
    pub fn cpu_target(mut self, target: CpuTarget) -> Options {
        self.jit.isa.target = target;
        self.features_of_target(CpuFeatures { fma: target.has_fma(), bit_counts: target.counts_bits() })
    }

    /// The targets of images, in Julia's syntax: `generic;x86-64-v3,-fma;x86-64-v4,clone_all,base(1)`. Each has a processor's name and features with `+` or `-`. An image has all
    /// functions for the first target, and for each further one the functions that benefit from it, or all with `clone_all`; the best target is selected when it is opened.
    ///
    /// # Errors
    /// The text is malformed, or names an unknown processor or feature.
    pub fn cpu_targets(self, targets: &str) -> Result<Options, Error> {
        self.cpu_targets_of(Arch::HOST, targets)
    }

    /// As [`Options::cpu_targets`], for another architecture, with Linux: `generic`, `generic,+lse`. Images are built for it; engines and
    /// sessions with these options are refused where it differs from the process's. Needs the feature `cross` of the crate.
    ///
    /// # Errors
    /// As [`Options::cpu_targets`]; the crate has no code generator for the architecture.
    pub fn cpu_targets_of(mut self, arch: Arch, targets: &str) -> Result<Options, Error> {
        self.targets = target::parse(arch, targets)?;
        self.opt.arch = arch;
        self.jit.isa.arch = arch;
        // All variants of a function compute the same floats.
        let (mut fma, mut bit_counts) = (true, true);
        for target in &self.targets {
            fma &= target::has_fma(arch, target)?;
            bit_counts &= target::counts_bits(arch, target)?;
        }
        Ok(self.features_of_target(CpuFeatures { fma, bit_counts }))
    }

    /// Opens images as if the processor lacked these features and the ones that depend on them: `avx2`, `sse4.2`. For tests.
    ///
    /// # Errors
    /// There is no such feature.
    pub fn without_cpu_features(mut self, features: &[&str]) -> Result<Options, Error> {
        let text: String = features.iter().map(|feature| format!(",-{feature}")).collect();
        for target in target::parse(Arch::HOST, &format!("native{text}"))? {
            self.masked.extend(target.features);
        }
        Ok(self)
    }

    /// The number of threads that build images; the default is one. The image is the same for any number.
    #[must_use]
    pub fn image_threads(mut self, threads: usize) -> Options {
        self.image_threads = threads;
        self
    }

    /// Trims images to what these functions may reach, together with functions that C calls ([`Library`](crate::image::Library)) and the call of an executable: code, and IR for a program that
    /// is printed or compiled again. A name is a symbol, or a bare name, which selects all of its methods. Other calls of the image are errors, like calls of functions that the program does not have.
    #[must_use]
    pub fn image_trim<S: Into<String>>(mut self, entries: impl IntoIterator<Item = S>) -> Options {
        self.trim = Some(entries.into_iter().map(Into::into).collect());
        self
    }

    /// Sets a function to be called when the code of an image has been generated.
    #[must_use]
    pub fn image_report(mut self, told: impl Fn(&BuildReport) + Send + Sync + 'static) -> Options {
        self.report = Some(Box::new(told));
        self
    }

    /// Looks for code in a cache before compiling, and stores compiled code there: functions, in all tiers, and boxed entries. Engines and sessions may share a cache, and processes may share its store.
    /// [`Cache::stats`] measures its benefit. Found code is run, so the cache's key determines whose code is accepted.
    #[must_use]
    pub fn cache(mut self, cache: Arc<Cache>) -> Options {
        self.cache = Some(cache);
        self
    }

    /// Whether programs are priced, so that limited calls of them take fuel ([`Limits::fuelled_by`](brolga_runtime::Limits::fuelled_by)). The fuel of a call
    /// depends only on the program and its arguments, not on levels, tiers and machines: [`brolga_ir::fuel`]. Library functions, builtins and the code of images are not priced.
    #[must_use]
    pub fn fuel(mut self, fuel: bool) -> Options {
        self.fuel = fuel;
        self
    }

    /// The maximum number of statements of a function, as written and after inlining or unrolling: a larger function is an error
    /// ([`OptError::TooLarge`](brolga_opt::OptError::TooLarge)).
    #[must_use]
    pub fn function_limit(mut self, statements: Option<usize>) -> Options {
        self.opt.max_statements = statements;
        self
    }

    /// The time limit for compiling a program of an engine, or functions of a session that are linked together: exceeding it is an error
    /// ([`OptError::Stopped`](brolga_opt::OptError::Stopped)), in a session until the function is redefined. It is checked between passes and in them, and in each function before code
    /// generation and after Cranelift's mid-end. The rest of Cranelift's work on a function, whose time [`Options::function_limit`] bounds, is not interrupted.
    #[must_use]
    pub fn compile_limit(mut self, time: Option<Duration>) -> Options {
        self.compile_limit = time;
        self
    }

    /// The memory limit for compiling a function, in bytes; `None`: [2 GiB](brolga_opt::COMPILE_MEMORY). A function that needs more is an error
    /// ([`OptError::TooMuchMemory`](brolga_opt::OptError::TooMuchMemory)), before the memory is used. The memory is not measured but estimated from the size of the function's IR: before
    /// the first pass, after each pass, after lowering, and before Cranelift. It counts one function; other functions compiled at the same time, the program and
    /// its types, and the finished code ([`Options::code_limit`]) are counted elsewhere or not at all.
    #[must_use]
    pub fn compile_memory(mut self, bytes: Option<usize>) -> Options {
        self.opt.compile_memory = bytes;
        self.jit.limits.memory = bytes.unwrap_or(Limits::default().memory);
        self
    }

    /// Whether every function is verified after every pass: slow, for finding bugs.
    #[must_use]
    pub fn verify_each(mut self, verify: bool) -> Options {
        self.opt.verify_each = verify;
        self
    }

    /// Disables passes by name, for measuring their effect. An unknown name is an error.
    pub fn without_passes(mut self, names: &[&str]) -> Result<Options, Error> {
        for name in names {
            self.opt.skip.push(brolga_opt::pass_named(name)?.name);
        }
        Ok(self)
    }

    /// Runs a pass of the embedder on every compiled function, at a position among the passes ([`ExtraPass`]). It also runs on functions of Base.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// # use {brolga_ir as ir, brolga_opt as opt};
    /// use brolga::{Engine, Options, Program};
    /// use ir::intrinsic::Intrinsic;
    /// use ir::{Level, Op};
    /// use opt::{Changed, ExtraPass, Pass, PassLevel};
    ///
    /// /// Adds instead of multiplying.
    /// static ADDS: Pass = Pass::new("adds", PassLevel::High, |func, cx| {
    ///     let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
    ///     for inst in insts {
    ///         if func.op(inst) == Op::Intrinsic(Intrinsic::MulInt) && cx.spend("replaced") {
    ///             let args = func.args(inst).to_vec();
    ///             func.set_op(inst, Op::Intrinsic(Intrinsic::AddInt), &args);
    ///         }
    ///     }
    ///     cx.changed()
    /// });
    /// let place = ExtraPass { after: &["inline"], ..ExtraPass::new(&ADDS, Level::High) };
    /// let engine = Engine::new(Options::new().pass(place)?)?;
    /// let text = "function f(x::Int64)::Int64\n1 ─ %1 = Base.mul_int(x, 10)::Int64\n└── return %1\nend";
    /// let unit = engine.compile(&Program::read("f.jlir", text.as_bytes())?)?;
    /// assert_eq!(unit.func::<(i64,), i64>("f")?.call((4,))?, 14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Another pass has its name, or no position meets its conditions.
    pub fn pass(mut self, pass: ExtraPass) -> Result<Options, Error> {
        self.opt.extra.push(Arc::new(pass));
        for level in OptLevel::ALL {
            brolga_opt::steps(level, pass.ir, &self.opt.extra)?;
        }
        Ok(self)
    }

    /// How the heap is sized and when it collects.
    #[must_use]
    pub fn heap(mut self, heap: HeapOptions) -> Options {
        self.runtime.heap = heap;
        self
    }

    /// The memory limit in bytes for objects, and for names and types that the program makes while it runs; `None`: three quarters of the memory of the machine or container
    /// ([`HeapOptions::limit`]).
    #[must_use]
    pub fn heap_limit(mut self, bytes: Option<usize>) -> Options {
        self.runtime.heap.limit = bytes;
        self
    }

    /// Whether every safepoint collects, freed memory is overwritten and the heap is checked: very slow, for finding
    /// objects that are used but not rooted. When more than some hundred objects and frames are live, not every safepoint collects
    /// ([`Stress::Paced`]).
    #[must_use]
    pub fn gc_stress(mut self, stress: bool) -> Options {
        let heap = &mut self.runtime.heap;
        heap.stress = if stress { Stress::Paced(STRESS_WORK) } else { Stress::Off };
        (heap.poison, heap.verify) = (stress, stress);
        self
    }

    /// Short pauses: collections work in slices, each of at most half of this time, between which the program runs
    /// ([`HeapOptions::pause`]). A millisecond is a good value.
    #[must_use]
    pub fn pause(mut self, longest: Duration) -> Options {
        self.runtime.heap.pause = Some(longest);
        self
    }

    /// The method by which the collector finds roots in compiled code. Code of either kind can call the other.
    #[must_use]
    pub fn roots(mut self, roots: Roots) -> Options {
        self.roots = roots;
        self
    }

    /// Which exceptions have a stack trace.
    #[must_use]
    pub fn traces(mut self, traces: Traces) -> Options {
        self.runtime.traces = traces;
        self
    }

    /// The maximum number of bytes of compiled code, with constants and call stubs, at one time. A session evicts code of
    /// [lazy](crate::session::Definitions::lazy) functions, least recently used first, to stay below, and with a pool of workers keeps a quarter
    /// free; the next call compiles them again. A compilation that would still exceed the limit is an error.
    #[must_use]
    pub fn code_limit(mut self, bytes: usize) -> Options {
        let memory = &mut self.jit.memory;
        memory.limit = Some(bytes);
        // Units are placed in fragments of the reservation, so reaching the limit takes a larger reservation.
        memory.reserve = memory.reserve.max(bytes.saturating_mul(2));
        self
    }

    /// Whether compiled code is written through a second mapping, or is in private pages that debuggers can write to.
    #[must_use]
    pub fn code_mapping(mut self, mapping: Mapping) -> Options {
        self.jit.memory.mapping = mapping;
        self
    }

    /// The linker of compiled code. [`LinkerKind::Cranelift`] links with `cranelift-jit`: each unit takes its own pages, so it is slower and larger,
    /// but it requires only executable memory from the system.
    #[must_use]
    pub fn linker(mut self, linker: LinkerKind) -> Options {
        self.jit.linker = linker;
        self
    }

    /// The options of passes; the ones for checked programs unless the doors are open.
    ///
    /// # Errors
    /// The doors are closed, and an option is a door.
    pub(crate) fn passes(
        opt: brolga_opt::Options,
        doors: Option<Doors>,
    ) -> Result<brolga_opt::Options, Error> {
        match (doors, opt.check_bounds) {
            (Some(_), _) => Ok(opt),
            (None, CheckBounds::No) => {
                Err(Error::Closed { what: "`Options::check_bounds(CheckBounds::No)`", door: Door::Bounds })
            }
            (None, CheckBounds::Auto | CheckBounds::Yes) => Ok(brolga_opt::Options { checked: true, ..opt }),
        }
    }

    /// The effective options: the feature `gc-stress` overrides the given ones.
    pub(crate) fn settled(self) -> Options {
        if cfg!(feature = "gc-stress") { self.gc_stress(true) } else { self }
    }

    /// Sets a function to be called for each step of an image build (`image::build` and similar), for a progress bar; called on several threads if there are several.
    #[must_use]
    pub fn progress(mut self, told: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Options {
        self.progress = Some(Box::new(told));
        self
    }

    /// The maximum number of bytes of program output buffered in memory, by default 256 MiB: captured output that is not taken, or output for a writer that another thread
    /// is using. Further output is dropped, which is an output error ([`Sink::take_error`](brolga_runtime::Sink::take_error)).
    #[must_use]
    pub fn output_limit(mut self, bytes: Option<usize>) -> Options {
        self.runtime.output_limit = bytes;
        self
    }

    /// Where the program's `print` writes.
    #[must_use]
    pub fn output(mut self, output: Output) -> Options {
        self.runtime.output = output;
        self
    }
}

/// The code generation effort for an optimisation level.
pub fn tier(level: OptLevel) -> Tier {
    match level {
        OptLevel::O0 => Tier::Baseline,
        OptLevel::O1 | OptLevel::O2 | OptLevel::O3 => Tier::Optimised,
    }
}
