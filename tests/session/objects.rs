//! Object files in sessions: definitions that override others, what runs at loading and unloading, removal with trackers, and files that are not right.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use std::process::Command;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use brolga::session::{Dependants, Dylib, OnDrop, SessionError};
use brolga::{Session, Workers};
use brolga_jit::{CodeListener, CodeUnit};

use crate::{dylib, session};

/// What a compiler makes of a source; `name` says of which language.
pub(super) fn compiled(name: &str, source: &str, options: &[&str]) -> Vec<u8> {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let folder =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("objects-{process}-{number}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), source).unwrap();
    let compiler = if name.ends_with(".cpp") { "g++" } else { "gcc" };
    let mut command = Command::new(compiler);
    command.args(["-w", "-O1", "-fPIC"]).args(options).arg(name).args(["-o", "made"]).current_dir(&folder);
    assert!(command.status().is_ok_and(|status| status.success()), "{source}");
    let bytes = std::fs::read(folder.join("made")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    bytes
}

pub(super) fn c(source: &str) -> Vec<u8> {
    compiled("made.c", source, &["-c"])
}

fn cpp(source: &str) -> Vec<u8> {
    compiled("made.cpp", source, &["-c"])
}

/// A program that calls a C function of one integer.
fn program(name: &str) -> String {
    format!(
        "function f(x::Int64)::Int64\n\
         1 ─ %1 = $(Expr(:foreigncall, :(:{name}), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
         └──      return %1\nend\n"
    )
}

/// The result of a C function that `made` defines, called by a program of its own.
pub(super) fn call(made: &Dylib, name: &str, x: i64) -> Result<i64, String> {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let main =
        dylib(made.session(), &format!("main {}", CALLS.fetch_add(1, Ordering::Relaxed)), &program(name));
    main.link_against(made).unwrap();
    let result = match main.func::<(i64,), i64>("f") {
        Ok(f) => f.call((x,)).map_err(|error| error.to_string()),
        Err(error) => Err(whole(&error)),
    };
    made.session().close_dylibs(&[&main], Dependants::Keep).unwrap();
    result
}

pub(super) fn whole(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Defines a variable of the test as a C symbol.
pub(super) fn define_variable(dylib: &Dylib, name: &str, variable: &'static AtomicI64) {
    dylib.define_c_symbol(name, std::ptr::from_ref(variable).cast()).unwrap();
}

const WEAK: &str = "__attribute__((weak)) long pick(void) { return 1; }\n\
                    long (*pointer)(void) = pick; long first(long x) { return pick() * 10 + pointer(); }";

#[test]
fn a_weak_symbol_that_is_overridden_fails_nothing() {
    extern "C" fn three() -> i64 {
        3
    }
    let strong = c("long pick(void) { return 2; } long second(long x) { return pick(); }");
    let session = session(Workers::Caller);
    // Before and after the definition that overrides it, and by a symbol of the host.
    let before = session.create_dylib("before").unwrap();
    before.add_process_symbols(|_| true).unwrap();
    before.add_object("weak.o", &c(WEAK)).unwrap();
    before.add_object("strong.o", &strong).unwrap();
    assert_eq!((call(&before, "first", 0), call(&before, "second", 0)), (Ok(22), Ok(2)));
    let after = session.create_dylib("after").unwrap();
    after.add_process_symbols(|_| true).unwrap();
    after.add_object("strong.o", &strong).unwrap();
    after.add_object("weak.o", &c(WEAK)).unwrap();
    assert_eq!((call(&after, "first", 0), call(&after, "second", 0)), (Ok(22), Ok(2)));
    let host = session.create_dylib("host").unwrap();
    host.add_process_symbols(|_| true).unwrap();
    host.define_c_symbol("pick", three as *const ()).unwrap();
    host.add_object("weak.o", &c(WEAK)).unwrap();
    assert_eq!(call(&host, "first", 0), Ok(33));
    // Its own where there is no other.
    let alone = session.create_dylib("alone").unwrap();
    alone.add_process_symbols(|_| true).unwrap();
    alone.add_object("weak.o", &c(WEAK)).unwrap();
    assert_eq!(call(&alone, "first", 0), Ok(11));
}

#[test]
fn of_equal_definitions_of_files_there_is_one_variable() {
    let source = |name: &str| {
        format!(
            "inline long *counter() {{ static long n; return &n; }}\n\
             template <typename T> struct held {{ static T value; }}; template <typename T> T held<T>::value = 100;\n\
             extern \"C\" long {name}(long x) {{ return (*counter() += x) + (held<long>::value += x); }}"
        )
    };
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_library("libstdc++.so.6").unwrap();
    made.add_object("one.o", &cpp(&source("one"))).unwrap();
    made.add_object("two.o", &cpp(&source("two"))).unwrap();
    assert_eq!(
        (call(&made, "one", 1), call(&made, "two", 1), call(&made, "one", 1)),
        (Ok(102), Ok(104), Ok(106))
    );
}

#[test]
fn hidden_symbols_are_seen_in_their_dylib_alone() {
    let hidden = "__attribute__((visibility(\"hidden\")))";
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_object(
        "inner.o",
        &c(&format!(
            "{hidden} long inner(long x) {{ return x + 1; }} long one(long x) {{ return inner(x); }}"
        )),
    )
    .unwrap();
    made.add_object(
        "outer.o",
        &c(&format!("{hidden} long inner(long); long outer(long x) {{ return inner(x) * 10; }}")),
    )
    .unwrap();
    // A second one is its file's own.
    made.add_object(
        "own.o",
        &c(&format!(
            "{hidden} long inner(long x) {{ return x + 100; }} long own(long x) {{ return inner(x); }}"
        )),
    )
    .unwrap();
    assert_eq!(
        (call(&made, "outer", 1), call(&made, "own", 1), call(&made, "one", 1)),
        (Ok(20), Ok(101), Ok(2))
    );
    assert!(call(&made, "inner", 1).unwrap_err().contains("inner"));
    let none = made.add_object("none.o", &c(&format!("{hidden} long only(long x) {{ return x; }}")));
    assert!(matches!(none, Err(SessionError::NothingDefined)));
}

/// The compiler's library for features of the processor is hidden, as an archive.
#[test]
fn a_function_is_chosen_by_features_of_the_processor() {
    let source = "static long plain(long x) { return x; } static long wide(long x) { return x * 2; }\n\
                  static void *choose(void) { __builtin_cpu_init(); return __builtin_cpu_supports(\"sse2\") ? wide : plain; }\n\
                  long chosen(long) __attribute__((ifunc(\"choose\"))); long user(long x) { return chosen(x) + 1; }";
    let library = Command::new("gcc").arg("-print-libgcc-file-name").output().unwrap().stdout;
    let library = std::fs::read(String::from_utf8(library).unwrap().trim()).unwrap();
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_archive("libgcc.a", &library).unwrap();
    made.add_object("chosen.o", &c(source)).unwrap();
    assert_eq!(call(&made, "user", 21), Ok(43));
}

#[test]
fn files_of_one_call_may_need_each_other_and_others_say_that_they_wait() {
    let odd = c("long even(long); long odd(long n) { return n ? even(n - 1) : 0; }");
    let even = c("long odd(long); long even(long n) { return n ? odd(n - 1) : 1; }");
    let session = session(Workers::Caller);
    let together = session.create_dylib("together").unwrap();
    together.add_process_symbols(|_| true).unwrap();
    together.add_objects([("odd.o", odd.as_slice()), ("even.o", even.as_slice())]).unwrap();
    assert_eq!(call(&together, "odd", 7), Ok(1));
    let apart = session.create_dylib("apart").unwrap();
    apart.add_process_symbols(|_| true).unwrap();
    apart.add_object("odd.o", &odd).unwrap();
    apart.add_object("even.o", &even).unwrap();
    assert!(call(&apart, "odd", 7).is_err());
}

static ORDER: AtomicI64 = AtomicI64::new(0);

/// Takes the digit of each part: what runs at loading and unloading, in which order.
const LIFE: &str = "extern long order; static void add(long n) { order = order * 10 + n; }\n\
    struct made { long n; made(long x) : n(x) { add(n); } ~made() { add(n + 4); } };\n\
    static made first(1); static made second(2);\n\
    __attribute__((constructor(200))) static void early() { add(9); }\n\
    __attribute__((destructor)) static void end() { add(7); }\n\
    __attribute__((destructor(200))) static void last() { add(8); }\n\
    extern \"C\" long use(long x) { return x; }";

#[test]
fn finalisers_run_when_the_tracker_removes_the_file() {
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_library("libstdc++.so.6").unwrap();
    define_variable(&made, "order", &ORDER);
    let tracker = made.create_tracker(OnDrop::Keep).unwrap();
    made.tracked_by(&tracker).add_object("life.o", &cpp(LIFE)).unwrap();
    assert_eq!(ORDER.load(Ordering::Relaxed), 0, "nothing runs before the file is linked");
    assert_eq!(call(&made, "use", 5), Ok(5));
    assert_eq!(ORDER.swap(0, Ordering::Relaxed), 912);
    tracker.remove(Dependants::Keep).unwrap();
    session.runtime().free_retired();
    // As `dlclose`: functions by falling priority, then objects in the reverse order.
    assert_eq!(ORDER.swap(0, Ordering::Relaxed), 7865);
    assert!(call(&made, "use", 5).is_err());
}

/// Functions that a listener has been told of, and how many are still loaded.
#[derive(Default)]
struct Names {
    seen: Mutex<Vec<String>>,
    loaded: AtomicI64,
}

impl CodeListener for Names {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        if unit.is_object() {
            self.loaded.fetch_add(1, Ordering::Relaxed);
            self.seen.lock().unwrap().extend(unit.functions().map(|function| function.name().to_owned()));
        }
    }
    fn freed(&self, unit: &Arc<CodeUnit>) {
        self.loaded.fetch_sub(i64::from(unit.is_object()), Ordering::Relaxed);
    }
}

#[test]
fn debuggers_and_profilers_see_each_function() {
    let session = session(Workers::Caller);
    let names = Arc::new(Names::default());
    session.listen(names.clone());
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    let tracker = made.create_tracker(OnDrop::Keep).unwrap();
    let source = "__attribute__((noinline)) static long inner(long x) { return x * x; }\n\
                  long outer(long x) { return inner(x) + 1; } long same(long) __attribute__((alias(\"outer\")));";
    made.tracked_by(&tracker).add_object("named.o", &c(source)).unwrap();
    assert_eq!(call(&made, "outer", 3), Ok(10));
    let mut seen = names.seen.lock().unwrap().clone();
    seen.sort();
    assert_eq!(seen, ["inner", "outer"]);
    assert_eq!(names.loaded.load(Ordering::Relaxed), 1);
    tracker.remove(Dependants::Keep).unwrap();
    session.runtime().free_retired();
    assert_eq!(names.loaded.load(Ordering::Relaxed), 0);
}

#[test]
fn a_thousand_files_leave_nothing() {
    let source = "#include <stdexcept>\n#include <string>\n\
        static thread_local std::string own = \"long enough for memory of its own\";\n\
        static std::string made = \"also long enough for memory of its own\";\n\
        static long pick(long x) { return x * 2; }\n\
        extern \"C\" { typedef long (*function)(long); static function choose() { return pick; }\n\
        long chosen(long) __attribute__((ifunc(\"choose\"))); }\n\
        static char zeros[1 << 20];\n\
        extern \"C\" long use(long x) {\n\
            zeros[x * 1000]++;\n\
            try { if (x) throw std::runtime_error(own + made); } catch (std::exception &e) { return chosen(x) + std::string(e.what()).size(); }\n\
            return 0; }";
    let object = compiled("made.cpp", source, &["-c"]);
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_library("libstdc++.so.6").unwrap();
    let once = || {
        let tracker = made.create_tracker(OnDrop::Keep).unwrap();
        made.tracked_by(&tracker).add_object("made.o", &object).unwrap();
        assert_eq!(call(&made, "use", 7), Ok(14 + 71));
        tracker.remove(Dependants::Keep).unwrap();
        session.runtime().free_retired();
    };
    (0..200).for_each(|_| once());
    let (memory, code) = (resident(), session.stats().code.in_use);
    (0..1000).for_each(|_| once());
    let (grown, more) = (resident().saturating_sub(memory), session.stats().code.in_use.saturating_sub(code));
    assert!(grown < 8 << 20, "{grown} bytes more than before");
    assert_eq!(more, 0, "bytes of code more than before");
}

/// Bytes of memory of the process.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn data_of_files_has_an_address() {
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    let tracker = made.create_tracker(OnDrop::Keep).unwrap();
    made.tracked_by(&tracker)
        .add_object("data.o", &c("long data = 17; long get(long x) { return data; }"))
        .unwrap();
    let symbol = made.c_symbol("data").unwrap();
    assert_eq!(call(&made, "get", 0), Ok(17));
    let address = symbol.address().cast::<i64>().cast_mut();
    assert!(address.is_aligned());
    // What is held stays when it is removed.
    tracker.remove(Dependants::Keep).unwrap();
    assert!(made.c_symbol("data").is_err());
    assert_ne!(made.c_symbol("strlen").unwrap().address(), std::ptr::null());
    let error = made.c_symbol("nobody_has_this").unwrap_err();
    assert!(error.to_string().contains("nobody_has_this"), "{error}");
    let main = dylib(&session, "main", "function g()::Int64\n1 ─ return 1\nend\n");
    assert!(matches!(main.c_symbol("g()"), Err(SessionError::NotC { .. })));
}

/// Low code has the address of data of an object file, and of the host's.
#[test]
fn programs_read_data_by_its_name() {
    static OF_HOST: AtomicI64 = AtomicI64::new(23);
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_object("data.o", &c("long of_file = 17; long touch(long x) { return of_file += x; }")).unwrap();
    define_variable(&made, "of_host", &OF_HOST);
    let source = |name: &str| {
        format!(
            "low function {name}()::i64\n\
             1 ─ %1 = load(foreign_addr(:{name}); offset = 0, region = raw, align = 8)::i64\n\
             └──      return %1\nend\n"
        )
    };
    for (name, value) in [("of_file", 17), ("of_host", 23)] {
        let main = session.create_dylib(&format!("main {name}")).unwrap();
        main.add_process_symbols(|_| true).unwrap();
        main.link_against(&made).unwrap();
        let text = source(name).replace(&format!("function {name}"), "function f");
        main.define(main.read("low.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}")))
            .unwrap();
        let function = main.function("f").unwrap_or_else(|error| panic!("{}", whole(&error)));
        assert_eq!(function.untyped().unwrap().call(&[]).unwrap(), [value]);
    }
}

/// Types of exceptions are the same in all files.
#[test]
fn exceptions_pass_from_file_to_file() {
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_library("libstdc++.so.6").unwrap();
    let risky = "struct problem { long n; virtual ~problem() {} };\n\
                 long risky(long x) { problem p; p.n = x; if (x) throw p; return 1; }";
    let careful = "struct problem { long n; virtual ~problem() {} }; long risky(long);\n\
                   extern \"C\" long careful(long x) { try { return risky(x); } catch (problem &p) { return p.n * 10; } }";
    made.add_object("risky.o", &cpp(risky)).unwrap();
    made.add_object("careful.o", &cpp(careful)).unwrap();
    assert_eq!((call(&made, "careful", 0), call(&made, "careful", 6)), (Ok(1), Ok(60)));
}

/// More than the engine's code memory has.
#[test]
fn large_data_has_memory_of_its_own() {
    let source = "static char zeros[700 << 20]; char *last = zeros + sizeof zeros - 1; long large(long x) { zeros[x * 100000]++; return *last += x; }";
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    let tracker = made.create_tracker(OnDrop::Keep).unwrap();
    let before = (session.stats().code.in_use, resident());
    made.tracked_by(&tracker).add_object("large.o", &c(source)).unwrap();
    assert_eq!((call(&made, "large", 3), call(&made, "large", 4)), (Ok(3), Ok(7)));
    assert!(resident() < before.1 + (100 << 20), "memory is taken when it is touched");
    tracker.remove(Dependants::Keep).unwrap();
    session.runtime().free_retired();
    assert!(session.stats().code.in_use <= before.0 + 100_000);
}

#[test]
fn destructors_of_threads_run_while_the_code_is_there() {
    static ENDED: AtomicI64 = AtomicI64::new(0);
    let source = "extern long ended; struct own { long n = 0; ~own() { ended += n; } };\n\
                  static thread_local own mine; extern \"C\" long use(long x) { return mine.n += x; }";
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    define_variable(&made, "ended", &ENDED);
    made.add_library("libstdc++.so.6").unwrap();
    let tracker = made.create_tracker(OnDrop::Keep).unwrap();
    made.tracked_by(&tracker).add_object("threads.o", &cpp(source)).unwrap();
    let used = |x| call(&made, "use", x);
    std::thread::scope(|scope| {
        // The end of a scope does not wait for the end of its threads.
        scope.spawn(|| assert_eq!((used(5), used(6)), (Ok(5), Ok(11)))).join().unwrap();
    });
    assert_eq!(ENDED.load(Ordering::Relaxed), 11);
    // Of the thread that removes the file they run then; of others they never do.
    let (give, take) = std::sync::mpsc::channel::<()>();
    let (ready, wait) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            assert_eq!(used(1000), Ok(1000));
            ready.send(()).unwrap();
            take.recv().unwrap();
        });
        wait.recv().unwrap();
        assert_eq!(call(&made, "use", 100), Ok(100));
        tracker.remove(Dependants::Keep).unwrap();
        session.runtime().free_retired();
        assert_eq!(ENDED.load(Ordering::Relaxed), 111);
        give.send(()).unwrap();
        thread.join().unwrap();
    });
    assert_eq!(ENDED.load(Ordering::Relaxed), 111);
}

/// Storage in the blocks of all threads: of threads that run when the file is loaded, and of later ones.
#[test]
fn thread_local_storage_of_programs_is_in_each_thread_and_given_back() {
    let source = "__thread long own = 5; static __thread long zero[8]; long use(long x) { zero[3] += x; return own += zero[3]; }";
    let object = compiled("made.c", source, &["-fPIE", "-c"]);
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    let (give, take) = std::sync::mpsc::channel::<Dylib>();
    let running = std::thread::spawn(move || {
        let made = take.recv().unwrap();
        (call(&made, "use", 1), call(&made, "use", 2))
    });
    let tracker = made.create_tracker(OnDrop::Keep).unwrap();
    made.tracked_by(&tracker).add_object("made.o", &object).unwrap();
    assert_eq!((call(&made, "use", 10), call(&made, "use", 10)), (Ok(15), Ok(35)));
    give.send(made.clone()).unwrap();
    assert_eq!(running.join().unwrap(), (Ok(6), Ok(9)));
    let later = made.clone();
    assert_eq!(std::thread::spawn(move || call(&later, "use", 3)).join().unwrap(), Ok(8));
    let other = session.create_dylib("other").unwrap();
    other.add_object("made.o", &object).unwrap();
    assert_eq!((call(&other, "use", 1), call(&made, "use", 0)), (Ok(6), Ok(55)));
    other.clear(Dependants::Keep).unwrap();
    tracker.remove(Dependants::Keep).unwrap();
    for _ in 0..1000 {
        let tracker = made.create_tracker(OnDrop::Keep).unwrap();
        made.tracked_by(&tracker).add_object("made.o", &object).unwrap();
        assert_eq!(call(&made, "use", 10), Ok(15));
        tracker.remove(Dependants::Keep).unwrap();
        session.runtime().free_retired();
    }
    // There is room for some hundred bytes more.
    let large = compiled(
        "made.c",
        "__thread long own[4000]; long use(long x) { return own[x] += x; }",
        &["-fno-pic", "-c"],
    );
    made.add_object("large.o", &large).unwrap();
    let refused = call(&made, "use", 1).unwrap_err();
    assert!(
        refused.contains("large.o") && refused.contains("32000 bytes") && refused.contains("-fPIC"),
        "{refused}"
    );
}

#[test]
fn files_that_are_not_right_are_refused() {
    let object = c("static const char *names[] = {\"a\", \"b\"}; long get(long x) { return names[x][0]; }");
    let session = session(Workers::Caller);
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    let refused = |bytes: &[u8]| whole(&made.add_object("bad.o", bytes).unwrap_err());
    for end in (0..object.len()).step_by(7) {
        assert!(refused(&object[..end]).contains("bad.o"), "the first {end} bytes");
    }
    let library = compiled("made.c", "long get(long x) { return x; }", &["-shared"]);
    assert!(refused(&library).contains("add_library"), "{}", refused(&library));
    assert!(refused(b"!<arch>\n").contains("bad.o"));
    assert!(matches!(made.add_object("none.o", &c("static long x;")), Err(SessionError::NothingDefined)));
    made.add_object("good.o", &object).unwrap();
    assert!(whole(&made.add_object("again.o", &object).unwrap_err()).contains("get"));
    assert_eq!(call(&made, "get", 1), Ok(98));
    let closed = Session::new(brolga::Options::new(), Workers::Caller).unwrap();
    let error = closed.create_dylib("closed").unwrap().add_object("good.o", &object).unwrap_err();
    assert!(error.to_string().contains("Dylib::add_object"), "{error}");
}

/// Bytes of a good file that are changed: refused or loaded, and nothing else. What is loaded is not run.
#[test]
fn changed_bytes_are_refused_or_placed() {
    use brolga_jit::{Jit, JitOptions, ObjectFile};
    let object = c("extern long far; __thread long own = 5; static long (*table[])(long);\n\
         __attribute__((weak)) long get(long x) { switch (x) { case 0: return own; case 1: return far; case 2: return 9; case 3: return -1; case 4: return 77; } return table[x](x); }\n\
         static long (*table[])(long) = {get, get};");
    let jit = Jit::new(brolga_runtime::Runtime::new(Default::default()), JitOptions::default()).unwrap();
    let mut changed = object.clone();
    let mut placed = 0;
    for at in 0..object.len() {
        for value in [0, 1, 0x7f, 0xff, object[at] ^ 4] {
            changed[at] = value;
            if let Ok(file) = ObjectFile::parse("changed.o", &changed) {
                placed +=
                    usize::from(jit.load_object(&file, &Default::default(), &Default::default()).is_ok());
            }
        }
        changed[at] = object[at];
    }
    assert_eq!(changed, object);
    let _ = placed;
}

#[test]
fn a_file_that_misses_a_symbol_is_linked_when_it_is_defined() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.add_object("user.o", &c("long later(long); long user(long x) { return later(x) + 1; }")).unwrap();
    let failed = call(&main, "user", 1).unwrap_err();
    assert!(failed.contains("later"), "{failed}");
    main.add_object("later.o", &c("long later(long x) { return 10 * x; }")).unwrap();
    assert_eq!(call(&main, "user", 4), Ok(41));
    // A program that has missed it finds it as well.
    let other = session.create_dylib("other").unwrap();
    other
        .add_object("user.o", &c("long missing(void); long asks(long x) { return missing() + x; }"))
        .unwrap();
    let caller = dylib(&session, "caller", "");
    caller.link_against(&other).unwrap();
    let read = caller.read_late("f.jlir", program("asks").as_bytes()).unwrap();
    caller.define(read.lazy()).unwrap();
    let f = caller.func::<(i64,), i64>("f").unwrap();
    assert!(f.call((1,)).unwrap_err().to_string().contains("missing"));
    other.add_object("missing.o", &c("long missing(void) { return 7; }")).unwrap();
    assert_eq!(f.call((1,)), Ok(8));
}
