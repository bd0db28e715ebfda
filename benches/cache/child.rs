//! A process of the bench: one call of the program, with or without a cache. It prints how many functions it has compiled.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use brolga::cache::opendal::{Operator, services::Fs};
use brolga::cache::{
    Cache, CacheKey, CacheStore, DirectoryStore, EntryName, ObjectStore, RedisStore, StoreError,
    TwoLevelStore,
};
use brolga::observe::events::{Event, EventListener, Stage};
use brolga::{Engine, Evaluator, Options, Program};

use super::Done;

const CALL: &str = "all(5)";
const LIMIT: u64 = 1 << 30;
const TIMEOUT: Duration = Duration::from_secs(5);

/// Counts functions that are compiled.
#[derive(Default)]
struct Compiled(AtomicUsize);

impl EventListener for Compiled {
    fn event(&self, event: Event<'_>) {
        if let Event::Begin { stage: Stage::Generate, name } = event {
            // The first names, and how many more.
            let (shown, more) = name.split_once(" and ").unwrap_or((name, "0 more"));
            let more = more.trim_end_matches(" more").parse().unwrap_or(0);
            self.0.fetch_add(shown.split(", ").count() + more, Ordering::Relaxed);
        }
    }
}

/// A store whose requests take longer, and whose writes may be refused.
struct Far {
    store: ObjectStore,
    delay: Duration,
    refuses: &'static [&'static str],
}

impl Far {
    fn ask(&self, what: &str) -> Result<(), StoreError> {
        thread::sleep(self.delay);
        match self.refuses.contains(&what) {
            true => Err(StoreError::new("object store", "refused")),
            false => Ok(()),
        }
    }
}

impl CacheStore for Far {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        self.ask("get")?;
        self.store.get(name)
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        self.ask("put")?;
        self.store.put(name, entry)
    }
}

/// The rights that the process drops.
fn restrict(state: &str) -> Done<()> {
    // SAFETY: system calls on plain values, in a process with one thread.
    let is_done = unsafe {
        match state {
            "full" => {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_FSIZE, &none) == 0
            }
            // The superuser may write anything.
            "read-only" if libc::geteuid() == 0 => libc::setresuid(65_534, 65_534, 65_534) == 0,
            _ => true,
        }
    };
    if is_done { Ok(()) } else { Err("the system does not restrict the process".into()) }
}

fn cache(kind: &str, state: &str, rest: &[String]) -> Done<Option<Arc<Cache>>> {
    let [directory, objects, address, delay] = rest else { return Ok(None) };
    let key = CacheKey::new([7; 32]);
    let redis = || RedisStore::new(address, "bench:", TIMEOUT);
    // A directory that does not open costs the cache and not the program.
    let near = || DirectoryStore::open(directory, LIMIT);
    Ok(match kind {
        "directory" => near().ok().map(|store| Cache::new(store, &key)),
        "redis" => Some(Cache::new(redis()?, &key)),
        "two-level" => match near() {
            Ok(near) => Some(Cache::new(TwoLevelStore::new(near, redis()?), &key)),
            Err(_) => Some(Cache::new(redis()?, &key)),
        },
        _ => {
            let operator = Operator::new(Fs::default().root(objects))?;
            let refuses: &[&str] = match state {
                "dead" => &["get", "put"],
                "full" | "read-only" => &["put"],
                _ => &[],
            };
            let (store, delay) =
                (ObjectStore::new(operator, TIMEOUT)?, Duration::from_millis(delay.parse()?));
            Some(Cache::new(Far { store, delay, refuses }, &key))
        }
    }
    .map(Arc::new))
}

pub(crate) fn run(how: &[String]) -> Done<()> {
    let [kind, state, text, rest @ ..] = how else { return Err("too few arguments".into()) };
    let (rest, is_filling) = match rest.split_last() {
        Some((last, rest)) if last == "fill" => (rest, true),
        _ => (rest, false),
    };
    if kind != "object" {
        restrict(state)?;
    }
    let cache = cache(kind, state, rest)?;
    let options = match &cache {
        Some(cache) => Options::new().cache(cache.clone()),
        None => Options::new(),
    };
    let engine = Engine::new(options)?;
    let compiled = Arc::new(Compiled::default());
    engine.runtime().events().listen(compiled.clone());
    let (name, bytes) = (text.as_str(), fs::read(Path::new(text))?);
    match engine.kept_run(name, &bytes, CALL) {
        Some(run) => {
            black_box(run.evaluator().call(run.call())?);
        }
        None => {
            let program = Program::read(name, &bytes)?;
            let call = program.call(CALL)?;
            black_box(Evaluator::native(&program, &engine).keeping_run(CALL).call(&call)?);
        }
    }
    println!("{}", compiled.0.load(Ordering::Relaxed));
    if let (true, Some(cache)) = (is_filling, &cache) {
        cache.flush();
    }
    Ok(())
}
