//! Limits belong to the call that set them: deadlines, tokens, dropped futures and redefinitions beside calls without limits, which all
//! succeed, whoever compiles what they share.
#![expect(
    clippy::disallowed_methods,
    reason = "calls are cancelled after some time, at no moment in particular; nothing waits for it"
)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use brolga::limits::{Cancel, GuestOptions, Guests};
use brolga::session::{Dylib, Session, Workers};
use brolga::{CallError, Limits, Options};

/// Functions that all threads call.
const FUNCTIONS: usize = 4;

/// The statements of each: compiling it takes longer than the limits.
const ROWS: usize = 3000;

fn long(name: &str, add: usize) -> String {
    let mut text = format!("function {name}(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, {add})::Int64\n");
    for i in 2..ROWS {
        let op = ["add_int", "xor_int", "mul_int", "sub_int"][i % 4];
        let other = if i % 4 == 2 { "x".to_owned() } else { i.to_string() };
        text += &format!("│   %{i} = Base.{op}(%{}, {other})::Int64\n", i - 1);
    }
    text + &format!("└──      return %{}\nend\n", ROWS - 1)
}

fn call(main: &Dylib, name: &str) -> Result<i64, String> {
    let func = main.func::<(i64,), i64>(name).map_err(|error| error.to_string())?;
    func.call((1,)).map_err(|error| error.to_string())
}

/// What a thread with limits does: its own result may be that it has ended.
fn disturb(session: &Session, main: &Dylib, kind: usize, name: &str) {
    let soon = Duration::from_millis(1 + kind as u64 % 3);
    match kind % 4 {
        0 => {
            let limits = Limits::new().timeout(soon);
            let _ended = session.runtime().limited(&limits, || call(main, name).map(drop));
        }
        1 => {
            let cancel = Cancel::new();
            let limits = Limits::new().cancelled_by(&cancel);
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    std::thread::sleep(soon);
                    cancel.cancel();
                });
                let _ended = session.runtime().limited(&limits, || call(main, name).map(drop));
            });
        }
        2 => {
            let Ok(func) = main.func::<(i64,), i64>(name) else { return };
            let guests = Guests::new(GuestOptions { most: 2, slice: soon, ..GuestOptions::default() });
            let mut future = func.call_async(&guests, &Limits::new(), (1,));
            let polled = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
            let failed = matches!(polled, std::task::Poll::Ready(Err(ref error)) if !matches!(error, CallError::Ended(_)));
            assert!(!failed, "{polled:?}");
        }
        _ => {
            let text = long(name, kind);
            main.redefine(main.read("again", text.as_bytes()).unwrap().lazy()).unwrap();
        }
    }
}

fn round(workers: Workers) {
    let session = Session::new(Options::new(), workers).unwrap();
    let main = session.create_dylib("main").unwrap();
    let names: Vec<String> = (0..FUNCTIONS).map(|n| format!("f{n}")).collect();
    let text: String = names.iter().map(|name| long(name, 1)).collect();
    main.define(main.read("program", text.as_bytes()).unwrap().lazy()).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..8 {
            let (session, main, names) = (&session, &main, &names);
            threads.spawn(move || {
                for n in 0..FUNCTIONS {
                    disturb(session, main, thread, &names[(thread + n) % FUNCTIONS]);
                }
            });
            threads.spawn(move || {
                for n in 0..FUNCTIONS {
                    let name = &names[(thread / 2 + n) % FUNCTIONS];
                    let called = call(main, name);
                    assert!(called.is_ok(), "`{name}` without limits: {called:?}");
                }
            });
        }
    });
}

fn rounds(count: usize) {
    for _ in 0..count {
        round(Workers::Caller);
        round(Workers::Pool(1));
        round(Workers::Pool(3));
    }
}

/// Iterations in the suite: some seconds.
const ROUNDS: usize = 3;

#[test]
fn limits_of_others_fail_no_call() {
    rounds(ROUNDS);
}

/// The same for about ten minutes.
#[test]
#[ignore = "takes ten minutes"]
fn limits_of_others_fail_no_call_for_ten_minutes() {
    rounds(1400);
}

/// One thread: a call under limits begins what a call around it waits for, too.
#[test]
fn a_call_that_ends_gives_back_what_others_wait_for() {
    for workers in [Workers::Caller, Workers::Seeded(7)] {
        let session = Session::new(Options::new(), workers).unwrap();
        let main = session.create_dylib("main").unwrap();
        main.define(main.read("program", long("f0", 1).as_bytes()).unwrap().lazy()).unwrap();
        let cancel = Cancel::new();
        let limits = Limits::new().cancelled_by(&cancel);
        let ended = session.runtime().limited(&limits, || {
            cancel.cancel();
            call(&main, "f0")
        });
        assert!(ended.is_err(), "{ended:?}");
        assert!(call(&main, "f0").is_ok());
    }
}
