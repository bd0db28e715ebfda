//! The cache of code beside no cache: processes of one program, stores of all kinds, and stores that fail.
//!
//! ```text
//! cargo bench --bench cache --features redis,opendal,brolga-cache/opendal-fs                       the whole table
//! cargo bench --bench cache --features redis,opendal,brolga-cache/opendal-fs -- directory          the rows whose names contain a text
//! cargo bench --bench cache --features redis,opendal,brolga-cache/opendal-fs -- --functions 300    another program
//! cargo bench --bench cache --features redis,opendal,brolga-cache/opendal-fs -- --rounds 2         fewer runs
//! ```
//!
//! A process reads a generated program of [`FUNCTIONS`] functions and makes one call that reaches all of them, as `brolga run --cache` does. A row is a store, a
//! state and a number of processes that start at once; beside each of its [`ROUNDS`] runs the same processes run without a cache.
//!
//! | column | is |
//! |---|---|
//! | wall | ms from the start of the first process to the end of the last one; the least of the rounds, and beside no cache |
//! | processor | ms of user and system time of all processes, likewise |
//! | compiled | functions that were compiled in all processes, the most of the rounds |
//!
//! | state | is |
//! |---|---|
//! | cold | the store is empty |
//! | warm | a process of before has filled it |
//! | dead | a server that refuses connections, a directory that cannot be read |
//! | slow | an answer takes two seconds |
//! | full | each write is refused for want of space |
//! | read-only | each write is refused for want of permission |
//!
//! Needs `redis-server`, without which its rows are left out. A relay (`relay.rs`) between client and server delays Redis; a sleep precedes each
//! request to the object store, which is a folder reached through `opendal`.

#[path = "child.rs"]
mod child;
#[path = "relay.rs"]
mod relay;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use relay::Relay;

pub(crate) type Done<T> = Result<T, Box<dyn Error>>;

const FUNCTIONS: usize = 1_000;
/// The number of runs, unless `--rounds` has another one.
const ROUNDS: usize = 5;
/// Functions that one function calls.
const CALLED_BY_ONE: usize = 25;

/// A program of functions that are not inlined, and a function that calls them all.
fn source(functions: usize) -> String {
    let mut text = String::new();
    for at in 0..functions {
        let (factor, step) = (at + 3, at % 5 + 1);
        let _ = write!(
            text,
            "function f{at}(n::Int64)::Int64 noinline
1 ─ %1 = Base.mul_int(n, {factor})::Int64
└──      goto #2
2 ┄ %3 = φ (#1 => %1, #3 => %9)::Int64
│   %4 = φ (#1 => 0, #3 => %10)::Int64
│   %5 = Base.slt_int(%4, n)::Bool
└──      goto #4 if not %5
3 ─ %7 = Base.xor_int(%3, %4)::Int64
│   %8 = Base.mul_int(%7, {factor})::Int64
│   %9 = Base.sub_int(%8, {at})::Int64
│   %10 = Base.add_int(%4, {step})::Int64
└──      goto #2
4 ─ %12 = Base.checked_sdiv_int(%3, {factor})::Int64
└──      return %12
end

"
        );
    }
    let sum = |text: &mut String, name: &str, callees: &mut dyn Iterator<Item = String>| {
        let _ = write!(text, "function {name}(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 0)::Int64\n");
        let mut last = 1;
        for callee in callees {
            let _ = writeln!(text, "│   %{} = invoke Main.{callee}(n::Int64)::Int64", last + 1);
            let _ = writeln!(text, "│   %{} = Base.add_int(%{last}, %{})::Int64", last + 2, last + 1);
            last += 2;
        }
        let _ = write!(text, "└──      return %{last}\nend\n\n");
    };
    let groups = functions.div_ceil(CALLED_BY_ONE);
    for group in 0..groups {
        let own = group * CALLED_BY_ONE..functions.min((group + 1) * CALLED_BY_ONE);
        sum(&mut text, &format!("g{group}"), &mut own.map(|at| format!("f{at}")));
    }
    sum(&mut text, "all", &mut (0..groups).map(|group| format!("g{group}")));
    text
}

/// A store as the processes reach it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    TwoLevel,
    Redis,
    Object,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Cold,
    Warm,
    Dead,
    Slow,
    Full,
    ReadOnly,
}

struct Row {
    name: String,
    kind: Kind,
    state: State,
    delay: Duration,
    processes: usize,
}

/// All rows.
fn rows() -> Vec<Row> {
    let stores = [
        (Kind::Directory, "directory", 0),
        (Kind::TwoLevel, "two-level, Redis at 1 ms", 1),
        (Kind::Redis, "Redis", 0),
        (Kind::Redis, "Redis at 1 ms", 1),
        (Kind::Redis, "Redis at 5 ms", 5),
        (Kind::Object, "object store at 5 ms", 5),
    ];
    let states = [
        (State::Cold, "cold", &[1, 8, 20][..]),
        (State::Warm, "warm", &[1, 8, 20][..]),
        (State::Dead, "dead", &[1, 8][..]),
        (State::Slow, "slow", &[1, 8][..]),
        (State::Full, "full", &[1, 8][..]),
        (State::ReadOnly, "read-only", &[1, 8][..]),
    ];
    let mut rows = Vec::new();
    for (kind, store, millis) in stores {
        for (state, name, processes) in states {
            // A store that fails does so at any distance, and a local directory is not slow.
            let fails = !matches!(state, State::Cold | State::Warm);
            let is_local = kind == Kind::Directory && state == State::Slow;
            if is_local || fails && matches!(store, "Redis" | "Redis at 5 ms") {
                continue;
            }
            let delay = Duration::from_millis(if state == State::Slow { 2_000 } else { millis });
            rows.extend(processes.iter().map(|&processes| Row {
                name: format!("{store} | {name} | {processes}"),
                kind,
                state,
                delay,
                processes,
            }));
        }
    }
    rows
}

/// A Redis server of this bench's own.
struct Redis {
    process: Child,
    port: u16,
    folder: PathBuf,
}

impl Redis {
    fn start(folder: &Path) -> Option<Redis> {
        fs::create_dir_all(folder).ok()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no", "--dir"])
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let redis = Redis { process, port, folder: folder.to_owned() };
        let is_there = |_: &u32| {
            std::thread::sleep(Duration::from_millis(50));
            redis.tell(&["PING"]).is_ok()
        };
        (0..100).find(is_there)?;
        Some(redis)
    }

    fn tell(&self, command: &[&str]) -> Done<()> {
        let mut tool = Command::new("redis-cli");
        let output = tool.current_dir(&self.folder).args(["-p", &self.port.to_string()]).args(command);
        let output = output.output()?;
        match output.status.success() && !output.stdout.starts_with(b"ERR") {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stdout).into_owned().into()),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It is this bench's own.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The times of a number of processes.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    processor: f64,
    compiled: usize,
}

/// User and system time of all children that have ended, in ms.
fn processor_of_children() -> f64 {
    // SAFETY: the structure is plain numbers, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let millis = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    millis(usage.ru_utime) + millis(usage.ru_stime)
}

/// Runs the processes at once.
fn measure(processes: usize, how: &[String]) -> Done<Took> {
    let this = std::env::current_exe()?;
    let (before, begun) = (processor_of_children(), Instant::now());
    let mut children = Vec::with_capacity(processes);
    for _ in 0..processes {
        children.push(Command::new(&this).arg("--child").args(how).stdout(Stdio::piped()).spawn()?);
    }
    let mut compiled = 0;
    for child in children {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err("a process failed".into());
        }
        compiled += String::from_utf8(output.stdout)?.trim().parse::<usize>()?;
    }
    let wall = begun.elapsed().as_secs_f64() * 1e3;
    Ok(Took { wall, processor: processor_of_children() - before, compiled })
}

/// The least time of all rounds, and the most compilations.
fn least(all: &[Took]) -> Took {
    let least = |of: fn(&Took) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
    let compiled = all.iter().map(|took| took.compiled).max().unwrap_or(0);
    Took { wall: least(|took| took.wall), processor: least(|took| took.processor), compiled }
}

/// Everything that the rows share.
struct Bench {
    folder: tempfile::TempDir,
    text: PathBuf,
    redis: Option<Redis>,
    rounds: usize,
}

impl Bench {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Empties the stores.
    fn clear(&self) -> Done<()> {
        for name in ["directory", "objects"] {
            let path = self.folder.path().join(name);
            allow(&path, true)?;
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        match &self.redis {
            Some(redis) => redis.tell(&["FLUSHALL"]),
            None => Ok(()),
        }
    }

    /// The arguments of a process, for a server at this address.
    fn how(&self, row: &Row, address: &str) -> Vec<String> {
        let kind = match row.kind {
            Kind::Directory => "directory",
            Kind::TwoLevel => "two-level",
            Kind::Redis => "redis",
            Kind::Object => "object",
        };
        let state = match row.state {
            State::Cold | State::Warm => "works",
            State::Dead => "dead",
            State::Slow => "slow",
            State::Full => "full",
            State::ReadOnly => "read-only",
        };
        let text = self.text.display().to_string();
        let (directory, objects) = (self.path("directory"), self.path("objects"));
        let delay = row.delay.as_millis().to_string();
        [kind, state, &text, &directory, &objects, address, &delay].map(str::to_owned).to_vec()
    }

    fn row(&self, row: &Row) -> Done<bool> {
        let uses_redis = matches!(row.kind, Kind::Redis | Kind::TwoLevel);
        let Some(port) = self.redis.as_ref().map(|redis| redis.port).or((!uses_redis).then_some(0)) else {
            return Ok(false);
        };
        // Nobody listens at the dead address.
        let nobody = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let relay = (uses_redis && !row.delay.is_zero()).then(|| Relay::start(port, row.delay / 2));
        let relay = relay.transpose()?;
        let port = match (&relay, row.state) {
            (_, State::Dead) => nobody,
            (Some(relay), _) => relay.port(),
            (None, _) => port,
        };
        let user = if row.state == State::ReadOnly { "reader:reader@" } else { "" };
        let how = self.how(row, &format!("redis://{user}127.0.0.1:{port}/"));
        let none = ["none".to_owned(), "works".to_owned(), self.text.display().to_string()];
        if let (true, Some(redis)) = (uses_redis, &self.redis) {
            redis.tell(&["ACL", "SETUSER", "reader", "on", ">reader", "~*", "+@all", "-@write"])?;
            let limit = if row.state == State::Full { "1" } else { "0" };
            redis.tell(&["CONFIG", "SET", "maxmemory", limit])?;
        }
        let (mut alone, mut cached) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            if round == 0 || row.state != State::Warm {
                self.clear()?;
            }
            if round == 0 && row.state == State::Warm {
                let mut fill = how.clone();
                fill.push("fill".to_owned());
                measure(1, &fill)?;
            }
            if row.state == State::ReadOnly {
                fs::create_dir_all(self.folder.path().join("directory"))?;
                allow(&self.folder.path().join("directory"), false)?;
            }
            if row.state == State::Dead {
                // Neither is a folder.
                fs::write(self.folder.path().join("directory"), b"")?;
            }
            alone.push(measure(row.processes, &none)?);
            cached.push(measure(row.processes, &how)?);
            if row.state == State::Dead {
                fs::remove_file(self.folder.path().join("directory"))?;
            }
        }
        let (alone, cached) = (least(&alone), least(&cached));
        println!(
            "| {} | {:.0} | {:.2} | {:.0} | {:.2} | {} |",
            row.name,
            cached.wall,
            cached.wall / alone.wall,
            cached.processor,
            cached.processor / alone.processor,
            cached.compiled,
        );
        Ok(true)
    }
}

/// Makes a folder writable, or not.
fn allow(path: &Path, writes: bool) -> Done<()> {
    match fs::set_permissions(path, fs::Permissions::from_mode(if writes { 0o755 } else { 0o555 })) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn main() -> Done<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [flag, how @ ..] = args.as_slice()
        && flag == "--child"
    {
        return child::run(how);
    }
    let (mut functions, mut rounds, mut filter) = (FUNCTIONS, ROUNDS, String::new());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--functions" => functions = args.next().ok_or("a number of functions")?.parse()?,
            "--rounds" => rounds = args.next().ok_or("a number of rounds")?.parse()?,
            _ => filter = arg,
        }
    }
    let folder = tempfile::tempdir()?;
    // Processes of another user, who may not write, read the text.
    allow(folder.path(), true)?;
    let text = folder.path().join("program.jlir");
    fs::write(&text, source(functions))?;
    let redis = Redis::start(&folder.path().join("redis"));
    let bench = Bench { folder, text, redis, rounds };
    let none = ["none".to_owned(), "works".to_owned(), bench.text.display().to_string()];
    println!("{functions} functions\n");
    println!("| store | state | processes | wall ms | beside none | processor ms | beside none | compiled |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    for processes in [1, 8, 20] {
        let runs = (0..rounds).map(|_| measure(processes, &none)).collect::<Done<Vec<_>>>()?;
        let Took { wall, processor, compiled } = least(&runs);
        println!("| none | – | {processes} | {wall:.0} | 1 | {processor:.0} | 1 | {compiled} |");
    }
    let mut has_skipped = false;
    for row in rows().iter().filter(|row| row.name.contains(&filter)) {
        has_skipped |= !bench.row(row)?;
    }
    if has_skipped {
        println!("\nrows with Redis were left out: there is no redis-server");
    }
    bench.clear()
}
