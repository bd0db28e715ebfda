//! The `brolga` command: one file for each sub-command, each a few calls into the library of that name.
//!
//! | status | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | a negative result: an uncaught exception, a failed test, a file that is not in normal form |
//! | 2 | wrong use of the command line |
//! | 3 | the input is broken, or needs something missing or unsupported in native code; the messages have the places |
//! | 4 | the system refused: a file that cannot be read or written, no memory for code |
//! | 101 | a bug in Brolga |
//!
//! Results go to the standard output, everything else to the standard error, in colour if that is a terminal.

mod bench;
mod cache;
mod caching;
mod compile;
mod completions;
mod diff;
mod doors;
mod executor;
mod explore;
mod fmt;
mod fuzz;
mod image;
mod input;
mod lsp;
mod opt;
mod passes;
mod progress;
mod reduce;
mod repl;
mod report;
mod run;
mod statements;
mod test;
mod top;
mod verify;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use brolga::OptLevel;
use brolga::cache::Cache;
use clap::{Parser, Subcommand};

use report::Stop;

/// The outcome of a sub-command.
type Done = Result<(), Stop>;

/// Compiles and runs a Julia-like SSA IR.
#[derive(Debug, Parser)]
#[command(name = "brolga", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 done; 1 an uncaught exception, a failed test or a file not in normal form; \
                        2 wrong use; 3 broken input; 4 the system refused; 101 a bug in Brolga. \
                        A program that calls C's `exit` gives its own."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Bench(bench::Args),
    Test(test::Args),
    Opt(opt::Args),
    Compile(compile::Args),
    Image(image::Args),
    Cache(cache::Args),
    Explore(explore::Args),
    Repl(repl::Args),
    Top(top::Args),
    Lsp(lsp::Args),
    Fmt(fmt::Args),
    Verify(verify::Args),
    Reduce(reduce::Args),
    Fuzz(fuzz::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Executor(executor::Args),
}

/// Reads the arguments of the process and does what they ask.
fn main() -> ExitCode {
    // An executable that `image build --executable` has made of this program. One that cannot read itself is the command.
    let here = std::env::current_exe().ok().map(|here| brolga::image::appended(&here));
    let done = match here {
        Some(Ok(Some(appended))) => run::run_appended(&appended),
        Some(Err(error @ brolga::image::ImageError::Damaged { .. })) => Err(Stop::System(error.to_string())),
        _ => command(),
    };
    // The library writes what is left when the process ends, and does not report errors.
    let done = done.and_then(|()| std::io::stdout().flush().map_err(|error| Stop::unwritten(&error)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => stop.report(),
    }
}

fn command() -> Done {
    match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Opt(args) => opt::run(&args),
        Command::Compile(args) => compile::run(&args),
        Command::Image(args) => image::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Repl(args) => repl::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Lsp(args) => lsp::run(&args),
        Command::Fmt(args) => fmt::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Reduce(args) => reduce::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Executor(args) => executor::run(&args),
    }
}

/// The level of optimisation.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Level {
    /// How much to optimise: 0 compiles fastest, 3 makes the fastest code
    #[arg(short = 'O', value_name = "LEVEL", default_value = "2", value_parser = level)]
    level: OptLevel,
}

fn level(text: &str) -> Result<OptLevel, String> {
    let number = text.parse().ok().and_then(OptLevel::from_number);
    number.ok_or_else(|| "the levels are 0, 1, 2 and 3".to_owned())
}

/// How programs are run.
#[derive(Clone, Copy, Debug, clap::Args)]
struct How {
    #[command(flatten)]
    level: Level,
    /// Run by the reference interpreter
    #[arg(long, conflicts_with = "jit")]
    interp: bool,
    /// Compile to native code (the default)
    #[arg(long)]
    jit: bool,
    /// Collect garbage at every safepoint, and check the heap: slow, for finding objects that are not kept
    #[arg(long, conflicts_with = "interp")]
    gc_stress: bool,
    /// How the collector finds the objects that compiled code uses: `linked` frames, or `maps` of the stack
    #[arg(long, value_name = "HOW", value_parser = roots, conflicts_with = "interp")]
    roots: Option<brolga::options::Roots>,
    /// How compiled code gets into memory: by Brolga's own `loader`, or by `cranelift`'s
    #[arg(long, value_name = "KIND", value_parser = linker, conflicts_with = "interp")]
    linker: Option<brolga::options::LinkerKind>,
    /// How much memory objects may take: bytes, or a number with the suffix `K`, `M`, `G` or `T` [default: three quarters of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    heap_limit: Option<usize>,
    /// How much memory compiling one function may take, as estimated from its size: bytes, or a number with the suffix `K`, `M`, `G` or `T` [default: 2G]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "interp")]
    compile_memory: Option<usize>,
    #[command(flatten)]
    cpu: Cpu,
    /// Refuse programs with doors: pointers, C functions, low IR, images. Without this they run, with all rights of the process
    #[arg(long)]
    checked: bool,
}

/// The processor that code is for.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Cpu {
    /// The processor that code is for: `native`, `generic`, `x86-64-v2`, `x86-64-v3` or `x86-64-v4`, not above this one. `muladd_float` rounds once where it has
    /// the operation for that, interpreted as well
    #[arg(long = "cpu", value_name = "NAME", value_parser = cpu_target, default_value = "native")]
    target: brolga::options::CpuTarget,
}

fn cpu_target(text: &str) -> Result<brolga::options::CpuTarget, String> {
    brolga::options::CpuTarget::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = brolga::options::CpuTarget::ALL.iter().map(|target| target.name()).collect();
        format!("processors are {}", names.join(", "))
    })
}

/// Bytes: `65536`, `64K`, `8M`, `2G`.
fn size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) if text.ends_with('K') => (digits, 10),
        Some(digits) if text.ends_with('M') => (digits, 20),
        Some(digits) if text.ends_with('G') => (digits, 30),
        Some(digits) => (digits, 40),
        None => (text, 0),
    };
    let bytes = digits.parse().ok().and_then(|number: usize| number.checked_mul(1 << shift));
    bytes
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| "a size is a number of bytes, or a number with the suffix K, M, G or T".to_owned())
}

fn roots(text: &str) -> Result<brolga::options::Roots, String> {
    match text {
        "linked" => Ok(brolga::options::Roots::Linked),
        "maps" => Ok(brolga::options::Roots::Maps),
        _ => Err("roots are `linked`, or found by `maps`".to_owned()),
    }
}

fn linker(text: &str) -> Result<brolga::options::LinkerKind, String> {
    match text {
        "loader" => Ok(brolga::options::LinkerKind::Loader),
        "cranelift" => Ok(brolga::options::LinkerKind::Cranelift),
        _ => Err("linkers are `loader` and `cranelift`".to_owned()),
    }
}

impl How {
    /// The engine to compile with, and its cache of code, if there is one; none for the interpreter.
    fn engine(self, cache: Option<&Arc<Cache>>) -> Result<Option<brolga::Engine>, Stop> {
        if self.interp {
            return Ok(None);
        }
        Ok(Some(brolga::Engine::new(cached(self.options(), cache))?))
    }

    /// The options of engines and sessions.
    fn options(self) -> brolga::Options {
        let options = doors::options(self.checked).opt_level(self.level.level).gc_stress(self.gc_stress);
        let options = options
            .cpu_target(self.cpu.target)
            .heap_limit(self.heap_limit)
            .roots(self.roots.unwrap_or_default());
        options.linker(self.linker.unwrap_or_default()).compile_memory(self.compile_memory)
    }
}

/// The same options, with a cache of code.
fn cached(options: brolga::Options, cache: Option<&Arc<Cache>>) -> brolga::Options {
    match cache {
        Some(cache) => options.cache(cache.clone()),
        None => options,
    }
}

/// An evaluator of a program by the engine, if there is one, else by the interpreter.
fn evaluator<'p>(
    program: &'p brolga::Program,
    engine: Option<&brolga::Engine>,
    how: &How,
) -> Result<brolga::Evaluator<'p>, Stop> {
    let evaluator = match engine {
        Some(engine) => brolga::Evaluator::native(program, engine),
        None if how.checked => brolga::Evaluator::interpreted_checked(program)?,
        None => brolga::Evaluator::interpreted(program),
    };
    // An engine has the target already.
    let evaluator = if engine.is_none() { evaluator.with_cpu_target(how.cpu.target) } else { evaluator };
    Ok(limited(evaluator, how))
}

/// The same evaluator with the heap limit of the command line.
fn limited<'p>(evaluator: brolga::Evaluator<'p>, how: &How) -> brolga::Evaluator<'p> {
    match how.heap_limit {
        Some(bytes) => evaluator.with_heap_limit(bytes as u64),
        None => evaluator,
    }
}
