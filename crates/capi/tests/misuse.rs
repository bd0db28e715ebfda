//! Misuse of the C API for dylibs that can be seen: handles of other sessions, names that are not text, meaningless numbers, handles that outlive what they
//! are of. Each is an error, or works, in any order of freeing, on any thread.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga_capi::c_symbols::*;
use brolga_capi::definitions::*;
use brolga_capi::dependants::*;
use brolga_capi::dylib::*;
use brolga_capi::error::*;
use brolga_capi::exports::*;
use brolga_capi::function::*;
use brolga_capi::generator::*;
use brolga_capi::look_up::*;
use brolga_capi::options::*;
use brolga_capi::promise::*;
use brolga_capi::report::*;
use brolga_capi::session::*;
use brolga_capi::symbols::*;
use brolga_capi::tracker::*;

type Failed = Option<Box<BrolgaError>>;

/// An object of the API, as its owner has it.
fn owned<T>(call: impl FnOnce(Option<&mut MaybeUninit<*mut T>>) -> Failed) -> Box<T> {
    let mut place = MaybeUninit::uninit();
    let error = call(Some(&mut place));
    assert!(error.is_none(), "{error:?}");
    // SAFETY: a function that succeeds has written its output, and returns each result of `Box::into_raw` once.
    unsafe { Box::from_raw(place.assume_init()) }
}

/// Whether a call fails, with its output unchanged.
fn refused<T>(call: impl FnOnce(Option<&mut MaybeUninit<*mut T>>) -> Failed) -> bool {
    let mut place = MaybeUninit::new(ptr::null_mut());
    let failed = call(Some(&mut place)).is_some();
    // SAFETY: it was made with a value.
    failed && unsafe { place.assume_init() }.is_null()
}

fn code(error: Failed) -> BrolgaCode {
    brolga_error_code(error.as_deref())
}

fn session(threads: usize) -> Box<BrolgaSession> {
    let mut options = brolga_options_new();
    // SAFETY: no program of these tests goes through a door.
    assert!(unsafe { brolga_options_allow_doors(Some(&mut options)) }.is_none());
    owned(|place| brolga_session_new(Some(&options), threads, place))
}

fn dylib(session: &BrolgaSession, name: &CStr) -> Box<BrolgaDylib> {
    // SAFETY: the text ends in a zero byte.
    owned(|place| unsafe { brolga_session_empty_dylib(Some(session), name.as_ptr(), place) })
}

const ONE: &str = "function one()::Int64\n1 ─      return 1\nend\n";

fn define(dylib: &BrolgaDylib) -> Failed {
    // SAFETY: the texts are as long as is said.
    unsafe { brolga_dylib_define(Some(dylib), c"one.jlir".as_ptr(), ONE.as_ptr().cast(), ONE.len(), 0) }
}

fn function(dylib: &BrolgaDylib) -> Box<BrolgaFunction> {
    // SAFETY: the text ends in a zero byte.
    owned(|place| unsafe { brolga_dylib_function(Some(dylib), c"one".as_ptr(), place) })
}

fn value(function: &BrolgaFunction) -> i64 {
    let mut place = MaybeUninit::uninit();
    // SAFETY: there are no arguments.
    let error = unsafe { brolga_function_call(Some(function), ptr::null(), 0, Some(&mut place)) };
    assert!(error.is_none(), "{error:?}");
    // SAFETY: the call has succeeded, and the function returns an `Int64`.
    unsafe { place.assume_init().bits.int64 }
}

#[test]
fn handles_of_another_session_are_refused() {
    let (here, there) = (session(0), session(0));
    let (a, b) = (dylib(&here, c"a"), dylib(&there, c"a"));
    let tracker = owned(|place| brolga_dylib_tracker(Some(&b), 0, place));
    let own = owned(|place| brolga_dylib_tracker(Some(&a), 0, place));
    assert!(brolga_dylib_link(Some(&a), Some(&b)).is_some());
    assert!(brolga_dylib_unlink(Some(&a), Some(&b)).is_some());
    assert!(brolga_dylib_end_reexport(Some(&a), Some(&b)).is_some());
    assert!(brolga_tracker_transfer(Some(&own), Some(&tracker)).is_some());
    let both = [Some(&*a), Some(&*b)];
    // SAFETY: the texts end in a zero byte, and the arrays are as long as is said.
    unsafe {
        assert!(brolga_dylib_set_links(Some(&a), both.as_ptr(), 2).is_some());
        assert!(brolga_session_close_dylibs(Some(&here), both.as_ptr(), 2, 3).is_some());
        assert!(brolga_dylib_reexport(Some(&a), Some(&b), 0, ptr::null(), 0).is_some());
        assert!(brolga_dylib_alias(Some(&a), c"f".as_ptr(), Some(&b), c"g".as_ptr()).is_some());
    }
    let tracked = owned(|place| brolga_dylib_tracked_by(Some(&a), Some(&tracker), place));
    assert!(define(&tracked).is_some());
    // Nothing changed.
    assert!(define(&a).is_none() && define(&b).is_none());
    assert_eq!((value(&function(&a)), value(&function(&b))), (1, 1));
}

#[test]
fn names_that_are_no_texts_and_numbers_that_mean_nothing_are_refused() {
    let session = session(0);
    let (main, other) = (dylib(&session, c"main"), dylib(&session, c"other"));
    let bad = c"caf\xe9".as_ptr();
    let (names, mixed) = ([bad], [c"one".as_ptr(), ptr::null()]);
    let address = (&raw const session).cast::<c_void>();
    let file = [BrolgaObjectFile { name: bad, bytes: address, length: 1 }];
    let wrong = |error: Failed| assert_eq!(code(error), BrolgaCode::Argument);
    // SAFETY: the texts end in a zero byte, and the arrays are as long as is said.
    unsafe {
        assert!(refused(|place| brolga_session_empty_dylib(Some(&session), bad, place)));
        assert!(refused(|place| brolga_session_find_dylib(Some(&session), bad, place)));
        assert!(refused(|place| brolga_dylib_request(Some(&main), bad, place)));
        assert!(refused(|place| brolga_dylib_c_symbol(Some(&main), bad, place)));
        assert!(refused(|place| brolga_dylib_read(Some(&main), bad, bad, 4, false, place)));
        wrong(brolga_dylib_remove(Some(&main), bad));
        wrong(brolga_dylib_remove_all(Some(&main), names.as_ptr(), 1));
        wrong(brolga_dylib_remove_all(Some(&main), mixed.as_ptr(), 2));
        wrong(brolga_dylib_reexport(Some(&main), Some(&other), 1, names.as_ptr(), 1));
        wrong(brolga_dylib_reexport(Some(&main), Some(&other), 3, ptr::null(), 0));
        wrong(brolga_dylib_reexport(Some(&main), Some(&other), 0, mixed.as_ptr(), 1));
        wrong(brolga_dylib_alias(Some(&main), c"f".as_ptr(), Some(&other), bad));
        wrong(brolga_dylib_define_c_symbol(Some(&main), bad, address));
        wrong(brolga_dylib_redefine_c_symbol(Some(&main), c"f".as_ptr(), ptr::null(), None));
        wrong(brolga_dylib_add_objects(Some(&main), file.as_ptr(), 1));
        wrong(brolga_dylib_add_objects(Some(&main), ptr::null(), 1));
        wrong(brolga_dylib_functions(Some(&main), mixed.as_ptr(), 2, [ptr::null_mut(); 2].as_mut_ptr()));
        wrong(brolga_dylib_functions(Some(&main), mixed.as_ptr(), 1, ptr::null_mut()));
        wrong(brolga_dylib_set_links(Some(&main), [None].as_ptr(), 1));
        wrong(brolga_session_close_dylibs(Some(&session), [Some(&*main)].as_ptr(), 1, 9));
    }
    wrong(brolga_dylib_clear(Some(&main), 4));
    assert!(refused(|place| brolga_dylib_tracker(Some(&main), 2, place)));
    assert!(define(&main).is_none());
    assert_eq!(value(&function(&main)), 1, "all of it was refused");
}

/// Names that no program could have are names, or refused: nothing of it is a defect.
#[test]
fn strange_names_are_names_or_refused() {
    let session = session(0);
    let (main, other) = (dylib(&session, c"main"), dylib(&session, c"other"));
    assert!(define(&main).is_none());
    let long = "f".repeat(1 << 16);
    let address = (&raw const session).cast::<c_void>();
    let no_defect = |error: Failed, name: &str| {
        let is_defect = code(error) == BrolgaCode::Internal;
        assert!(!is_defect, "{name:?}");
    };
    for name in [
        "",
        " ",
        "#",
        "f(",
        "f)",
        "(",
        "one(",
        "one(Nothing",
        "\n",
        "a.b.",
        ".",
        "one#body",
        "\u{1F426}",
        &long,
    ] {
        let text = std::ffi::CString::new(name).expect("no zero byte");
        let (at, names) = (text.as_ptr(), [text.as_ptr()]);
        // SAFETY: the texts end in a zero byte, and the arrays are as long as is said. What is given is freed.
        unsafe {
            assert!(refused(|place| brolga_dylib_function(Some(&main), at, place)), "{name:?}");
            assert!(refused(|place| brolga_dylib_c_symbol(Some(&main), at, place)), "{name:?}");
            let request = owned(|place| brolga_dylib_request(Some(&main), at, place));
            assert!(refused(|place| brolga_request_wait(Some(&request), place)), "{name:?}");
            no_defect(brolga_dylib_alias(Some(&other), at, Some(&main), c"one".as_ptr()), name);
            no_defect(brolga_dylib_alias(Some(&other), c"g".as_ptr(), Some(&main), at), name);
            no_defect(brolga_dylib_reexport(Some(&other), Some(&main), 1, names.as_ptr(), 1), name);
            no_defect(brolga_dylib_define_c_symbol(Some(&other), at, address), name);
            no_defect(brolga_dylib_remove(Some(&other), at), name);
            no_defect(brolga_dylib_remove(Some(&main), at), name);
            no_defect(brolga_dylib_add_library(Some(&other), at), name);
            let mut found = MaybeUninit::uninit();
            let made = brolga_session_empty_dylib(Some(&session), at, Some(&mut found));
            if made.is_none() {
                brolga_dylib_free(Some(Box::from_raw(found.assume_init())));
            }
            no_defect(made, name);
        }
    }
    assert_eq!(value(&function(&main)), 1);
    // The same dylib twice is the dylib.
    let twice = [Some(&*main), Some(&*main)];
    // SAFETY: the arrays are as long as is said.
    unsafe {
        no_defect(brolga_dylib_set_links(Some(&other), twice.as_ptr(), 2), "twice");
        no_defect(brolga_session_close_dylibs(Some(&session), twice.as_ptr(), 2, 3), "twice");
        no_defect(brolga_session_close_dylibs(Some(&session), twice.as_ptr(), 1, 3), "again");
    }
    assert!(define(&main).is_some(), "it is closed");
}

static FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn free(_: *mut c_void) {
    FREED.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn accept(_: *mut c_void, _: *const c_char) -> bool {
    false
}

/// Data is freed once, also if the call that passes it fails.
#[test]
fn data_of_functions_of_c_is_freed_when_the_call_fails() {
    let session = session(0);
    let (main, none) = (dylib(&session, c"main"), ptr::null_mut());
    let bad = [c"caf\xe9".as_ptr()];
    // SAFETY: the texts end in a zero byte, the arrays are as long as is said, and the functions return.
    unsafe {
        let before = FREED.load(Ordering::Relaxed);
        assert!(brolga_dylib_add_process_symbols(None, Some(accept), none, Some(free)).is_some());
        assert!(brolga_dylib_add_generator(Some(&main), None, none, Some(free)).is_some());
        assert!(brolga_dylib_promise(Some(&main), bad.as_ptr(), 1, None, none, Some(free)).is_some());
        assert!(brolga_session_report_failures(None, None, none, Some(free)).is_some());
        assert!(brolga_session_observe(None, None, none, Some(free)).is_some());
        assert_eq!(FREED.load(Ordering::Relaxed) - before, 5);
        assert!(brolga_session_report_failures(Some(&session), None, none, Some(free)).is_none());
        assert!(brolga_session_report_failures(Some(&session), None, none, None).is_none());
        assert_eq!(FREED.load(Ordering::Relaxed) - before, 6, "a reporter that was replaced");
        assert!(brolga_dylib_add_process_symbols(Some(&main), Some(accept), none, Some(free)).is_none());
        assert_eq!(FREED.load(Ordering::Relaxed) - before, 6);
        let closed = [Some(&*main)];
        let keep = BrolgaDependants::Keep as u32;
        assert!(brolga_session_close_dylibs(Some(&session), closed.as_ptr(), 1, keep).is_none());
        assert_eq!(FREED.load(Ordering::Relaxed) - before, 7);
    }
}

/// A handle keeps what it needs.
#[test]
fn handles_are_freed_in_any_order() {
    let session = session(1);
    let main = dylib(&session, c"main");
    let tracker = owned(|place| brolga_dylib_tracker(Some(&main), 1, place));
    let tracked = owned(|place| brolga_dylib_tracked_by(Some(&main), Some(&tracker), place));
    assert!(define(&tracked).is_none());
    let function = function(&main);
    let symbols = owned(|place| brolga_dylib_symbols(Some(&main), place));
    // SAFETY: the text ends in a zero byte.
    let request = owned(|place| unsafe { brolga_dylib_request(Some(&main), c"one".as_ptr(), place) });
    // SAFETY: the texts are as long as is said.
    let read = owned(|place| unsafe {
        let (name, text) = (c"one.jlir".as_ptr(), ONE.as_ptr().cast());
        brolga_dylib_read(Some(&tracked), name, text, ONE.len(), false, place)
    });
    brolga_session_free(Some(session));
    brolga_dylib_free(Some(main));
    assert_eq!(value(&function), 1);
    brolga_tracker_free(Some(tracker));
    assert!(brolga_definitions_define(Some(&read)).is_some(), "its tracker is gone");
    brolga_definitions_free(Some(read));
    brolga_dylib_free(Some(tracked));
    brolga_request_free(Some(request));
    assert_eq!(brolga_symbols_count(Some(&symbols)), 1);
    let mut symbol = MaybeUninit::uninit();
    assert!(brolga_symbols_get(Some(&symbols), 0, Some(&mut symbol)).is_none());
    // SAFETY: the call has succeeded, and the list is there.
    assert_eq!(unsafe { CStr::from_ptr(symbol.assume_init().name) }, c"one()");
    brolga_symbols_free(Some(symbols));
    assert_eq!(value(&function), 1, "a function keeps its code");
    brolga_function_free(Some(function));
}

#[test]
fn operations_after_the_end_are_errors() {
    let session = session(1);
    let main = dylib(&session, c"main");
    let tracker = owned(|place| brolga_dylib_tracker(Some(&main), 0, place));
    assert!(define(&main).is_none());
    assert!(brolga_session_end(Some(&session)).is_none());
    assert!(define(&main).is_some());
    assert!(brolga_dylib_open(Some(&main)).is_some());
    assert!(brolga_dylib_link(Some(&main), Some(&main)).is_some());
    assert!(brolga_tracker_remove(Some(&tracker), 3).is_some());
    assert!(refused(|place| brolga_dylib_symbols(Some(&main), place)));
    // SAFETY: the text ends in a zero byte.
    unsafe {
        assert!(refused(|place| brolga_session_empty_dylib(Some(&session), c"b".as_ptr(), place)));
        assert!(refused(|place| brolga_session_find_dylib(Some(&session), c"main".as_ptr(), place)));
        let request = owned(|place| brolga_dylib_request(Some(&main), c"one".as_ptr(), place));
        assert!(refused(|place| brolga_request_wait(Some(&request), place)));
    }
    let mut text = MaybeUninit::uninit();
    assert!(brolga_session_dump(Some(&session), Some(&mut text)).is_none());
    // SAFETY: the call has succeeded, and the text is freed once.
    unsafe { brolga_capi::text::brolga_text_free(text.assume_init()) };
}

static ANSWERS: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn answer(_: *mut c_void, error: *mut BrolgaError, function: *mut BrolgaFunction) {
    assert!(error.is_null() != function.is_null(), "one of the two");
    // SAFETY: they were given away, and the other one is null.
    unsafe {
        if !error.is_null() {
            drop(Box::from_raw(error));
        }
        if !function.is_null() {
            assert_eq!(value(&Box::from_raw(function)), 1);
        }
    }
    ANSWERS.fetch_add(1, Ordering::Relaxed);
}

/// Threads share handles: they ask for what is ready and what is not, look, define, and free their own; each look-up by callback has one answer.
#[test]
fn threads_share_handles() {
    const THREADS: usize = 4;
    const TIMES: usize = 50;
    for workers in [0, 2] {
        let before = ANSWERS.load(Ordering::Relaxed);
        let session = session(workers);
        let main = dylib(&session, c"main");
        assert!(define(&main).is_none());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (main, session) = (&main, &session);
                scope.spawn(move || {
                    for time in 0..TIMES {
                        let fresh = format!("fresh{thread}x{time}");
                        let text = format!("function {fresh}()::Int64\n1 ─      return 1\nend\n");
                        let name = std::ffi::CString::new(fresh).expect("a name");
                        // SAFETY: the texts are as long as is said, and the function is there as long as the process.
                        unsafe {
                            let (text, length) = (text.as_ptr().cast(), text.len());
                            let defined = brolga_dylib_define(Some(main), name.as_ptr(), text, length, 0);
                            assert!(defined.is_none(), "{defined:?}");
                            let data = ptr::null_mut();
                            let asked =
                                brolga_dylib_request_then(Some(main), name.as_ptr(), Some(answer), data);
                            assert!(asked.is_none());
                        }
                        // SAFETY: the text ends in a zero byte, and the function is there as long as the process.
                        let asked = unsafe {
                            let name = c"one".as_ptr();
                            brolga_dylib_request_then(Some(main), name, Some(answer), ptr::null_mut())
                        };
                        assert!(asked.is_none());
                        assert_eq!(value(&function(main)), 1);
                        let symbols = owned(|place| brolga_dylib_symbols(Some(main), place));
                        assert!(brolga_symbols_count(Some(&symbols)) > time + 1);
                        assert!(define(main).is_some(), "it is defined");
                        let tracker = owned(|place| brolga_dylib_tracker(Some(main), 1, place));
                        brolga_tracker_free(Some(tracker));
                        let mut dump = MaybeUninit::uninit();
                        assert!(brolga_session_dump(Some(session), Some(&mut dump)).is_none());
                        // SAFETY: the call has succeeded, and the text is freed once.
                        unsafe { brolga_capi::text::brolga_text_free(dump.assume_init()) };
                    }
                });
            }
        });
        assert!(brolga_session_end(Some(&session)).is_none());
        assert_eq!(ANSWERS.load(Ordering::Relaxed) - before, 2 * THREADS * TIMES, "{workers} workers");
    }
}
