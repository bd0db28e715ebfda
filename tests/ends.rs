//! Threads and processes that end in the middle of compiled code: `exit`, `quick_exit`, `abort` and `pthread_exit`.
//!
//! Each case runs in its own process, which is this test again with the case's name in its environment, and has to end within
//! a time limit.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(
    clippy::disallowed_methods,
    reason = "the test ends processes in the middle of compiled code: cases are named by a variable, and a child that hangs is killed after a time"
)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use brolga::observe::UnwindTables;
use brolga::{Engine, OptLevel, Options, Program};

const PROGRAM: &str = "\
mutable struct Kept
    x::Int64
end

function code(x::Int64)::Int64
1 ─ %1 = %new(Main.Kept, x)::Main.Kept
│   %2 = dynamic Main.keep(%1)::Any
│   %9 = Core.typeassert(%2, Int64)::Int64
└──      return %9
end
function keep(b::Main.Kept)::Int64
1 ─ %1 = Base.getfield(b, :x)::Int64
└──      return %1
end

function call_exit(x::Int64)::Int64
1 ─ %1 = %new(Main.Kept, x)::Main.Kept
│   %2 = Base.trunc_int(Int32, x)::Int32
│        $(Expr(:foreigncall, :(:exit), Nothing, svec(Int32), 0, :(:ccall), :(%2)))::Nothing
│   %4 = dynamic Main.keep(%1)::Any
│   %9 = Core.typeassert(%4, Int64)::Int64
└──      return %9
end
function call_quick_exit(x::Int64)::Int64
1 ─ %1 = %new(Main.Kept, x)::Main.Kept
│   %2 = Base.trunc_int(Int32, x)::Int32
│        $(Expr(:foreigncall, :(:quick_exit), Nothing, svec(Int32), 0, :(:ccall), :(%2)))::Nothing
│   %4 = dynamic Main.keep(%1)::Any
│   %9 = Core.typeassert(%4, Int64)::Int64
└──      return %9
end
function call_abort(x::Int64)::Int64
1 ─ %1 = %new(Main.Kept, x)::Main.Kept
│        $(Expr(:foreigncall, :(:abort), Nothing, svec(), 0, :(:ccall)))::Nothing
│   %3 = dynamic Main.keep(%1)::Any
│   %9 = Core.typeassert(%3, Int64)::Int64
└──      return %9
end
function call_pthread_exit(x::Int64)::Int64
1 ─ %1 = %new(Main.Kept, x)::Main.Kept
│   %2 = Base.bitcast(Ptr{Nothing}, 0)::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:pthread_exit), Nothing, svec(Ptr{Nothing}), 0, :(:ccall), :(%2)))::Nothing
│   %4 = dynamic Main.keep(%1)::Any
│   %9 = Core.typeassert(%4, Int64)::Int64
└──      return %9
end

function handler(argument::Ptr{Nothing})::Nothing
1 ─ %1 = invoke Main.code(7::Int64)::Int64
│        $(Expr(:foreigncall, :(:putchar), Int32, svec(Int32), 0, :(:ccall), 72))::Int32
└──      return nothing
end
function on_signal(signal::Int32)::Nothing
1 ─      $(Expr(:foreigncall, :(:_exit), Nothing, svec(Int32), 0, :(:ccall), 9))::Nothing
└──      return nothing
end
function at_exit(x::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:handler), Nothing, svec(Ptr{Nothing}), :(:ccall)))::Ptr{Nothing}
│   %2 = Base.bitcast(Ptr{Nothing}, 0)::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:__cxa_atexit), Int32, svec(Ptr{Nothing}, Ptr{Nothing}, Ptr{Nothing}), 0, :(:ccall), :(%1), :(%2), :(%2)))::Int32
│   %4 = invoke Main.call_exit(x::Int64)::Int64
└──      return %4
end
function at_quick_exit(x::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:on_signal), Nothing, svec(Int32), :(:ccall)))::Ptr{Nothing}
│   %2 = Base.bitcast(Ptr{Nothing}, 0)::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:__cxa_at_quick_exit), Int32, svec(Ptr{Nothing}, Ptr{Nothing}), 0, :(:ccall), :(%1), :(%2)))::Int32
│   %4 = invoke Main.call_quick_exit(x::Int64)::Int64
└──      return %4
end
function at_abort(x::Int64)::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:on_signal), Nothing, svec(Int32), :(:ccall)))::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:signal), Ptr{Nothing}, svec(Int32, Ptr{Nothing}), 0, :(:ccall), 6, :(%1)))::Ptr{Nothing}
│   %3 = invoke Main.call_abort(x::Int64)::Int64
└──      return %3
end

function compare(a::Ptr{Int64}, b::Ptr{Int64})::Int32
1 ─ %1 = Base.pointerref(a, 1, 1)::Int64
│   %2 = invoke Main.call_exit(%1::Int64)::Int64
│   %3 = Base.trunc_int(Int32, %2)::Int32
└──      return %3
end
function compare_ending(a::Ptr{Int64}, b::Ptr{Int64})::Int32
1 ─ %1 = invoke Main.call_pthread_exit(1::Int64)::Int64
│   %2 = Base.trunc_int(Int32, %1)::Int32
└──      return %2
end
function sort(p::Ptr{Int64})::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:compare), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:qsort), Nothing, svec(Ptr{Int64}, UInt64, UInt64, Ptr{Nothing}), 0, :(:ccall), :(p), 0x0000000000000002, 0x0000000000000008, :(%1)))::Nothing
└──      return 0
end
function sort_ending(p::Ptr{Int64})::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:compare_ending), Int32, svec(Ptr{Int64}, Ptr{Int64}), :(:ccall)))::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:qsort), Nothing, svec(Ptr{Int64}, UInt64, UInt64, Ptr{Nothing}), 0, :(:ccall), :(p), 0x0000000000000002, 0x0000000000000008, :(%1)))::Nothing
└──      return 0
end
";

/// The case that this process is to run.
const CASE: &str = "BROLGA_ENDS";

/// Runs cases, each with the status that it ends with, `None` for a signal, and what it prints.
fn expect(cases: &[(&str, Option<i32>, &str)]) {
    for (case, status, printed) in cases {
        for level in ["0", "2"] {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["run_case", "--exact", "--nocapture", "--test-threads=1"])
                .env(CASE, format!("{case} {level}"))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let started = Instant::now();
            let ended = loop {
                if let Some(ended) = child.try_wait().unwrap() {
                    break ended;
                }
                if started.elapsed() > Duration::from_secs(60) {
                    child.kill().unwrap();
                    panic!("{case} at O{level} does not end");
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(ended.code(), *status, "{case} at O{level}: {ended:?}, {text}");
            assert!(text.contains(printed), "{case} at O{level}: {text}");
        }
    }
}

#[test]
fn exit_ends_the_process_with_its_status_and_runs_handlers() {
    expect(&[
        ("call_exit", Some(3), ""),
        ("exit on another thread", Some(3), ""),
        ("sort", Some(3), ""),
        ("at_exit", Some(3), "H"),
        ("at_exit on another thread", Some(3), "H"),
        ("at_exit while others collect", Some(3), "H"),
        ("exit in a scope", Some(4), ""),
    ]);
}

#[test]
fn quick_exit_and_abort_end_the_process() {
    expect(&[
        ("call_quick_exit", Some(3), ""),
        ("at_quick_exit", Some(9), ""),
        ("call_abort", None, ""),
        ("at_abort", Some(9), ""),
    ]);
}

#[test]
fn pthread_exit_ends_the_thread_and_leaves_nothing() {
    expect(&[
        ("threads end", Some(0), "ended"),
        ("threads end with unwind tables", Some(0), "ended"),
        ("threads end in callbacks", Some(0), "ended"),
    ]);
}

fn collect(engine: &Engine) {
    engine.runtime().enter(|scope| scope.collect()).unwrap();
}

unsafe extern "C" {
    fn pthread_create(
        thread: *mut usize,
        attributes: *const c_void,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> i32;
    fn pthread_join(thread: usize, result: *mut *mut c_void) -> i32;
}

/// A thread of C's making.
fn run_and_join(body: Box<dyn FnOnce() + Send>) {
    extern "C" fn start(body: *mut c_void) -> *mut c_void {
        // SAFETY: the pointer comes from the box below, once.
        let body = unsafe { Box::from_raw(body.cast::<Box<dyn FnOnce() + Send>>()) };
        body();
        std::ptr::null_mut()
    }
    let body = Box::into_raw(Box::new(body));
    let mut thread = 0;
    // SAFETY: the start routine takes what it is given, and the thread is joined once.
    unsafe {
        assert_eq!(pthread_create(&mut thread, std::ptr::null(), start, body.cast()), 0);
        assert_eq!(pthread_join(thread, std::ptr::null_mut()), 0);
    }
}

/// Not a test by itself: runs the case that the environment names.
#[test]
fn run_case() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (case, level) = case.rsplit_once(' ').unwrap();
    let level = if level == "0" { OptLevel::O0 } else { OptLevel::O2 };
    let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
    if case.contains("tables") {
        engine.listen(Arc::new(UnwindTables::new()));
    }
    let unit = engine.compile(&Program::read("ends.jlir", PROGRAM.as_bytes()).unwrap()).unwrap();
    let call = |name: &str| {
        let func = unit.func::<(i64,), i64>(name).unwrap();
        move |x: i64| func.call((x,))
    };
    let sort = |name: &str| {
        let func = unit.func::<(*const i64,), i64>(name).unwrap();
        move || {
            let values = [3i64, 3];
            func.call((values.as_ptr(),)).map(drop)
        }
    };
    match case {
        "exit on another thread" => {
            let call = call("call_exit");
            std::thread::spawn(move || call(3)).join().unwrap().unwrap();
        }
        "at_exit on another thread" => {
            let call = call("at_exit");
            std::thread::spawn(move || call(3)).join().unwrap().unwrap();
        }
        "at_exit while others collect" => {
            let code = call("code");
            std::thread::spawn(move || {
                loop {
                    code(1).unwrap();
                    collect(&engine);
                }
            });
            std::thread::sleep(Duration::from_millis(20));
            call("at_exit")(3).unwrap();
        }
        "exit in a scope" => {
            engine.runtime().enter(|_| std::process::exit(4)).unwrap();
        }
        "sort" => sort("sort")().unwrap(),
        "threads end" | "threads end with unwind tables" | "threads end in callbacks" => {
            let went_on = Arc::new(AtomicU32::new(0));
            for _ in 0..20 {
                let went_on = went_on.clone();
                let body: Box<dyn FnOnce() + Send> = match case.contains("callbacks") {
                    true => {
                        let sort = sort("sort_ending");
                        Box::new(move || {
                            let _ = sort();
                            went_on.fetch_add(1, Ordering::Relaxed);
                        })
                    }
                    false => {
                        let call = call("call_pthread_exit");
                        Box::new(move || {
                            let _ = call(1);
                            went_on.fetch_add(1, Ordering::Relaxed);
                        })
                    }
                };
                run_and_join(body);
            }
            assert_eq!(went_on.load(Ordering::Relaxed), 0, "the threads have ended");
            // No thread blocks another, and none keeps code.
            collect(&engine);
            assert_eq!(call("code")(5).unwrap(), 5);
            drop(unit);
            engine.runtime().free_retired();
            assert_eq!(engine.runtime().retired(), 0);
            println!("ended");
        }
        name => drop(call(name)(3)),
    }
}

std::thread_local! {
    static JOB: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Runs a job on a stack that the program has made.
fn on_own_stack(job: impl FnOnce() + 'static) {
    extern "C" fn entry() {
        if let Some(job) = JOB.with(|job| job.borrow_mut().take()) {
            job();
        }
    }
    JOB.with(|waiting| *waiting.borrow_mut() = Some(Box::new(job)));
    let mut stack = vec![0u8; 1 << 20];
    // SAFETY: both contexts are made by `getcontext` before they are used, and they and the stack live until the job has returned to here.
    unsafe {
        let mut here: libc::ucontext_t = std::mem::zeroed();
        let mut there: libc::ucontext_t = std::mem::zeroed();
        assert_eq!(libc::getcontext(&mut there), 0);
        there.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        there.uc_stack.ss_size = stack.len();
        there.uc_link = &mut here;
        libc::makecontext(&mut there, entry, 0);
        assert_eq!(libc::swapcontext(&mut here, &there), 0);
    }
}

/// A call on a stack that the program has made is an error, whether the thread has called before or not, and the thread can call as before.
#[test]
fn calls_on_stacks_of_the_program_are_refused() {
    let engine = Engine::new(Options::new()).unwrap();
    let text = "function f(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 1)::Int64\n└──      return %1\nend\n";
    let unit = engine.compile(&Program::read("f.jlir", text.as_bytes()).unwrap()).unwrap();
    for is_attached in [false, true] {
        let f = unit.func::<(i64,), i64>("f").unwrap();
        let body = move || {
            if is_attached {
                assert_eq!(f.call((1,)), Ok(2));
            }
            let g = f.clone();
            on_own_stack(move || {
                let refused = g.call((1,)).unwrap_err().to_string();
                assert!(refused.contains("on the stack that the system made for the thread"), "{refused}");
            });
            assert_eq!(f.call((1,)), Ok(2));
        };
        std::thread::spawn(body).join().unwrap();
    }
}

#[path = "support/doors.rs"]
mod doors;
