//! Code that outlives the process: cached code equals compiled code, and failures of a cache never affect compilations.

#[path = "support/doors.rs"]
mod doors;

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use brolga::cache::{
    Cache, CacheKey, CacheStats, CacheStore, Claim, DirectoryStore, EntryName, StoreError, TwoLevelStore,
};
use brolga::options::{Roots, Traces};
use brolga::{
    CallError, Engine, Evaluator, Exception, OptLevel, Options, Program, Session, Verdict, Workers,
};
use brolga_fuzz::rng::Rng;

const SOURCE: &str = concat!(include_str!("support/outlives.jlir"), include_str!("support/chain.jlir"));

/// Bytes under names; what is read may be damaged, and requests may fail.
#[derive(Default)]
struct InMemory {
    entries: Mutex<BTreeMap<EntryName, Vec<u8>>>,
    damage: Mutex<Option<Rng>>,
    requests: AtomicU64,
    /// Requests from this one on fail.
    fails_from: AtomicU64,
}

impl InMemory {
    fn new() -> Arc<InMemory> {
        Arc::new(InMemory { fails_from: AtomicU64::new(u64::MAX), ..InMemory::default() })
    }

    fn ask(&self) -> Result<(), StoreError> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        match request < self.fails_from.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(StoreError::new("memory", "it has gone away")),
        }
    }
}

impl CacheStore for InMemory {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        self.ask()?;
        let mut entry = self.entries.lock().unwrap().get(name).cloned();
        if let (Some(entry), Some(rng)) = (&mut entry, &mut *self.damage.lock().unwrap()) {
            let at = rng.below(entry.len());
            match rng.below(4) {
                0 => entry.truncate(at),
                _ => entry[at] ^= 1 << rng.below(8),
            }
        }
        Ok(entry)
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        self.ask()?;
        self.entries.lock().unwrap().insert(*name, entry.to_vec());
        Ok(())
    }
}

fn cache_of(store: &Arc<InMemory>) -> Arc<Cache> {
    patient(Cache::new(store.clone(), &CacheKey::new([7; 32])))
}

/// A cache whose callers wait for the store on a busy machine, too.
fn patient(cache: Cache) -> Arc<Cache> {
    Arc::new(cache.patience(Duration::from_secs(30)))
}

/// The counters when all entries are written.
fn stats(cache: &Cache) -> CacheStats {
    cache.flush();
    cache.stats()
}

fn options(cache: &Arc<Cache>) -> Options {
    crate::doors::open(Options::new()).cache(cache.clone())
}

fn program(source: &str) -> Program {
    Program::read("cache.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The values of calls and the verdicts of tests of a program.
fn seen(program: &Program, options: Options, calls: &[&str]) -> Vec<String> {
    let engine = Engine::new(options).unwrap();
    let mut evaluator = Evaluator::native(program, &engine);
    let mut seen = Vec::new();
    for check in program.checks() {
        match evaluator.check(check) {
            Verdict::Passed => seen.push("passed".to_owned()),
            verdict => seen.push(format!("{verdict:?}")),
        }
    }
    let values = calls.iter().map(|call| match evaluator.call(&program.call(call).unwrap()) {
        Ok(value) => value.to_string(),
        Err(failure) => failure.to_string(),
    });
    seen.extend(values.collect::<Vec<_>>());
    seen
}

const CALLS: [&str; 5] = ["total(4)", "guarded(5)", "area(Square(7))", "chain(1000)", "inverse(0)"];

#[test]
fn the_second_run_compiles_nothing_and_sees_the_same() {
    let program = program(SOURCE);
    for level in [OptLevel::O0, OptLevel::O2] {
        for roots in [Roots::Maps, Roots::Linked] {
            for stress in [false, true] {
                let (store, how) = (InMemory::new(), |cache: &Arc<Cache>| {
                    options(cache).opt_level(level).roots(roots).gc_stress(stress)
                });
                let expected =
                    seen(&program, crate::doors::open(Options::new()).opt_level(level).roots(roots), &CALLS);
                let first = cache_of(&store);
                assert_eq!(seen(&program, how(&first), &CALLS), expected);
                let counted = stats(&first);
                // And one that says that all functions are there.
                assert!(counted.kept > counted.misses && counted.misses > 0, "{counted}");
                let second = cache_of(&store);
                assert_eq!(seen(&program, how(&second), &CALLS), expected);
                let counted = stats(&second);
                assert!(
                    counted.hits > 0 && counted.misses == 0 && counted.kept == 0,
                    "{level:?} {roots:?}: {counted}"
                );
                assert!(counted.saved.as_micros() > 0);
                // Other settings are other code.
                let other = cache_of(&store);
                seen(&program, how(&other).opt_level(OptLevel::O1), &[]);
                assert!(stats(&other).misses > 0);
            }
        }
    }
}

#[test]
fn exceptions_leave_code_from_the_cache_with_their_lines() {
    let store = InMemory::new();
    let thrown = |options: Options| -> Exception {
        let engine = Engine::new(options.traces(Traces::default())).unwrap();
        let outer = engine.compile(&program(SOURCE)).unwrap().func::<(i64,), i64>("outer").unwrap();
        match outer.call((0,)) {
            Err(CallError::Exception(exception)) => *exception,
            other => panic!("{other:?}"),
        }
    };
    let frames = |exception: &Exception| -> Vec<_> {
        exception.trace().iter().map(|frame| (frame.function.clone(), frame.line)).collect()
    };
    let compiled = frames(&thrown(crate::doors::open(Options::new())));
    assert!(!compiled.is_empty());
    assert_eq!(frames(&thrown(options(&cache_of(&store)))), compiled);
    let cache = cache_of(&store);
    assert_eq!(frames(&thrown(options(&cache))), compiled);
    assert_eq!(stats(&cache).misses, 0);
}

#[test]
fn a_changed_function_is_compiled_again_with_those_that_have_seen_it() {
    let store = InMemory::new();
    seen(&program(SOURCE), options(&cache_of(&store)), &[]);
    let changed = SOURCE.replace("Base.checked_sdiv_int(1000, d)", "Base.checked_sdiv_int(2000, d)");
    let cache = cache_of(&store);
    assert_eq!(seen(&program(&changed), options(&cache), &["outer(2)"]).last().unwrap(), "1001");
    let counted = stats(&cache);
    // `inverse`, `outer` and `guarded`; and `total`, which calls by dispatch.
    assert_eq!(counted.misses, 4, "{counted}");
    assert!(counted.hits >= 3, "{counted}");
}

/// Code from the cache finds the values of its threads; a variable that is thread-local no longer is other code.
#[test]
fn threads_have_their_own_variables_in_code_from_the_cache() {
    let (own, store) = (include_str!("support/thread_local.jlir"), InMemory::new());
    let shared = own.replace("global threadlocal", "global");
    let run = |text: &str| {
        let cache = cache_of(&store);
        let unit = Engine::new(options(&cache)).unwrap().compile(&program(text)).unwrap();
        let inc = unit.func::<(i64,), i64>("inc").unwrap();
        let call = || inc.call((1,)).unwrap();
        let elsewhere = || std::thread::scope(|threads| threads.spawn(call).join().unwrap());
        ([call(), elsewhere(), call()], stats(&cache).misses > 0)
    };
    for is_first in [true, false] {
        assert_eq!(run(own), ([101, 101, 102], is_first));
        assert_eq!(run(&shared), ([101, 102, 103], is_first));
    }
}

#[test]
fn damaged_entries_are_compiled_again() {
    let (store, program) = (InMemory::new(), program(SOURCE));
    let expected = seen(&program, options(&cache_of(&store)), &CALLS);
    let mut refused = 0;
    for seed in 0..60 {
        *store.damage.lock().unwrap() = Some(Rng::new(seed));
        let cache = cache_of(&store);
        assert_eq!(seen(&program, options(&cache), &CALLS), expected, "seed {seed}");
        refused += stats(&cache).refused;
    }
    // Batches before the damage are used; what is published afterwards replaces it.
    assert!(refused >= 60, "{refused}");
    *store.damage.lock().unwrap() = None;
    for is_mended in [false, true] {
        let cache = cache_of(&store);
        assert_eq!(seen(&program, options(&cache), &CALLS), expected);
        assert!(!is_mended || (stats(&cache).misses, stats(&cache).refused) == (0, 0), "{}", stats(&cache));
    }
}

#[test]
fn a_store_that_goes_away_costs_time_alone() {
    let program = program(SOURCE);
    let filled = InMemory::new();
    let expected = seen(&program, options(&cache_of(&filled)), &CALLS);
    let requests = filled.requests.load(Ordering::Relaxed);
    for fails_from in 0..requests {
        for store in [InMemory::new(), filled.clone()] {
            store.requests.store(0, Ordering::Relaxed);
            store.fails_from.store(fails_from, Ordering::Relaxed);
            let cache = cache_of(&store);
            assert_eq!(seen(&program, options(&cache), &CALLS), expected, "{fails_from}");
            // One of a read and one of a write close it, for longer than this takes.
            assert!(stats(&cache).errors <= 4, "{}", stats(&cache));
        }
    }
}

/// The values of calls in a session, and how many functions were compiled.
fn in_session(
    cache: &Arc<Cache>,
    define: impl Fn(brolga::session::Definitions) -> brolga::session::Definitions,
    stress: bool,
) -> (Vec<i64>, u64) {
    let session = Session::new(options(cache).gc_stress(stress), Workers::Caller).unwrap();
    let dylib = session.create_dylib("main").unwrap();
    dylib.define(define(dylib.read("cache.jlir", SOURCE.as_bytes()).unwrap())).unwrap();
    let mut given = Vec::new();
    for (name, arg) in [("guarded", 0), ("guarded", 7), ("chain", 20), ("step", 1)] {
        let function = dylib.func::<(i64,), i64>(name).unwrap();
        for round in 0..6 {
            given.push(function.call((arg + round,)).unwrap());
            session.optimize_hot();
        }
    }
    // The loop is left for better code in the middle.
    let chain = dylib.func::<(i64,), i64>("chain").unwrap();
    given.push(chain.call((3_000,)).unwrap());
    session.optimize_hot();
    given.push(chain.call((3_000,)).unwrap());
    let compiled = session.stats().compiled_functions;
    session.end();
    (given, compiled)
}

type Define = for<'a> fn(brolga::session::Definitions) -> brolga::session::Definitions;

#[test]
fn sessions_find_their_functions_in_all_tiers() {
    let kinds: [(&str, Define); 5] = [
        ("eager", |program| program),
        ("lazy", |program| program.lazy()),
        ("replaceable", |program| program.replaceable()),
        ("tiered", |program| program.tiered(3).iterations(100)),
        ("without profile", |program| program.tiered(3).iterations(100).profiled(false)),
    ];
    for (kind, define) in kinds {
        for stress in [false, true] {
            let store = InMemory::new();
            let (given, compiled) = in_session(&cache_of(&store), define, stress);
            assert!(compiled > 0, "{kind}");
            let cache = cache_of(&store);
            let (again, compiled) = in_session(&cache, define, stress);
            assert_eq!(again, given, "{kind}");
            let counted = stats(&cache);
            assert_eq!((compiled, counted.misses), (0, 0), "{kind}: {counted}");
        }
    }
}

fn directory(path: &Path) -> DirectoryStore {
    DirectoryStore::open(path, 64 << 20).unwrap()
}

#[test]
fn a_near_directory_stands_in_front_of_a_far_one() {
    let folder = tempfile::tempdir().unwrap();
    let [near, far] = ["near", "far"].map(|name| folder.path().join(name));
    let (program, key) = (program(SOURCE), CacheKey::random().unwrap());
    let run = |cache: Cache| -> CacheStats {
        let cache = patient(cache);
        seen(&program, options(&cache), &CALLS);
        stats(&cache)
    };
    run(Cache::new(directory(&far), &key));
    let both = || Cache::new(TwoLevelStore::new(directory(&near), directory(&far)), &key);
    assert_eq!(run(both()).misses, 0);
    std::fs::remove_dir_all(&far).unwrap();
    assert_eq!(run(Cache::new(directory(&near), &key)).misses, 0, "all of it has come near");
    let other = run(Cache::new(directory(&near), &CacheKey::random().unwrap()));
    assert_eq!((other.hits, other.refused), (0, 0), "who has another key has other names");
}

/// Run by `tests/cache_redis.sh`, which starts the server and ends it in the middle.
#[cfg(feature = "redis")]
#[test]
#[ignore = "needs a server: tests/cache_redis.sh"]
fn a_redis_server_is_shared_and_may_go_away() {
    use brolga::cache::RedisStore;
    let url = std::env::var("BROLGA_TEST_REDIS").unwrap();
    let (program, key) = (program(SOURCE), CacheKey::random().unwrap());
    let redis = || RedisStore::new(&url, "test:", Duration::from_secs(2)).unwrap();
    let expected = seen(&program, crate::doors::open(Options::new()), &CALLS);
    for misses_some in [true, false] {
        let cache = patient(Cache::new(redis(), &key));
        assert_eq!(seen(&program, options(&cache), &CALLS), expected);
        let counted = stats(&cache);
        assert_eq!((counted.misses > 0, counted.errors), (misses_some, 0), "{counted}");
    }
    let folder = tempfile::tempdir().unwrap();
    let near = || TwoLevelStore::new(directory(folder.path()), redis());
    let cache = patient(Cache::new(near(), &key));
    assert_eq!(seen(&program, options(&cache), &CALLS), expected);
    assert_eq!(stats(&cache).misses, 0, "{}", stats(&cache));
    // The server goes away.
    let pid = std::env::var("BROLGA_TEST_REDIS_PID").unwrap();
    assert!(std::process::Command::new("kill").arg(&pid).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(500));
    for changed in ["2000", "3000"] {
        let program =
            self::program(&SOURCE.replace("checked_sdiv_int(1000", &format!("checked_sdiv_int({changed}")));
        assert_eq!(seen(&program, options(&cache), &CALLS[..4]).len(), expected.len() - 1);
    }
    assert!(stats(&cache).errors > 0, "{}", stats(&cache));
    let alone = Arc::new(Cache::new(redis(), &key));
    assert_eq!(seen(&program, options(&alone), &CALLS), expected);
    assert!(stats(&alone).hits == 0 && stats(&alone).errors > 0, "{}", stats(&alone));
}

#[test]
fn a_run_is_found_by_its_text_and_nothing_is_read() {
    let calls = ["total(4)", "guarded(5)", "area(Square(7))", "chain(1000)", "inverse(0)", "step(2)"];
    for level in [OptLevel::O0, OptLevel::O2] {
        for call in calls {
            let (store, program) = (InMemory::new(), program(SOURCE));
            let how = |cache: &Arc<Cache>| options(cache).opt_level(level);
            let text = |outcome: Result<String, brolga::Failure>| match outcome {
                Ok(value) => value,
                Err(failure) => failure.to_string(),
            };
            let first = cache_of(&store);
            let engine = Engine::new(how(&first)).unwrap();
            assert!(engine.kept_run("cache.jlir", SOURCE.as_bytes(), call).is_none());
            let read = program.call(call).unwrap();
            let mut evaluator = Evaluator::native(&program, &engine).keeping_run(call);
            let expected = text(evaluator.call(&read));
            first.flush();
            let second = cache_of(&store);
            let engine = Engine::new(how(&second)).unwrap();
            let run = engine.kept_run("cache.jlir", SOURCE.as_bytes(), call).expect(call);
            assert_eq!(text(run.evaluator().call(run.call())), expected, "{call}");
            assert_eq!(text(run.evaluator().call(run.call())), expected, "each call starts afresh: {call}");
            // Another text, name, call or level is another run.
            let other = SOURCE.replace("STEPS::Int64 = 40", "STEPS::Int64 = 41");
            assert!(engine.kept_run("cache.jlir", other.as_bytes(), call).is_none());
            assert!(engine.kept_run("other.jlir", SOURCE.as_bytes(), call).is_none());
            assert!(engine.kept_run("cache.jlir", SOURCE.as_bytes(), "chain(7)").is_none());
            let engine = Engine::new(options(&second).opt_level(OptLevel::O1)).unwrap();
            assert!(engine.kept_run("cache.jlir", SOURCE.as_bytes(), call).is_none());
        }
    }
}

/// Calls of one text share their functions: a further call costs a few bytes.
#[test]
fn runs_do_not_crowd_out_functions() {
    let (folder, program) = (tempfile::tempdir().unwrap(), program(SOURCE));
    let key = CacheKey::new([7; 32]);
    let open = || patient(Cache::new(directory(folder.path()), &key));
    let run = |call: &str| {
        let cache = open();
        let engine = Engine::new(options(&cache)).unwrap();
        assert!(engine.kept_run("cache.jlir", SOURCE.as_bytes(), call).is_none());
        let mut evaluator = Evaluator::native(&program, &engine).keeping_run(call);
        evaluator.call(&program.call(call).unwrap()).unwrap();
        stats(&cache).written
    };
    let first = run("chain(1)");
    for n in 2..20 {
        let more = run(&format!("chain({n})"));
        assert!(more < 300, "{more} bytes for another call, {first} for the first one");
    }
    let cache = open();
    let engine = Engine::new(options(&cache)).unwrap();
    assert!(
        (1..20).all(|n| engine.kept_run("cache.jlir", SOURCE.as_bytes(), &format!("chain({n})")).is_some())
    );
}

/// A store that answers when it is let.
struct Gated {
    store: Arc<InMemory>,
    is_open: Mutex<bool>,
    opened: Condvar,
    has_given_up: AtomicBool,
}

impl Gated {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    /// Waits for the opening; not for ever, so that who waits for an answer fails and does not hang.
    fn pass(&self) {
        let open = self.is_open.lock().unwrap();
        let waited = self.opened.wait_timeout_while(open, Duration::from_secs(60), |is_open| !*is_open);
        self.has_given_up.fetch_or(waited.unwrap().1.timed_out(), Ordering::Relaxed);
    }
}

impl CacheStore for Gated {
    fn describe(&self) -> String {
        "gated".to_owned()
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        self.pass();
        self.store.get(name)
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        self.pass();
        self.store.put(name, entry)
    }
}

#[test]
fn nobody_waits_for_a_slow_store() {
    let (store, program) = (InMemory::new(), program(SOURCE));
    let expected = seen(&program, options(&cache_of(&store)), &CALLS);
    let (is_open, opened, has_given_up) = Default::default();
    let gated = Arc::new(Gated { store, is_open, opened, has_given_up });
    let cache = Arc::new(Cache::new(gated.clone(), &CacheKey::new([7; 32])));
    let engine = Engine::new(options(&cache)).unwrap();
    assert!(engine.kept_run("cache.jlir", SOURCE.as_bytes(), CALLS[0]).is_none());
    assert_eq!(seen(&program, options(&cache), &CALLS), expected);
    drop((engine, cache));
    gated.open();
    assert!(!gated.has_given_up.load(Ordering::Relaxed), "all of this was done before an answer");
}

/// A store that takes nothing, in one of several ways.
struct Refusing(bool);

impl CacheStore for Refusing {
    fn describe(&self) -> String {
        "refusing".to_owned()
    }

    fn get(&self, _: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn put(&self, _: &EntryName, _: &[u8]) -> Result<(), StoreError> {
        Err(StoreError::new("refusing", "it is full"))
    }

    fn claim(&self, _: &EntryName) -> Result<Option<Claim>, StoreError> {
        if self.0 { Err(StoreError::new("refusing", "it is full")) } else { Ok(Some(Claim::new(()))) }
    }

    fn is_writable(&self) -> bool {
        self.0
    }
}

#[test]
fn nothing_is_prepared_for_a_store_that_takes_nothing() {
    let program = program(SOURCE);
    let expected = seen(&program, crate::doors::open(Options::new()), &CALLS);
    for says_so_at_a_claim in [true, false] {
        let cache = patient(Cache::new(Refusing(says_so_at_a_claim), &CacheKey::new([7; 32])));
        assert_eq!(seen(&program, options(&cache), &CALLS), expected);
        let counted = stats(&cache);
        // A write would be an error.
        assert_eq!((counted.errors, counted.kept), (u64::from(says_so_at_a_claim), 0), "{counted}");
    }
}

/// The children of the following tests are this test again.
const CHILD: &str = "BROLGA_TEST_CACHE_CHILD";

/// One process: it makes a call, and prints how many functions it has looked for in vain.
#[test]
#[ignore = "a process of the tests"]
#[expect(clippy::disallowed_methods, reason = "a process that the tests start and kill")]
fn child() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let key = CacheKey::new([7; 32]);
    let cache = patient(Cache::new(directory(Path::new(&folder)), &key));
    let engine = Engine::new(options(&cache)).unwrap();
    // It has no dynamic calls, whose boxed entries are compiled while it runs.
    let call = "chain(1000)";
    let value = match engine.kept_run("cache.jlir", SOURCE.as_bytes(), call) {
        Some(run) => run.evaluator().call(run.call()).unwrap(),
        None => {
            if std::env::var("BROLGA_TEST_CACHE_KILLED").is_ok() {
                // It has the claim now, and ends without releasing it.
                println!("claimed");
                std::thread::sleep(Duration::from_secs(60));
            }
            let program = program(SOURCE);
            let mut evaluator = Evaluator::native(&program, &engine).keeping_run(call);
            evaluator.call(&program.call(call).unwrap()).unwrap()
        }
    };
    cache.flush();
    println!("value {value} missed {}", cache.stats().misses);
}

fn start_child(folder: &Path, is_killed: bool) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--ignored", "--nocapture"]).env(CHILD, folder).stdout(Stdio::piped());
    if is_killed {
        child.env("BROLGA_TEST_CACHE_KILLED", "1");
    }
    child.spawn().unwrap()
}

/// The value, and how many functions were compiled.
fn ended(child: Child) -> (String, u64) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split_once("value ")).unwrap_or_else(|| panic!("{text}")).1;
    let (value, missed) = line.split_once(" missed ").unwrap();
    (value.to_owned(), missed.parse().unwrap())
}

#[test]
fn of_twenty_processes_one_compiles() {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<Child> = (0..20).map(|_| start_child(folder.path(), false)).collect();
    let all: Vec<(String, u64)> = all.into_iter().map(ended).collect();
    assert!(all.iter().all(|(value, _)| *value == all[0].0), "{all:?}");
    assert_eq!(all.iter().filter(|(_, missed)| *missed > 0).count(), 1, "{all:?}");
}

#[test]
fn a_process_that_is_killed_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut killed = start_child(folder.path(), true);
    let mut lines = std::io::BufReader::new(killed.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("claimed") {}
    let waiting = start_child(folder.path(), false);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (_, missed) = ended(waiting);
    assert!(missed > 0);
    assert_eq!(ended(start_child(folder.path(), false)).1, 0);
}

#[test]
fn a_claim_that_is_held_for_ever_is_waited_for_a_second_at_most() {
    let (store, program) = (Arc::new(Held(InMemory::new())), program(SOURCE));
    let expected = seen(&program, crate::doors::open(Options::new()), &CALLS);
    let cache = patient(Cache::new(store, &CacheKey::new([7; 32])));
    let engine = Engine::new(options(&cache)).unwrap();
    assert!(engine.kept_run("cache.jlir", SOURCE.as_bytes(), CALLS[0]).is_none());
    assert_eq!(seen(&program, options(&cache), &CALLS), expected);
    assert!(stats(&cache).waited < Duration::from_secs(10), "{}", stats(&cache));
    assert!(stats(&cache).kept > 0, "{}", stats(&cache));
}

/// A store whose claims another one has.
struct Held(Arc<InMemory>);

impl CacheStore for Held {
    fn describe(&self) -> String {
        "held".to_owned()
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(name)
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        self.0.put(name, entry)
    }

    fn claim(&self, _: &EntryName) -> Result<Option<Claim>, StoreError> {
        Ok(None)
    }
}

#[test]
fn a_damaged_run_is_none() {
    let (store, program, call) = (InMemory::new(), program(SOURCE), "total(4)");
    let first = cache_of(&store);
    let engine = Engine::new(options(&first)).unwrap();
    let mut evaluator = Evaluator::native(&program, &engine).keeping_run(call);
    let expected = evaluator.call(&program.call(call).unwrap()).unwrap();
    first.flush();
    let mut missed = 0;
    for seed in 0..60 {
        *store.damage.lock().unwrap() = Some(Rng::new(seed));
        let engine = Engine::new(options(&cache_of(&store))).unwrap();
        // What precedes the damage is intact.
        match engine.kept_run("cache.jlir", SOURCE.as_bytes(), call) {
            Some(run) => assert_eq!(run.evaluator().call(run.call()).unwrap(), expected),
            None => missed += 1,
        }
    }
    assert!(missed > 30, "{missed}");
    *store.damage.lock().unwrap() = None;
    let engine = Engine::new(options(&cache_of(&store))).unwrap();
    let run = engine.kept_run("cache.jlir", SOURCE.as_bytes(), call).unwrap();
    assert_eq!(run.evaluator().call(run.call()).unwrap(), expected);
}

/// A session in which a struct was declared again does not take the code of another type for its own, in whatever order other sessions have declared them.
#[test]
fn code_is_of_the_type_that_the_program_means() {
    let program = |n: usize| {
        let (fields, values) = (["    a::Int64\n", "    a::Int64\n    b::Float64\n"][n], ["1", "1, 2.5"][n]);
        format!(
            "struct P\n{fields}end\nfunction make{n}()::Any\n1 ─ %1 = %new(P, {values})::P\n└──      return %1\nend\n\
             function is{n}(x::Any)::Int64\n1 ─ %1 = (x isa P)::Bool\n│   %2 = Base.zext_int(Int64, %1)::Int64\n└──      return %2\nend\n"
        )
    };
    let asks: String = [(0, 0), (0, 1), (1, 0), (1, 1)]
        .map(|(of, made)| {
            format!(
                "function ask{of}{made}()::Int64\n1 ─ %1 = invoke Main.make{made}()::Any\n│   %2 = invoke Main.is{of}(%1::Any)::Int64\n└──      return %2\nend\n"
            )
        })
        .concat();
    let store = InMemory::new();
    for order in [[0, 1], [1, 0], [0, 1], [1, 0]] {
        let cache = cache_of(&store);
        let session = Session::new(options(&cache), Workers::Caller).unwrap();
        let main = session.create_dylib("main").unwrap();
        for n in order {
            let read = main.read("p.jlir", program(n).as_bytes()).unwrap();
            main.define(read.lazy()).unwrap();
        }
        main.define(main.read("asks.jlir", asks.as_bytes()).unwrap().lazy()).unwrap();
        let ask = |name| main.func::<(), i64>(name).unwrap().call(()).unwrap();
        assert_eq!(["ask00", "ask01", "ask10", "ask11"].map(ask), [1, 0, 0, 1], "{order:?}");
        stats(&cache);
    }
}
