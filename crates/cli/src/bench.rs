//! `brolga bench FILE --call CALL`: how long a call takes, with confidence; levels, passes, tiers, files and builds compared.
//!
//! ```text
//! variants ── warm-up ──► calls for each sample ──► rounds: one sample of each variant ──► medians, intervals, ratios to the first
//! ```
//!
//! Each round measures all variants, so a machine that becomes slower meanwhile affects all. A sample is a number of calls with arguments that are
//! made once, outside of the time; it takes at least a millisecond if the call may be repeated so often, so that clocks and entries do not count.

mod builds;
mod plot;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brolga::ir::Module;
use brolga::ir::text::Call;
use brolga::observe::statistics::Estimate;
use brolga::observe::{json, statistics};
use brolga::session;
use brolga::session::{Dylib, Session, Workers};
use brolga::{Engine, Evaluator, OptLevel, Options, Program, Runtime};
use rustix::time::{ClockId, clock_gettime};

use super::progress::Bars;
use super::report::{Stop, out};
use super::{Cpu, Done, Level, doors, input, level};

/// A sample takes this long at least, unless it is one call.
const SAMPLE: Duration = Duration::from_millis(1);

/// The most calls in a sample.
const MOST_CALLS: u32 = 1 << 20;

/// Measures a call: its median with a confidence interval, what it allocates, and comparisons with other levels, passes and files.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The first variant is FILE at the level of `-O`; all others are compared with it. Intervals are of 95 % confidence, by the \
                        bootstrap. The programs may go through doors: pointers, C functions, low IR.\n\nExamples:\n  brolga bench examples/fib.jlir --call 'fib(25)'\n  \
                        brolga bench examples/fib.jlir --call 'fib(25)' --levels 0,1,3 --interp --without inline\n  brolga bench examples/fib.jlir --call 'fib(25)' --build ../old/target/release/brolga"
)]
pub(crate) struct Args {
    /// The program; `-` reads the standard input
    file: String,
    /// The call
    #[arg(long, value_name = "CALL")]
    call: String,
    /// Compare with these levels
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', value_parser = level)]
    levels: Vec<OptLevel>,
    /// Compare with these passes off, one at a time
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    without: Vec<String>,
    /// Compare with the tiers of a session: 1 is compiled in one pass and counts, 2 has all passes, with the counts of the first call as its profile
    #[arg(long)]
    tiers: bool,
    /// Compare with the reference interpreter
    #[arg(long)]
    interp: bool,
    /// Compare with the same call of another program
    #[arg(long, value_name = "FILE")]
    against: Vec<String>,
    /// Compare with another build of this command, in processes of their own
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["levels", "without", "tiers", "interp", "against"])]
    build: Vec<PathBuf>,
    /// How many samples of each variant
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    samples: u32,
    /// For how long each variant is called before it is measured, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = seconds)]
    warm_up: Duration,
    /// Write all samples and results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
    /// Write a plot of the samples as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
    /// The clock: the thread's own processor time, or the wall's
    #[arg(long, value_name = "CLOCK", value_enum, default_value = "cpu")]
    clock: Clock,
    #[command(flatten)]
    level: Level,
    #[command(flatten)]
    cpu: Cpu,
    #[command(flatten)]
    bars: Bars,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| time.as_secs() <= 3600).ok_or_else(|| "a number of seconds up to 3600".to_owned())
}

/// The clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Clock {
    /// The processor time of the thread: what others do on the machine does not count, nor does waiting
    Cpu,
    /// The time that passes
    Wall,
}

impl Clock {
    fn name(self) -> &'static str {
        match self {
            Clock::Cpu => "cpu",
            Clock::Wall => "wall",
        }
    }

    fn now(self, start: Instant) -> Duration {
        match self {
            Clock::Cpu => {
                let time = clock_gettime(ClockId::ThreadCPUTime);
                // Both are positive.
                Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
            }
            Clock::Wall => start.elapsed(),
        }
    }
}

/// A way to compile and run the call, measured beside others.
struct Variant<'p> {
    name: String,
    runtime: Option<Arc<Runtime>>,
    by: By<'p>,
    program: &'p Program,
    clock: Clock,
    call: Call,
    text: String,
    calls: u32,
    /// Seconds for one call.
    samples: Vec<f64>,
    heap: Option<Heap>,
}

/// The caller of the functions.
enum By<'p> {
    Program(Evaluator<'p>),
    Session(Box<session::Evaluator<'p>>, &'p Dylib),
}

/// The effect of a call on the heap.
struct Heap {
    /// Bytes that a call allocates.
    bytes: f64,
    /// Collections for each call.
    collections: f64,
    /// The part of the time that pauses take.
    pauses: f64,
}

/// The outcome for a variant.
struct Row {
    name: String,
    samples: Vec<f64>,
    time: Estimate,
    /// To the first one.
    ratio: Option<Estimate>,
    calls: u32,
    heap: Option<Heap>,
}

pub(crate) fn run(args: &Args) -> Done {
    let rows = if args.build.is_empty() { variants_of(args)? } else { builds::rows(args)? };
    if let Some(path) = &args.json {
        write(path, &json_of(&args.call, &rows))?;
    }
    if let Some(path) = &args.svg {
        write(path, &plot::svg(&args.call, &rows))?;
    }
    out(table(&rows))
}

/// Measures the variants of one process.
fn variants_of(args: &Args) -> Result<Vec<Row>, Stop> {
    let program = input::program(&args.file)?;
    let others = args.against.iter().map(|file| input::program(file)).collect::<Result<Vec<Program>, _>>()?;
    let tiers = if args.tiers { tiers(args, &program)? } else { Vec::new() };
    let mut variants = variants(args, &program, &others, &tiers)?;
    for variant in &mut variants {
        variant.warm_up(args.warm_up)?;
    }
    let progress = args.bars.begin("bench", args.samples as usize * variants.len());
    for _ in 0..args.samples {
        for variant in &mut variants {
            progress.at(&variant.name);
            let took = variant.measure(variant.calls)?;
            variant.samples.push(took.as_secs_f64() / f64::from(variant.calls));
            progress.step();
        }
    }
    drop(progress);
    Ok(rows(variants))
}

fn write(path: &str, text: &str) -> Done {
    brolga_files::write(path.as_ref(), text.as_ref())
        .map_err(|error| Stop::System(format!("cannot write `{path}`: {error}")))
}

/// A session with the program in one tier, and the names and types of its values.
struct Tier {
    name: &'static str,
    dylib: Dylib,
    module: Module,
}

/// The options of all engines and sessions.
fn options(args: &Args) -> Options {
    doors::options(false).cpu_target(args.cpu.target)
}

fn tiers(args: &Args, program: &Program) -> Result<Vec<Tier>, Stop> {
    let source = program.source();
    let tier = |name, is_first: bool| -> Result<Tier, Stop> {
        let session = Session::new(options(args).opt_level(args.level.level), Workers::Caller)?;
        let dylib = session.create_dylib("main").map_err(Stop::session)?;
        dylib.add_process_symbols(|_| true).map_err(Stop::session)?;
        let read = dylib.read_late(source.name(), source.text().as_bytes()).map_err(Stop::session)?;
        // The second tier begins after the first call, which has made its profile; no count of calls or iterations ends the first.
        let read = read.tiered(if is_first { u32::MAX } else { 1 }).iterations(u32::MAX);
        dylib.define(read).map_err(Stop::session)?;
        let module = Module::new(session.context().view());
        Ok(Tier { name, dylib, module })
    };
    Ok(vec![tier("tier 1", true)?, tier("tier 2", false)?])
}

fn variants<'p>(
    args: &Args,
    program: &'p Program,
    others: &'p [Program],
    tiers: &'p [Tier],
) -> Result<Vec<Variant<'p>>, Stop> {
    let level = args.level.level;
    let options = || options(args);
    let native = |name: String, program: &'p Program, options: Options| -> Result<Variant<'p>, Stop> {
        let engine = Engine::new(options)?;
        let by = By::Program(Evaluator::native(program, &engine));
        Variant::new(name, Some(engine.runtime().clone()), by, program, args)
    };
    let number = |level: OptLevel| format!("-{level}");
    let mut variants = vec![native(number(level), program, options().opt_level(level))?];
    for &level in &args.levels {
        variants.push(native(number(level), program, options().opt_level(level))?);
    }
    for pass in &args.without {
        let options = options().opt_level(level).without_passes(&[pass])?;
        variants.push(native(format!("without {pass}"), program, options)?);
    }
    for other in others {
        let name = other.source().name().to_owned();
        variants.push(native(name, other, options().opt_level(level))?);
    }
    for Tier { name, dylib, module } in tiers {
        let runtime = Some(dylib.session().runtime().clone());
        let by = By::Session(Box::new(session::Evaluator::new(dylib, module)), dylib);
        variants.push(Variant::new((*name).to_owned(), runtime, by, program, args)?);
    }
    if args.interp {
        let by = By::Program(Evaluator::interpreted(program).with_cpu_target(args.cpu.target));
        variants.push(Variant::new("interpreter".to_owned(), None, by, program, args)?);
    }
    Ok(variants)
}

impl<'p> Variant<'p> {
    fn new(
        name: String,
        runtime: Option<Arc<Runtime>>,
        by: By<'p>,
        program: &'p Program,
        args: &Args,
    ) -> Result<Variant<'p>, Stop> {
        let (text, call) = (args.call.clone(), program.call(&args.call)?);
        Ok(Variant {
            name,
            runtime,
            by,
            program,
            clock: args.clock,
            call,
            text,
            calls: 1,
            samples: Vec::new(),
            heap: None,
        })
    }

    fn measure(&mut self, calls: u32) -> Result<Duration, Stop> {
        let (clock, start) = (self.clock, Instant::now());
        let now = || clock.now(start);
        let took = match &mut self.by {
            By::Program(evaluator) => evaluator.measure(&self.call, calls, &now),
            By::Session(evaluator, _) => evaluator.measure("call", &self.text, calls, &now),
        };
        took.map_err(|failure| Stop::failure(self.program, failure))
    }

    /// Calls for so long, finds out how many calls a sample needs, and what they do to the heap.
    fn warm_up(&mut self, time: Duration) -> Done {
        let start = Instant::now();
        let mut took = self.measure(1)?;
        while let By::Session(_, dylib) = &self.by
            && dylib.session().optimize_hot() > 0
        {
            took = self.measure(1)?;
        }
        loop {
            if took < SAMPLE && self.calls < MOST_CALLS {
                self.calls *= 2;
            } else if start.elapsed() >= time {
                break;
            }
            took = self.measure(self.calls)?;
        }
        self.heap = self.heap_of()?;
        Ok(())
    }

    fn heap_of(&mut self) -> Result<Option<Heap>, Stop> {
        let Some(runtime) = self.runtime.clone() else { return Ok(None) };
        let collect = || {
            // Bytes are counted up to the last collection.
            let _collected = runtime.enter(|scope| scope.collect());
            runtime.heap().stats()
        };
        if runtime.heap().stats().mapped_bytes == 0 {
            return Ok(None);
        }
        let before = collect();
        let took = self.measure(self.calls)?;
        // Its own collections are not the program's.
        let own = runtime.heap().stats();
        let after = collect();
        let calls = f64::from(self.calls);
        let collections =
            own.minor_collections + own.full_collections - before.minor_collections - before.full_collections;
        let pauses = (own.pause_total - before.pause_total).as_secs_f64() / took.as_secs_f64();
        Ok(Some(Heap {
            bytes: (after.allocated_bytes - before.allocated_bytes) as f64 / calls,
            collections: collections as f64 / calls,
            pauses,
        }))
    }
}

fn rows(variants: Vec<Variant<'_>>) -> Vec<Row> {
    let first = variants.first().map(|first| first.samples.clone()).unwrap_or_default();
    let row = |(at, variant): (usize, Variant<'_>)| {
        let Variant { name, samples, calls, heap, .. } = variant;
        let time = statistics::estimate(&samples)?;
        let ratio = if at > 0 { statistics::ratio(&first, &samples) } else { None };
        Some(Row { name, samples, time, ratio, calls, heap })
    };
    variants.into_iter().enumerate().filter_map(row).collect()
}

fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(8);
    let mut text = format!(
        "{:width$}  {:>11}  {:>25}  {:>9}  {:>11}",
        "variant", "median", "95 % of confidence", "bytes", "collections"
    );
    if rows.len() > 1 {
        text.push_str("  ratio to the first");
    }
    for row in rows {
        let Estimate { value, low, high } = row.time;
        let interval = format!("{} … {}", time(low), time(high));
        let (bytes, collections) = match &row.heap {
            Some(heap) => (format!("{:.0}", heap.bytes), format!("{:.4}", heap.collections)),
            None => ("–".to_owned(), "–".to_owned()),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{:width$}  {:>11}  {interval:>25}  {bytes:>9}  {collections:>11}",
            row.name,
            time(value)
        );
        if let Some(ratio) = row.ratio {
            let Estimate { value, low, high } = ratio;
            let verdict = statistics::verdict(ratio).name();
            let _ = write!(text, "  {value:.3} ({low:.3} … {high:.3}), {verdict}");
        }
    }
    text
}

/// Seconds as people read them.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.2} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

fn json_of(call: &str, rows: &[Row]) -> String {
    let estimate = |Estimate { value, low, high }: Estimate| {
        let [value, low, high] = [value, low, high].map(json::number);
        format!("{{\"value\":{value},\"low\":{low},\"high\":{high}}}")
    };
    let row = |row: &Row| {
        let samples: Vec<String> = row.samples.iter().map(|&sample| json::number(sample)).collect();
        let ratio = row.ratio.map_or("null".to_owned(), |ratio| {
            let verdict = json::string(statistics::verdict(ratio).name());
            format!("{{\"ratio\":{},\"verdict\":{verdict}}}", estimate(ratio))
        });
        let heap = row.heap.as_ref().map_or("null".to_owned(), |heap| {
            let [bytes, collections, pauses] = [heap.bytes, heap.collections, heap.pauses].map(json::number);
            format!("{{\"bytes\":{bytes},\"collections\":{collections},\"pauses\":{pauses}}}")
        });
        format!(
            "{{\"name\":{},\"seconds\":{},\"calls_per_sample\":{},\"heap\":{heap},\"against_first\":{ratio},\"samples\":[{}]}}",
            json::string(&row.name),
            estimate(row.time),
            row.calls,
            samples.join(",")
        )
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("{{\"call\":{},\"variants\":[\n{}\n]}}\n", json::string(call), rows.join(",\n"))
}
