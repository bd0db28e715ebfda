//! `brolga fuzz [FILES…]`: programs from seeds, tried until one shows a fault, by processes of their own.
//!
//! ```text
//!            ┌─ seed ──► brolga fuzz --worker FILES…   one for each job
//! brolga ────┤           tries the input; reports the result ──► next seed
//!            └─ no report: it has crashed, does not end, or has found a fault ──► the input is kept
//! ```
//!
//! [`Campaign`] generates the inputs: the same seed yields the same input in every process.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use brolga_fuzz::attack::Without;
use brolga_fuzz::campaign::{Campaign, Inputs, Tried};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::progress::{Bars, Progress};
use super::report::{Stop, err, out};
use super::{Done, input};

/// How many inputs are tried if neither a number nor a time is given.
const COUNT: u64 = 1000;

/// Tries generated programs in all engines, or damaged copies of the given ones, until something is wrong.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without files, programs are generated, printed and read again, and called in the interpreter and in native code at all levels. With files, \
                  copies of them are damaged: they are refused with places, or compiled, and those without doors are run by their tests.\n\n\
                  An input that shows a fault is written to a file; the exit status is 1. The same seed gives the same input.\n\n\
                  Examples:\n  \
                  brolga fuzz --seconds 60\n  \
                  brolga fuzz --checked --count 100000\n  \
                  brolga fuzz --forged modules --count 100000\n  \
                  brolga fuzz --seed 20000 --count 5000 examples/*.jlir\n  \
                  brolga fuzz --seed 20017 --count 1 examples/*.jlir"
)]
pub(crate) struct Args {
    /// Programs to damage; programs are generated if there are none
    #[arg(conflicts_with = "checked")]
    files: Vec<String>,
    /// Generate programs without doors, damage every other one, and run them by engines that refuse doors
    #[arg(long)]
    checked: bool,
    /// Forge files below their checksums, and use what is read of them
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["files", "checked", "attack"])]
    forged: Option<Forged>,
    /// Generate programs as an attacker would write them, 96 for each seed, compare them with the interpreter, and check the heap after each
    #[arg(long, conflicts_with_all = ["checked", "files"])]
    attack: bool,
    /// What attacks leave out: targets (`memoryrefnew`), forms (`barrier`), both (`memoryrefnew:barrier`), element types and traits, separated by blanks
    #[arg(long, value_name = "NAMES", value_delimiter = ' ', requires = "attack")]
    without: Vec<String>,
    /// After how many faults to stop
    #[arg(long, value_name = "N", default_value_t = 1)]
    faults: usize,
    /// How many MiB of memory a process may take
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// How many inputs to try: 1000, or as many as `--seconds` allows
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after this number of seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// How many processes try inputs: as many as there are processors unless it is given
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// How many seconds an input may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// The folder for inputs that show a fault
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    keep: PathBuf,
    /// Try the seeds that the standard input names
    #[arg(long, hide = true)]
    worker: bool,
    #[command(flatten)]
    bars: Bars,
}

/// The files that are forged.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Forged {
    /// Modules in binary form
    Modules,
    /// Packages
    Packages,
}

pub(crate) fn run(args: &Args) -> Done {
    let inputs = match args.forged {
        Some(Forged::Modules) => Inputs::ForgedModules,
        Some(Forged::Packages) => Inputs::ForgedPackages,
        None if args.attack => Inputs::Attack(without(&args.without)?),
        None if args.checked => Inputs::Checked,
        None if args.files.is_empty() => Inputs::Generated,
        None => Inputs::Damaged(originals(&args.files)?),
    };
    let campaign = Campaign::new(inputs);
    match args.worker {
        true => {
            args.memory.map(bound_memory).transpose()?;
            work(campaign)
        }
        false => lead(args, &campaign),
    }
}

fn without(names: &[String]) -> Result<Without, Stop> {
    let without = Without::new(names.iter().filter(|name| !name.is_empty()).cloned());
    match without.unknown()[..] {
        [] => Ok(without),
        [first, ..] => Err(Stop::Usage(format!("`{first}` is nothing that attacks can leave out"))),
    }
}

/// Bounds the private memory that this process may write.
fn bound_memory(mebibytes: u64) -> Done {
    let most = Some(mebibytes.saturating_mul(1 << 20));
    let limit = Rlimit { current: most, maximum: most };
    setrlimit(Resource::Data, limit)
        .map_err(|error| Stop::System(format!("memory cannot be bounded: {error}")))
}

fn originals(files: &[String]) -> Result<Vec<String>, Stop> {
    let read = files.iter().map(|file| match file.as_str() {
        // Each process reads the files for itself.
        input::STDIN => Err(Stop::Usage("the standard input cannot be damaged; name a file".to_owned())),
        file => Ok(String::from_utf8_lossy(&input::bytes(file)?.1).into_owned()),
    });
    read.collect()
}

/// Tries seeds, one a line, or a part of a seed's input, and answers with the outcome and the number of calls.
fn work(mut campaign: Campaign) -> Done {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split(' ').map(str::parse);
        let (Some(Ok(seed)), part) = (words.next(), words.next().and_then(Result::ok)) else {
            return Err(Stop::Usage(format!("`{line}` is not a seed")));
        };
        match campaign.run_part(seed, part.map(|part: u64| part as usize))? {
            Ok(Tried { outcome, calls }) => {
                writeln!(io::stdout(), "{calls} {outcome}")?;
                io::stdout().flush()?;
            }
            Err(failure) => return Err(Stop::No(failure.trouble.to_string())),
        }
    }
    Ok(())
}

/// The state that all jobs share.
struct Shared<'a> {
    args: &'a Args,
    campaign: &'a Campaign,
    progress: Progress,
    end: u64,
    /// How many programs an input has.
    parts: usize,
    deadline: Option<Instant>,
    found: Mutex<Found>,
}

impl Fault {
    /// Writes the input to its file.
    fn keep(&self, args: &Args, campaign: &Campaign) -> Result<PathBuf, Stop> {
        let Fault { seed, part, .. } = *self;
        let part_text = part.map_or(String::new(), |part| format!("-{part}"));
        let path = args.keep.join(format!("fuzz-{seed}{part_text}.{}", campaign.extension()));
        match brolga_files::write(path.as_ref(), &campaign.input_part(seed, part)) {
            Ok(()) => Ok(path),
            Err(error) => Err(Stop::System(format!("cannot write `{}`: {error}", path.display()))),
        }
    }
}

/// The results so far.
#[derive(Default)]
struct Found {
    /// The next seed.
    next: u64,
    outcomes: BTreeMap<String, u64>,
    calls: u64,
    faults: Vec<Fault>,
    broken: Option<io::Error>,
}

/// An input that shows a fault.
struct Fault {
    seed: u64,
    /// The program of the input that shows it alone.
    part: Option<usize>,
    trouble: String,
}

fn lead(args: &Args, campaign: &Campaign) -> Done {
    let jobs = args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, |count| count.get()));
    let time = args.seconds.map(Duration::from_secs);
    let count = args.count.unwrap_or(if time.is_some() { u64::MAX } else { COUNT });
    let progress = match (args.count, time) {
        (None, Some(time)) => args.bars.begin_timed("fuzz", time),
        _ => args.bars.begin("fuzz", usize::try_from(count).unwrap_or(usize::MAX)),
    };
    let shared = Shared {
        args,
        campaign,
        progress,
        end: args.seed.saturating_add(count),
        parts: campaign.parts(),
        // A time that no clock reaches is not a limit.
        deadline: time.and_then(|time| Instant::now().checked_add(time)),
        found: Mutex::new(Found { next: args.seed, ..Found::default() }),
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, 256) {
            scope.spawn(|| shared.job());
        }
    });
    let Shared { progress, found, .. } = shared;
    drop(progress);
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = found.broken {
        return Err(error.into());
    }
    let tried: u64 = found.outcomes.values().sum();
    let each: Vec<String> =
        found.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    let each = if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) };
    out(format_args!("{tried} inputs tried{each}, {} calls", found.calls))?;
    let mut faults = found.faults;
    if faults.is_empty() {
        return Ok(());
    }
    // If there are several faults, the ones of the first seeds are reported.
    faults.sort_by_key(|fault| fault.seed);
    faults.truncate(args.faults.max(1));
    for fault in &faults {
        let path = fault.keep(args, campaign)?;
        let Fault { seed, trouble, .. } = fault;
        err(format_args!("seed {seed}, input in `{}`:\n{}", path.display(), trouble.trim_end()));
    }
    Err(Stop::No("an input shows a fault".to_owned()))
}

impl Shared<'_> {
    /// Runs the seeds on a worker, one after another, until there are no more.
    fn job(&self) {
        let mut worker = None;
        while let Some(seed) = self.take() {
            self.progress.at(&format!("seed {seed}"));
            let tried = match self.tried(&mut worker, seed, None) {
                Ok(tried) => tried,
                Err(error) => return self.change(|found| found.broken = Some(error)),
            };
            let (calls, outcome) = match tried {
                Ok(answer) => answer,
                Err(trouble) => {
                    let fault = self.narrowed(Fault { seed, part: None, trouble });
                    if self.args.faults > 1 {
                        // A long run may be broken off. What cannot be written now is said at the end.
                        let _ = fault.keep(self.args, self.campaign);
                        self.progress
                            .aside(|| err(format_args!("seed {seed}: {}", fault.trouble.trim_end())));
                    }
                    self.change(|found| found.faults.push(fault));
                    continue;
                }
            };
            self.progress.step();
            self.change(|found| {
                *found.outcomes.entry(outcome).or_default() += 1;
                found.calls += calls;
            });
        }
        if let Some(worker) = worker {
            worker.end();
        }
    }

    /// The answer of a worker, a new one if there is none, or its last words.
    fn tried(
        &self,
        worker: &mut Option<Worker>,
        seed: u64,
        part: Option<usize>,
    ) -> io::Result<Result<(u64, String), String>> {
        let mut known = match worker.take() {
            Some(known) => known,
            None => Worker::new(self.args)?,
        };
        Ok(match known.answer(seed, part, Duration::from_secs(self.args.timeout)) {
            Some(answer) => {
                *worker = Some(known);
                Ok(answer)
            }
            None => Err(known.last_words()),
        })
    }

    /// The same fault of one program of the input, if one shows it alone.
    fn narrowed(&self, fault: Fault) -> Fault {
        let mut worker = None;
        let parts = if self.parts > 1 { 0..self.parts } else { 0..0 };
        for part in parts {
            if let Ok(Err(trouble)) = self.tried(&mut worker, fault.seed, Some(part)) {
                return Fault { part: Some(part), trouble, ..fault };
            }
        }
        if let Some(worker) = worker {
            worker.end();
        }
        fault
    }

    fn change(&self, change: impl FnOnce(&mut Found)) {
        change(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The next seed; none when enough was tried, or something was found.
    fn take(&self) -> Option<u64> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return None;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.next >= self.end || found.faults.len() >= self.args.faults.max(1) || found.broken.is_some() {
            return None;
        }
        found.next += 1;
        Some(found.next - 1)
    }
}

/// A process that tries inputs.
struct Worker {
    child: Child,
    answers: mpsc::Receiver<String>,
    stderr: thread::JoinHandle<Vec<u8>>,
    is_late: bool,
}

impl Worker {
    fn new(args: &Args) -> io::Result<Worker> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["fuzz", "--worker"]);
        if args.checked {
            command.arg("--checked");
        }
        match args.forged {
            Some(Forged::Modules) => drop(command.args(["--forged", "modules"])),
            Some(Forged::Packages) => drop(command.args(["--forged", "packages"])),
            None => {}
        }
        if args.attack {
            command.arg("--attack");
            command.args(args.without.iter().map(|name| format!("--without={name}")));
        }
        if let Some(memory) = args.memory {
            command.arg(format!("--memory={memory}"));
        }
        command.arg("--").args(&args.files);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (send, answers) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
            // The job has gone if there is no listener.
            lines.map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            // A broken pipe ends the stream like any other end.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut bytes));
            bytes
        });
        Ok(Worker { child, answers, stderr, is_late: false })
    }

    /// The calls and the outcome of an input; none if the worker does not say.
    fn answer(&mut self, seed: u64, part: Option<usize>, timeout: Duration) -> Option<(u64, String)> {
        let part = part.map_or(String::new(), |part| format!(" {part}"));
        // A worker that has ended does not answer.
        let _ = self.child.stdin.as_mut().map(|stdin| writeln!(stdin, "{seed}{part}"));
        let answer = self.answers.recv_timeout(timeout);
        self.is_late = answer == Err(mpsc::RecvTimeoutError::Timeout);
        let answer = answer.ok()?;
        let (calls, outcome) = answer.split_once(' ')?;
        Some((calls.parse().ok()?, outcome.to_owned()))
    }

    /// There are no more inputs.
    fn end(mut self) {
        self.child.stdin = None;
        // Every input has its answer already.
        let _ = self.child.wait();
    }

    /// Why the worker said nothing.
    fn last_words(mut self) -> String {
        if self.is_late {
            // It may have ended in this moment.
            let _ = self.child.kill();
        }
        let status = self.child.wait();
        let said = self.stderr.join().unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        match status {
            _ if self.is_late => format!("it does not end in time\n{said}"),
            Ok(status) if status.code() == Some(1) => said.into_owned(),
            Ok(status) => format!("the process ended with {status}\n{said}"),
            Err(error) => format!("{error}\n{said}"),
        }
    }
}
