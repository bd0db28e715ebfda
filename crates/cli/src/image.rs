//! `brolga image build FILE -o app.so`: a program compiled ahead of time, into a file that `brolga run --image` opens, a library that C
//! programs link with, or an executable; or programs as a package for sessions.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use brolga::image;
use brolga::image::{BuildReport, Library, Linker, Run};
use brolga::options::Arch;
use brolga::session::PackageBuild;

use super::progress::Bars;
use super::report::{Stop, err, out};
use super::{Done, Level, doors, input, roots, statements};

/// The file with the run time of executables.
const RUNTIME: &str = "libbrolga_capi.a";

/// Programs compiled ahead of time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Build(Box<Build>),
    Info(Info),
}

/// Shows what an image or a package is: identity, programs, machine, targets, exports, settings and sizes. Runs nothing of it
#[derive(Debug, clap::Args)]
struct Info {
    /// The image or package
    file: PathBuf,
    /// Say whether the image was made of this program; the status is 1 if it was made of another one
    #[arg(long, value_name = "PROGRAM")]
    source: Option<String>,
}

/// Compiles all functions of a program into an image.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  brolga image build examples/fib.jlir -o fib.so\n  brolga run --image fib.so --call 'fib(35)'\n  \
                  brolga image build examples/fib.jlir -o libfib.so --export fib --header fib.h"
)]
struct Build {
    /// The program; `-` reads the standard input. Several make a package, in this order: each sees those before it
    #[arg(required = true)]
    files: Vec<String>,
    /// Where to write the image. An image that is there stays whole until the new one is
    #[arg(short, long, value_name = "FILE")]
    output: String,
    /// The processors that it is for, in Julia's words: `generic;x86-64-v3,-fma;x86-64-v4,clone_all,base(1)`. `native` is this one, `help` lists them. The variable
    /// `BROLGA_CPU_TARGET`, or `native`, unless it is given
    #[arg(long, value_name = "TARGETS")]
    target: Option<String>,
    /// The architecture, `x86_64` or `aarch64`, with Linux as its system. For another architecture than this machine's the target is `generic`, unless it is specified
    #[arg(long, value_name = "ARCH", value_parser = architecture, conflicts_with_all = ["exports", "export_all", "header", "library", "executable"])]
    arch: Option<Arch>,
    /// Let C call a function, by its name if one method has it (`fib`) or by its symbol (`fib(Int64)`); `=NAME` is a name for C
    #[arg(long = "export", value_name = "FUNCTION[=NAME]")]
    exports: Vec<String>,
    /// Let C call all functions whose types and names C has
    #[arg(long)]
    export_all: bool,
    /// Where to write the header of the functions that C calls
    #[arg(long, value_name = "FILE")]
    header: Option<String>,
    /// The name of the library for C, which `NAME_open` begins with; by default the output's name without `lib`
    #[arg(long, value_name = "NAME")]
    library: Option<String>,
    /// Make an executable that runs `main()`, `main(args::Vector{String})` with its arguments, or the call of `--call`, by the system's C compiler
    #[arg(long, conflicts_with_all = ["exports", "export_all", "header", "library"])]
    executable: bool,
    /// The call that an executable makes instead of `main()`; the value is printed as Julia would
    #[arg(long, value_name = "CALL", requires = "executable")]
    call: Option<String>,
    /// The C compiler that links executables: the variable `CC`, or `cc`, `gcc` or `clang` unless it is given
    #[arg(long, value_name = "PROGRAM", requires = "executable")]
    linker: Option<OsString>,
    /// The run time of executables, `libbrolga_capi.a`: the one beside this program unless it is given
    #[arg(long, value_name = "FILE", requires = "executable")]
    runtime: Option<PathBuf>,
    /// Hold only what may be reached from the functions of `--entry`, those that C calls, and the call of an executable
    #[arg(long, conflicts_with_all = ["package"])]
    trim: bool,
    /// A function from which the image is reached, by its name (`fib`) or by its symbol (`fib(Int64)`)
    #[arg(long = "entry", value_name = "FUNCTION", requires = "trim")]
    entries: Vec<String>,
    /// Make a package: code that a session links when it is first needed, and that is redefined, tiered up and removed like code that was compiled there
    #[arg(long, conflicts_with_all = ["exports", "export_all", "header", "library", "executable", "target", "arch"])]
    package: bool,
    /// The package has code of both tiers; functions go to the second after this number of calls
    #[arg(long, value_name = "CALLS", requires = "package")]
    tiered: Option<u32>,
    /// Build on another package, which has to be open wherever this one is
    #[arg(long = "needs", value_name = "PACKAGE", requires = "package")]
    needs: Vec<PathBuf>,
    /// Build against a program that will be there where the package is opened, of which it has nothing itself
    #[arg(long, value_name = "PROGRAM", requires = "package")]
    against: Vec<String>,
    /// Compile only the functions that the statements of this file name: one `precompile f(Int64)` a line, as `brolga run --trace-compile` writes them
    #[arg(long, value_name = "FILE", requires = "package")]
    statements: Option<String>,
    /// How the roots of objects are found while functions run: `linked` frames, or tables for each call (`maps`)
    #[arg(long, value_name = "HOW", value_parser = roots)]
    roots: Option<brolga::options::Roots>,
    /// Say afterwards how long passes and code generation took, by thread, and the most memory that the process had
    #[arg(long, conflicts_with = "package")]
    timings: bool,
    #[command(flatten)]
    level: Level,
    #[command(flatten)]
    bars: Bars,
}

/// The most memory that the process had at once, where the system says it.
fn peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().to_owned())
}

/// The targets that the command or the environment names.
#[expect(clippy::disallowed_methods, reason = "the command reads the environment")]
fn targets(build: &Build, arch: Arch) -> String {
    let told = build.target.clone().or_else(|| std::env::var("BROLGA_CPU_TARGET").ok());
    told.filter(|text| !text.trim().is_empty())
        .unwrap_or_else(|| if arch == Arch::HOST { "native".to_owned() } else { "generic".to_owned() })
}

fn architecture(name: &str) -> Result<Arch, String> {
    Arch::from_name(name)
        .ok_or_else(|| format!("the architectures are {}", Arch::ALL.map(Arch::name).join(" and ")))
}

pub(crate) fn run(args: &Args) -> Done {
    let build = match &args.command {
        Command::Build(build) => build,
        Command::Info(info) => return show(info),
    };
    let report: Arc<Mutex<Option<BuildReport>>> = Arc::default();
    let done = make(build, &report);
    let report = report.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(report) = report.as_ref().filter(|_| build.timings) {
        err(match peak() {
            Some(bytes) => format!("{report}, peak memory {bytes}"),
            None => report.to_string(),
        });
    }
    done
}

fn show(args: &Info) -> Done {
    let bytes = image::read_file(&args.file).map_err(brolga::Error::from)?;
    if brolga::session::is_package(&bytes) {
        let info = brolga::session::package_info(&bytes).map_err(Stop::session)?;
        out(&info)?;
        let Some(source) = &args.source else { return Ok(()) };
        let id = image::program_id(&input::program(source)?);
        return match info.programs.iter().find(|program| program.id == id) {
            Some(program) => out(format!("source     {source} is its program {}", program.name)),
            None => Err(Stop::No(format!(
                "`{}` has no program that is `{source}`: build it again",
                args.file.display()
            ))),
        };
    }
    let info = image::info(&bytes)?;
    out(&info)?;
    let Some(source) = &args.source else { return Ok(()) };
    let program = input::program(source)?;
    match image::program_id(&program) == info.program {
        true => out(format!("source     {source} is its program")),
        false => Err(Stop::No(format!(
            "`{}` was made of another program than `{source}`: build it again",
            args.file.display()
        ))),
    }
}

fn make(build: &Build, report: &Arc<Mutex<Option<BuildReport>>>) -> Done {
    let arch = build.arch.unwrap_or_default();
    let targets = targets(build, arch);
    if targets.trim() == "help" {
        let help = image::targets_help(arch).map_err(|error| Stop::System(error.to_string()))?;
        return out(help.trim_end());
    }
    let options = brolga::Options::new().opt_level(build.level.level).cpu_targets_of(arch, &targets);
    let options = options.map_err(|error| Stop::Usage(error.to_string()))?;
    let options = options.roots(build.roots.unwrap_or_default()).image_threads(threads()?);
    let shown = report.clone();
    let options = options.image_report(move |made| {
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(made.clone());
    });
    let options = if build.trim { options.image_trim(&build.entries) } else { options };
    let file = match build.files.as_slice() {
        [file] if !build.package => file,
        _ => return package(build),
    };
    let program = input::program(file)?;
    let progress = build.bars.begin("image", 2 * program.module().func_count());
    let options = options.progress(move |step| progress.stand(step.symbol, step.done, step.of));
    let refused = |error| match error {
        brolga::Error::NotNative(reasons) => Stop::not_native(&program, &[reasons]),
        error => error.into(),
    };
    if build.executable {
        let run = build.call.as_deref().map_or(Run::Main, Run::Value);
        let Some(linker) = linker(build)? else {
            let here = std::env::current_exe()?;
            let bytes = image::append_executable(&program, &options, run, &here, &build.output);
            let bytes = bytes.map_err(refused)?;
            err(format!(
                "`{}` is a copy of this command with the image, {:.1} MB; with `{RUNTIME}` and a C compiler it would be smaller",
                build.output,
                bytes as f64 / 1e6
            ));
            return Ok(());
        };
        let made = image::build_executable(&program, &options, run, &linker, &build.output);
        return made.map_err(refused);
    }
    let Some(library) = library(build)? else {
        let bytes = image::build(&program, &options).map_err(refused)?;
        return Ok(image::write(&build.output, &bytes)?);
    };
    let made = image::build_library(&program, &options, &library).map_err(refused)?;
    if let Some(path) = &build.header {
        image::write(path, made.header.as_bytes())?;
    }
    Ok(image::write(&build.output, &made.image)?)
}

/// Builds a package, with the options of `brolga run`.
fn package(build: &Build) -> Done {
    if build.executable || build.header.is_some() || !build.exports.is_empty() || build.export_all {
        let text = "executables and libraries for C are made of one program; several make a package";
        return Err(Stop::Usage(text.to_owned()));
    }
    if build.trim {
        let text = "a package holds all functions of its programs; --trim is for images of one program";
        return Err(Stop::Usage(text.to_owned()));
    }
    if build.arch.is_some() || build.target.is_some() {
        let text =
            "a package is for the machine that makes it; --arch and --target are for images of one program";
        return Err(Stop::Usage(text.to_owned()));
    }
    let name = Path::new(&build.output).file_stem().unwrap_or_default().to_string_lossy();
    let mut made = PackageBuild::new(name.into_owned()).threads(threads()?);
    if let Some(calls) = build.tiered {
        made = made.tiered(calls);
    }
    for path in &build.needs {
        made = made.needs(path);
    }
    for file in &build.against {
        let (name, bytes) = input::bytes(file)?;
        made = made.against(name, bytes);
    }
    if let Some(path) = &build.statements {
        let (name, bytes) = input::bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        made = made.only(statements::read(&text).map_err(|line| {
            Stop::Input(format!("{name}:{line}: this is not a statement such as `precompile f(Int64)`"))
        })?);
    }
    let mut programs = Vec::with_capacity(build.files.len());
    for file in &build.files {
        programs.push(input::bytes(file)?);
    }
    let programs: Vec<(&str, &[u8])> =
        programs.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let options = doors::options(false).opt_level(build.level.level).roots(build.roots.unwrap_or_default());
    let package = made.build(&programs, options).map_err(Stop::session)?;
    for (function, reason) in &package.left_out {
        err(format!("no code for {function}: {reason}"));
    }
    Ok(image::write(&build.output, &package.bytes)?)
}

/// Half of the processors, or as many as the variable `BROLGA_IMAGE_THREADS` says.
#[expect(clippy::disallowed_methods, reason = "the command reads the environment")]
fn threads() -> Result<usize, Stop> {
    const NAME: &str = "BROLGA_IMAGE_THREADS";
    let Some(text) = std::env::var_os(NAME).filter(|text| !text.is_empty()) else {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        return Ok((processors / 2).max(1));
    };
    let text = text.to_string_lossy();
    let number = text.trim().parse().ok().filter(|&number| number > 0);
    number
        .ok_or_else(|| Stop::Usage(format!("the variable `{NAME}` is `{text}`, and not a number of threads")))
}

/// The C compiler, and the run time beside this program or in `lib` beside its folder. `None` if the run time is in neither place, and neither was asked for.
#[expect(clippy::disallowed_methods, reason = "the command reads the environment")]
fn linker(build: &Build) -> Result<Option<Linker>, Stop> {
    let runtime = match &build.runtime {
        Some(path) => path.clone(),
        None => {
            let here = std::env::current_exe()?;
            let beside = here.with_file_name(RUNTIME);
            let installed = here.parent().and_then(Path::parent).map(|root| root.join("lib").join(RUNTIME));
            match installed.filter(|path| !beside.is_file() && path.is_file()) {
                Some(installed) => installed,
                None => beside,
            }
        }
    };
    if build.runtime.is_none() && build.linker.is_none() && !runtime.is_file() {
        return Ok(None);
    }
    let wanted = build.linker.clone().or_else(|| std::env::var_os("CC").filter(|name| !name.is_empty()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = Linker::find(wanted.as_deref(), &path, runtime);
    Ok(Some(found.map_err(brolga::Error::from)?))
}

/// The library for C, if there is one.
fn library(build: &Build) -> Result<Option<Library>, Stop> {
    if build.exports.is_empty() && !build.export_all {
        return match (&build.header, &build.library) {
            (None, None) => Ok(None),
            _ => Err(Stop::Usage(
                "a header is for functions that C calls: name them with `--export`".to_owned(),
            )),
        };
    }
    let name = match &build.library {
        Some(name) => name.clone(),
        None => {
            let stem = Path::new(&build.output).file_stem().unwrap_or_default().to_string_lossy();
            let stem = stem.strip_prefix("lib").unwrap_or(&stem);
            stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
        }
    };
    let mut library = Library::new(name);
    for text in &build.exports {
        // Operators have `=` in their names; the text after the bracket is a C name.
        library = match text.rsplit_once('=').filter(|(function, _)| is_whole(function)) {
            Some((function, name)) => library.export_as(function.trim(), name.trim()),
            None => library.export(text.trim()),
        };
    }
    Ok(Some(if build.export_all { library.export_all() } else { library }))
}

/// Whether a text before `=` names a function: a symbol with all its brackets, or a word.
fn is_whole(function: &str) -> bool {
    let function = function.trim();
    function.ends_with(')') || function.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '!')
}
