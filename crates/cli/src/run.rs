//! `brolga run FILE`: runs a program's `main()`, or a call, whose value is printed.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brolga::cache::Cache;
use brolga::image;
use brolga::image::UntakenArguments;
use brolga::ir::Module;
use brolga::ir::text::Call;
use brolga::limits::Fuel;
use brolga::observe;
use brolga::observe::events::EventListener;
use brolga::observe::{CodeListener, JitDump, Live, Several, Trace};
use brolga::session;
use brolga::session::{Session, Workers};
use brolga::unstable::main_call;
use brolga::{Engine, Evaluator, Failure, Limits, Program, Runtime};

use super::caching::Caching;
use super::executor::Executing;
use super::report::{Stop, err, out};
use super::statements::Statements;
use super::{Done, How, cached, evaluator, input, limited};

/// Runs a program: its `main()`, or a call whose value is printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  brolga run examples/fib.jlir\n  brolga run examples/fib.jlir --call 'fib(35)' -O3\n  \
                        brolga run - --interp < examples/fib.jlir\n  \
                        brolga run examples/fib.jlir --call 'fib(35)' --cache ~/.cache/brolga --cache-stats"
)]
pub(crate) struct Args {
    /// The program, in the text form or as a dump of Julia's typed IR; `-` reads the standard input
    #[arg(required_unless_present = "image")]
    file: Option<String>,
    /// The arguments of the program, for `main(args::Vector{String})`
    #[arg(last = true, value_name = "ARGS", conflicts_with = "call")]
    arguments: Vec<OsString>,
    /// Run the code of an image or package that `brolga image build` has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "interp"])]
    image: Option<String>,
    /// Make this call instead of `main()` and print its value as Julia would
    #[arg(long, value_name = "CALL")]
    call: Option<String>,
    /// Run in a session: functions are compiled in one pass when they are called first, and with all passes, in the background, when they were called
    /// so often
    #[arg(long, value_name = "CALLS", conflicts_with_all = ["image", "interp", "executor"])]
    tiered: Option<u32>,
    /// Write what was compiled and collected, with times and threads, in the trace-event format, which Perfetto opens
    #[arg(long, value_name = "FILE", conflicts_with = "interp")]
    trace: Option<String>,
    /// Write a precompile statement for each function that is compiled, for `brolga image build --statements`; `-` is the standard error
    #[arg(long, value_name = "FILE", conflicts_with = "interp")]
    trace_compile: Option<String>,
    /// Add to the statements how long each took
    #[arg(long, requires = "trace_compile")]
    trace_compile_timing: bool,
    /// Say afterwards which functions were compiled although the package has code for them, and why
    #[arg(long, requires = "image")]
    recompiled: bool,
    /// Open a package first, which the package of `--image` was built on
    #[arg(long, value_name = "PACKAGE", requires = "image")]
    needs: Vec<PathBuf>,
    /// Define a program first, which the package of `--image` was built against
    #[arg(long, value_name = "PROGRAM", requires = "image")]
    against: Vec<String>,
    /// Show a table of stages and events afterwards
    #[arg(long, conflicts_with = "interp")]
    stats: bool,
    /// Write what was compiled to `jit-PID.dump` in this folder, for `perf record -k mono` and `perf inject --jit`
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["interp", "executor"])]
    jitdump: Option<PathBuf>,
    /// Show the session to `brolga top` by a socket of this name, for processes of this user
    #[arg(long, value_name = "SOCKET", requires = "tiered")]
    top: Option<PathBuf>,
    /// End the run when it has used up this much fuel, and say how much it took: units that depend on the program and its input alone
    #[arg(long, value_name = "UNITS", conflicts_with = "image")]
    fuel: Option<u64>,
    /// End the call after this time, which includes compiling what it reaches
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "interp")]
    timeout: Option<Duration>,
    #[command(flatten)]
    executing: Executing,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    caching: Caching,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "a number of seconds, such as 0.5".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

impl Args {
    /// The text of the requested call, or of the one that starts the program, which `main` finds.
    fn call(
        &self,
        main: impl FnOnce(&[Vec<u8>]) -> Result<Option<String>, UntakenArguments>,
    ) -> Result<String, Stop> {
        if let Some(call) = &self.call {
            return Ok(call.clone());
        }
        let args: Vec<Vec<u8>> = self.arguments.iter().map(|arg| arg.as_encoded_bytes().to_vec()).collect();
        let call = main(&args).map_err(|error| Stop::Usage(error.to_string()))?;
        let none = "the program has no function `main()`; name a call with `--call`";
        call.ok_or_else(|| Stop::Input(none.to_owned()))
    }
}

/// The reports of a run.
#[derive(Default)]
struct Listeners {
    trace: Option<Arc<Trace>>,
    statements: Option<Arc<Statements>>,
    dump: Option<Arc<JitDump>>,
}

impl Listeners {
    fn new(args: &Args) -> Result<Listeners, Stop> {
        let trace = (args.stats || args.trace.is_some()).then(|| Arc::new(Trace::new()));
        let statements = args.trace_compile.as_ref().map(|_| Statements::new(args.trace_compile_timing));
        let dump = match &args.jitdump {
            Some(folder) => {
                let source = args.file.as_deref().or(args.image.as_deref()).unwrap_or(input::STDIN);
                let dump = JitDump::create_in(folder, source);
                Some(Arc::new(dump.map_err(|error| cannot_write(&folder.display(), &error))?))
            }
            None => None,
        };
        Ok(Listeners { trace, statements: statements.map(Arc::new), dump })
    }

    /// The listener to the code that is loaded, if there is one.
    fn of_code(&self) -> Option<Arc<dyn CodeListener>> {
        self.dump.clone().map(|dump| dump as Arc<dyn CodeListener>)
    }

    /// Tells them, and another one, what happens in a run time.
    fn listen(&self, runtime: &Runtime, another: Option<Arc<dyn EventListener>>) {
        let mut all: Vec<Arc<dyn EventListener>> = another.into_iter().collect();
        all.extend(self.trace.clone().map(|trace| trace as Arc<dyn EventListener>));
        all.extend(self.statements.clone().map(|statements| statements as Arc<dyn EventListener>));
        // The run time is new: there is no listener yet.
        let _is_first = match all.len() {
            0 => true,
            1 => runtime.events().listen(all.remove(0)),
            _ => runtime.events().listen(Arc::new(Several::new(all))),
        };
    }

    /// Shows and writes the requested reports.
    fn report(&self, args: &Args) -> Done {
        if let Some(trace) = &self.trace {
            if args.stats {
                err(trace.table());
            }
            if let Some(path) = &args.trace {
                write(path, trace.chrome_json())?;
            }
        }
        if let (Some(statements), Some(path)) = (&self.statements, &args.trace_compile) {
            match path.as_str() {
                input::STDIN => statements.text().lines().for_each(err),
                path => write(path, statements.text())?,
            }
        }
        match self.dump.as_ref().and_then(|dump| Some((dump.path(), dump.error()?))) {
            Some((path, error)) => Err(cannot_write(&path.display(), &error)),
            None => Ok(()),
        }
    }
}

fn write(path: &str, text: String) -> Done {
    let written = brolga_files::write(path.as_ref(), text.as_ref());
    written.map_err(|error| cannot_write(&path, &error))
}

fn cannot_write(path: &dyn Display, error: &dyn Display) -> Stop {
    Stop::System(format!("cannot write `{path}`: {error}"))
}

pub(crate) fn run(args: &Args) -> Done {
    let listeners = Listeners::new(args)?;
    let cache = args.caching.open()?;
    let image = args.image.as_deref().map(|path| image::ImageFile::open(Path::new(path)));
    let image = image.transpose().map_err(brolga::Error::from)?;
    let package = image.as_ref().map(|file| file.start(16).map(|start| session::is_package(&start)));
    let is_package = package.transpose().map_err(brolga::Error::from)?.unwrap_or(false);
    let done = match (args.tiered, image) {
        (Some(calls), _) => {
            let (name, bytes) = input::bytes(args.file.as_deref().unwrap_or(input::STDIN))?;
            run_session(args, Source::Text { name, bytes, calls }, &listeners, cache.as_ref())
        }
        (None, Some(file)) if is_package => {
            let bytes = file.bytes().map_err(brolga::Error::from)?;
            run_session(args, Source::Package(bytes.into()), &listeners, cache.as_ref())
        }
        (None, Some(_)) if !args.needs.is_empty() || !args.against.is_empty() => {
            Err(Stop::Usage("--needs and --against are for packages, and this is an image".to_owned()))
        }
        (None, _) if args.executing.is_remote() => run_remote(args, &listeners, cache.as_ref()),
        (None, image) => run_engine(args, image, &listeners, cache.as_ref()),
    };
    args.caching.report(cache.as_ref());
    listeners.report(args)?;
    done
}

fn run_engine(
    args: &Args,
    image: Option<image::ImageFile>,
    listeners: &Listeners,
    cache: Option<&Arc<Cache>>,
) -> Done {
    let engine = match args.how.interp {
        true => None,
        false => Some(Engine::new(cached(args.how.options().fuel(args.fuel.is_some()), cache))?),
    };
    if let Some(engine) = &engine {
        listeners.listen(engine.runtime(), None);
        if let Some(listener) = listeners.of_code() {
            engine.listen(listener);
        }
    }
    if let (Some(file), Some(engine)) = (image, &engine) {
        let image = engine.open_file(&file)?;
        let run = image.run(engine, &args.call(|given| image.main_call(given))?)?;
        return make_call(args, Some(engine), run.program(), run.call(), run.evaluator());
    }
    let (name, bytes) = input::bytes(args.file.as_deref().unwrap_or(input::STDIN))?;
    let fuel = args.fuel.map(Fuel::new);
    // The program is not read yet: a run of `main` that was kept is of the method that takes what is given.
    let likely = args.call(|given| main_call(["main()", "main(Vector{String})"], given))?;
    let done = match engine.as_ref().and_then(|engine| engine.kept_run(name, &bytes, &likely)) {
        Some(run) => make_call(
            args,
            engine.as_ref(),
            run.program(),
            run.call(),
            fuelled(limited(run.evaluator(), &args.how), fuel.as_ref()),
        ),
        None => {
            let program = Program::read(name, &bytes)?;
            let program = if fuel.is_some() && engine.is_none() { program.priced() } else { program };
            let call = args.call(|given| program.main_call(given))?;
            let evaluator = evaluator(&program, engine.as_ref(), &args.how)?.keeping_run(&call);
            let evaluator = fuelled(evaluator, fuel.as_ref());
            make_call(args, engine.as_ref(), &program, &program.call(&call)?, evaluator)
        }
    };
    if let (Some(units), Some(fuel)) = (args.fuel, &fuel) {
        say_fuel(units, fuel);
    }
    done
}

/// Runs a program in a process of its own.
fn run_remote(args: &Args, listeners: &Listeners, cache: Option<&Arc<Cache>>) -> Done {
    let options = || cached(args.how.options().fuel(args.fuel.is_some()), cache);
    let Some(engine) = args.executing.engine(options)? else { return Ok(()) };
    listeners.listen(engine.engine().runtime(), None);
    let (name, bytes) = input::bytes(args.file.as_deref().unwrap_or(input::STDIN))?;
    let program = Program::read(name, &bytes)?;
    let limits = args.timeout.map_or_else(Limits::new, |after| Limits::new().timeout(after));
    let fuel = args.fuel.map(Fuel::new);
    let call = program.call(&args.call(|given| program.main_call(given))?)?;
    let evaluator = limited(Evaluator::remote(&program, &engine, limits), &args.how);
    let done = make_call(args, None, &program, &call, fuelled(evaluator, fuel.as_ref()));
    if let (Some(units), Some(fuel)) = (args.fuel, &fuel) {
        say_fuel(units, fuel);
    }
    done
}

/// The same evaluator, with fuel if there is some.
fn fuelled<'p>(evaluator: Evaluator<'p>, fuel: Option<&Fuel>) -> Evaluator<'p> {
    match fuel {
        Some(fuel) => evaluator.with_fuel(fuel),
        None => evaluator,
    }
}

/// Says how much fuel was taken.
fn say_fuel(units: u64, fuel: &Fuel) {
    err(format!("fuel: {} of {units} units", units - fuel.left()));
}

/// The input of a session.
enum Source<'a> {
    /// A program, whose functions are promoted to the second tier after `calls` calls.
    Text { name: &'a str, bytes: Vec<u8>, calls: u32 },
    /// The bytes of a package.
    Package(Vec<u8>),
}

/// Opens the packages and defines the programs that a package depends on.
fn surround(session: &Session, main: &session::Dylib, args: &Args) -> Done {
    for path in &args.needs {
        let dylib = session.create_dylib(&path.display().to_string()).map_err(Stop::session)?;
        dylib.open_package(path).map_err(Stop::session)?;
        main.link_against(&dylib).map_err(Stop::session)?;
    }
    if args.against.is_empty() {
        return Ok(());
    }
    // Not a valid name of a file or package.
    let dylib = session.create_dylib("<against>").map_err(Stop::session)?;
    for file in &args.against {
        let (name, bytes) = input::bytes(file)?;
        let program = dylib.read_late(name, &bytes).map_err(Stop::session)?;
        dylib.define(program.lazy().inlinable()).map_err(Stop::session)?;
    }
    main.link_against(&dylib).map_err(Stop::session)
}

/// Runs the image that was appended to this program, with the program's arguments.
pub(crate) fn run_appended(appended: &image::Appended) -> Done {
    let refused = |error: brolga::Error| Stop::System(error.to_string());
    let engine = Engine::new(super::doors::options(false)).map_err(refused)?;
    let image = engine.open_file(&appended.image).map_err(refused)?;
    let call = match &appended.call {
        Some(call) => call.clone(),
        None => {
            let args = std::env::args_os().skip(1).map(|arg| arg.as_encoded_bytes().to_vec());
            let call = image.main_call(&args.collect::<Vec<_>>());
            let call = call.map_err(|error| Stop::Usage(error.to_string()))?;
            call.ok_or_else(|| Stop::No("the program has no function `main()`".to_owned()))?
        }
    };
    let run = image.run(&engine, &call)?;
    let mut evaluator = run.evaluator();
    let value = evaluator.call(run.call());
    let unwritten = evaluator.take_output_error();
    let value = value.map_err(|failure| Stop::failure(run.program(), failure))?;
    if let Some(error) = unwritten {
        return Err(Stop::unwritten(&error));
    }
    if appended.call.is_some() { out(value) } else { Ok(()) }
}

/// Runs a program or package in a session.
fn run_session(args: &Args, source: Source<'_>, listeners: &Listeners, cache: Option<&Arc<Cache>>) -> Done {
    let session =
        Session::new(cached(args.how.options().fuel(args.fuel.is_some()), cache), Workers::Pool(1))?;
    if let Some(listener) = listeners.of_code() {
        session.listen(listener);
    }
    let served = match &args.top {
        Some(path) => {
            let live = Arc::new(Live::new());
            listeners.listen(session.runtime(), Some(live.clone()));
            let served = observe::serve_with(&session, Some(live), path);
            let cannot = |error| Stop::System(format!("cannot open `{}`: {error}", path.display()));
            Some(served.map_err(cannot)?)
        }
        None => {
            listeners.listen(session.runtime(), None);
            None
        }
    };
    let dylib = session.create_dylib("main").map_err(Stop::session)?;
    dylib.add_process_symbols(|_| true).map_err(Stop::session)?;
    surround(&session, &dylib, args)?;
    match source {
        Source::Text { name, bytes, calls } => {
            // As without tiers: what is missing is an error of the call that reaches it.
            let program = dylib.read_late(name, &bytes).map_err(Stop::session)?;
            dylib.define(program.tiered(calls)).map_err(Stop::session)?;
        }
        Source::Package(bytes) => drop(dylib.open_package_bytes(bytes).map_err(Stop::session)?),
    }
    let methods = dylib.methods().map_err(Stop::session)?;
    let call = args.call(|given| main_call(methods.iter().map(|method| method.symbol.as_str()), given))?;
    let module = Module::new(session.context().view());
    let mut evaluator = session::Evaluator::new(&dylib, &module);
    let fuel = args.fuel.map(Fuel::new);
    let limits = fuel.as_ref().map_or_else(Limits::new, |fuel| Limits::new().fuelled_by(fuel));
    let limits = match args.timeout {
        Some(after) => limits.timeout(after),
        None => limits,
    };
    let value = session.runtime().limited(&limits, || evaluator.evaluate("call", &call));
    let value = value.unwrap_or_else(|ended| Err(Failure::Stopped(ended.to_string())));
    if let (Some(units), Some(fuel)) = (args.fuel, &fuel) {
        say_fuel(units, fuel);
    }
    let shown = value.and_then(|value| evaluator.show(&value));
    session.runtime().sink().flush();
    let unwritten = session.runtime().sink().take_error();
    drop(evaluator);
    drop(served);
    if args.recompiled {
        session.recompiled().iter().for_each(|recompiled| err(recompiled.to_string()));
    }
    let thrown = session.end();
    let value = shown.map_err(|failure| match failure {
        Failure::NotCompiled(error) => error.into(),
        Failure::Refused(text) => Stop::System(text),
        Failure::Ended(end) => Stop::Ended(end),
        other => Stop::No(other.report()),
    })?;
    if let Some(error) = unwritten {
        return Err(Stop::unwritten(&error));
    }
    if let Some(error) = thrown.into_iter().next() {
        return Err(Stop::No(error.to_string()));
    }
    if args.call.is_some() { out(value) } else { Ok(()) }
}

fn make_call(
    args: &Args,
    engine: Option<&Engine>,
    program: &Program,
    call: &Call,
    mut evaluator: Evaluator<'_>,
) -> Done {
    let value = match (args.timeout, engine) {
        (Some(after), Some(engine)) => {
            let value = engine.runtime().limited(&Limits::new().timeout(after), || evaluator.call(call));
            value.unwrap_or_else(|ended| Err(Failure::Stopped(ended.to_string())))
        }
        _ => evaluator.call(call),
    };
    let unwritten = evaluator.take_output_error();
    let value = value.map_err(|failure| Stop::failure(program, failure))?;
    if let Some(error) = unwritten {
        return Err(Stop::unwritten(&error));
    }
    if args.call.is_some() { out(value) } else { Ok(()) }
}
