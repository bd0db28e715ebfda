//! Programs built without text, packages, the cache, processors and listeners, as C uses them.

#[path = "support/results.rs"]
mod results;

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga_capi::activity::*;
use brolga_capi::builder::*;
use brolga_capi::cache::*;
use brolga_capi::engine::*;
use brolga_capi::function::*;
use brolga_capi::look_up::*;
use brolga_capi::module::*;
use brolga_capi::options::*;
use brolga_capi::package::*;
use brolga_capi::runtime::*;
use brolga_capi::session::*;
use brolga_capi::value::*;

use results::{Failed, message, out, owned};

fn done(error: Failed) {
    assert!(error.is_none(), "{error:?}");
}

/// Calls a function of one integer.
fn call(function: &BrolgaFunction, n: i64) -> Result<i64, String> {
    let (args, mut result) = ([brolga_int64(n)], MaybeUninit::uninit());
    // SAFETY: the value has the member of its kind.
    let error = unsafe { brolga_function_call(Some(function), args.as_ptr(), 1, Some(&mut result)) };
    // SAFETY: a call that succeeds has written an `Int64`.
    if error.is_some() { Err(message(error)) } else { Ok(unsafe { result.assume_init().bits.int64 }) }
}

/// Builds `quotients(n)`: the sum of 100 ÷ k for k from n down to 0, where a division that throws is −1.
fn quotients(module: &BrolgaModule) {
    let (int, b) = (c"Int64".as_ptr(), begin(module, c"quotients"));
    let b = Some(&*b);
    // SAFETY: texts end in a zero byte; there are as many numbers as is said.
    unsafe {
        let operation = |name: &CStr, args: &[u32]| {
            out(|place| {
                brolga_builder_operation(b, name.as_ptr(), args.as_ptr(), args.len(), ptr::null(), place)
            })
        };
        let number = |n: i64| out(|place| brolga_builder_int(b, int, n, place));
        let block = || out(|place| brolga_builder_block(b, place));
        let read = |variable: u32| out(|place| brolga_builder_use(b, variable, place));
        let total = out(|place| brolga_builder_variable(b, c"total".as_ptr(), int, place));
        let k = out(|place| brolga_builder_variable(b, ptr::null(), int, place));
        done(brolga_builder_set_file(b, c"quotients.src".as_ptr()));
        done(brolga_builder_set_line(b, 1, 1));
        done(brolga_builder_define(b, total, number(0)));
        done(brolga_builder_define(b, k, out(|place| brolga_builder_param(b, 0, place))));
        let (head, body, tried, caught, next, end) = (block(), block(), block(), block(), block(), block());
        done(brolga_builder_goto(b, head));
        done(brolga_builder_switch(b, head));
        let goes_on = operation(c"sle_int", &[number(0), read(k)]);
        done(brolga_builder_branch(b, goes_on, body, end));
        done(brolga_builder_switch(b, body));
        let token = out(|place| brolga_builder_enter(b, tried, caught, place));
        done(brolga_builder_switch(b, tried));
        let part = operation(c"checked_sdiv_int", &[number(100), read(k)]);
        done(brolga_builder_define(b, total, operation(c"add_int", &[read(total), part])));
        done(brolga_builder_leave(b, token));
        done(brolga_builder_goto(b, next));
        done(brolga_builder_switch(b, caught));
        done(brolga_builder_define(b, total, operation(c"sub_int", &[read(total), number(1)])));
        done(brolga_builder_goto(b, next));
        done(brolga_builder_switch(b, next));
        done(brolga_builder_define(b, k, operation(c"sub_int", &[read(k), number(1)])));
        done(brolga_builder_goto(b, head));
        done(brolga_builder_seal(b, head));
        done(brolga_builder_switch(b, end));
        done(brolga_builder_return(b, read(total)));
    }
    done(brolga_builder_finish(b));
    assert!(message(brolga_builder_finish(b)).contains("finished before"));
}

/// Begins a function of one `Int64` that returns one.
fn begin(module: &BrolgaModule, name: &CStr) -> Box<BrolgaBuilder> {
    let (names, types) = ([c"n".as_ptr()], [c"Int64".as_ptr()]);
    // SAFETY: texts end in a zero byte, and there is one of each.
    owned(|place| unsafe {
        let (name, result) = (name.as_ptr(), c"Int64".as_ptr());
        brolga_module_function(Some(module), name, names.as_ptr(), types.as_ptr(), 1, result, place)
    })
}

#[test]
fn programs_are_built_from_blocks_and_statements() {
    let module = owned(|place| brolga_module_new(place));
    quotients(&module);
    // `pair(n)`: the fields of a struct, and elements of a tuple, by a call of `quotients`.
    let (fields, types) = ([c"a".as_ptr(), c"b".as_ptr()], [c"Int64".as_ptr(), c"Float64".as_ptr()]);
    // SAFETY: texts end in a zero byte; there are as many numbers as is said.
    unsafe {
        let pair = c"Pair2".as_ptr();
        done(brolga_module_struct(Some(&module), pair, true, fields.as_ptr(), types.as_ptr(), 2));
        assert!(
            brolga_module_struct(Some(&module), pair, false, fields.as_ptr(), types.as_ptr(), 2).is_some()
        );
        let built = begin(&module, c"pair");
        let b = Some(&*built);
        let n = out(|place| brolga_builder_param(b, 0, place));
        let half = out(|place| brolga_builder_float64(b, 0.5, place));
        let sum = out(|place| {
            brolga_builder_invoke(b, c"quotients".as_ptr(), [n].as_ptr(), 1, c"Int64".as_ptr(), place)
        });
        let object = out(|place| brolga_builder_object(b, pair, [n, half].as_ptr(), 2, place));
        done(brolga_builder_setfield(b, object, c"a".as_ptr(), sum));
        let a = out(|place| brolga_builder_getfield(b, object, c"a".as_ptr(), place));
        let tuple = out(|place| brolga_builder_tuple(b, [half, a].as_ptr(), 2, place));
        let second = out(|place| brolga_builder_element(b, tuple, 2, place));
        let float = out(|place| {
            brolga_builder_operation(b, c"sitofp".as_ptr(), [second].as_ptr(), 1, c"Float64".as_ptr(), place)
        });
        let more = out(|place| {
            brolga_builder_operation(
                b,
                c"add_float".as_ptr(),
                [float, half].as_ptr(),
                2,
                c"Float64".as_ptr(),
                place,
            )
        });
        let back = out(|place| {
            brolga_builder_operation(b, c"fptosi".as_ptr(), [more].as_ptr(), 1, c"Int64".as_ptr(), place)
        });
        done(brolga_builder_return(b, back));
        done(brolga_builder_finish(b));
    }
    let program = owned(|place| brolga_module_program(Some(&module), place));
    assert!(
        message(brolga_module_program(Some(&module), Some(&mut MaybeUninit::uninit())))
            .contains("begin another")
    );
    let engine = owned(|place| brolga_engine_new(None, place));
    let unit = owned(|place| brolga_engine_compile(Some(&engine), Some(&program), place));
    brolga_module_free(Some(module));
    for (name, expected) in [(c"quotients", 100 + 50 + 33 - 1), (c"pair", 182)] {
        // SAFETY: the text ends in a zero byte.
        let function = owned(|place| unsafe { brolga_unit_function(Some(&unit), name.as_ptr(), place) });
        assert_eq!(call(&function, 3), Ok(expected), "{name:?}");
    }
}

#[test]
fn modules_of_dylibs_are_defined_there() {
    let session = owned(|place| brolga_session_new(None, 0, place));
    // SAFETY: the text ends in a zero byte.
    let dylib = owned(|place| unsafe { brolga_session_dylib(Some(&session), c"main".as_ptr(), place) });
    let module = owned(|place| brolga_dylib_module(Some(&dylib), place));
    quotients(&module);
    assert!(brolga_module_define(Some(&module), 99).is_some());
    done(brolga_module_define(Some(&module), 1));
    // SAFETY: the text ends in a zero byte.
    let function =
        owned(|place| unsafe { brolga_dylib_function(Some(&dylib), c"quotients".as_ptr(), place) });
    assert_eq!(call(&function, 2), Ok(149));
    let alone = owned(|place| brolga_module_new(place));
    assert!(message(brolga_module_define(Some(&alone), 0)).contains("`brolga_dylib_module`"));
}

#[test]
fn mistakes_in_statements_are_errors() {
    let module = owned(|place| brolga_module_new(place));
    let built = begin(&module, c"wrong");
    let b = Some(&*built);
    let refused = |error: Failed| drop(message(error));
    // SAFETY: texts are null or end in a zero byte; there are as many numbers as is said, or null.
    unsafe {
        let n = out(|place| brolga_builder_param(b, 0, place));
        refused(brolga_builder_param(b, 1, None));
        refused(brolga_builder_param(b, usize::MAX, None));
        for number in [1000, u32::MAX, u32::MAX - 1] {
            refused(brolga_builder_return(b, number));
            refused(brolga_builder_goto(b, number));
            refused(brolga_builder_switch(b, number));
            refused(brolga_builder_seal(b, number));
            refused(brolga_builder_branch(b, n, number, number));
            refused(brolga_builder_use(b, number, None));
            refused(brolga_builder_define(b, number, n));
            refused(brolga_builder_element(b, number, 1, None));
            refused(brolga_builder_tuple(b, [number].as_ptr(), 1, None));
            refused(brolga_builder_leave(b, number));
        }
        let (int, add) = (c"Int64".as_ptr(), c"add_int".as_ptr());
        refused(brolga_builder_int(b, c"Nowhere".as_ptr(), 1, None));
        refused(brolga_builder_int(b, c"Int8".as_ptr(), 300, None));
        refused(brolga_builder_int(b, c"Int64\nend".as_ptr(), 1, None));
        refused(brolga_builder_int(b, ptr::null(), 1, None));
        refused(brolga_builder_operation(b, c"no_such".as_ptr(), [n].as_ptr(), 1, int, None));
        refused(brolga_builder_operation(b, c"arrayref".as_ptr(), [n].as_ptr(), 1, ptr::null(), None));
        refused(brolga_builder_operation(b, c"sitofp".as_ptr(), [n].as_ptr(), 1, ptr::null(), None));
        refused(brolga_builder_operation(b, add, [n, n].as_ptr(), 2, c"Float64".as_ptr(), None));
        refused(brolga_builder_operation(b, add, ptr::null(), 2, ptr::null(), None));
        refused(brolga_builder_operation(b, ptr::null(), [n].as_ptr(), 1, ptr::null(), None));
        let half = out(|place| brolga_builder_float64(b, 0.5, place));
        refused(brolga_builder_operation(b, add, [n, half].as_ptr(), 2, ptr::null(), None));
        assert!(message(brolga_builder_finish(b)).contains("wrong"), "its block has no end");
        refused(brolga_builder_return(b, n));
        refused(brolga_module_function(
            Some(&module),
            c"f".as_ptr(),
            ptr::null(),
            ptr::null(),
            1,
            int,
            Some(&mut MaybeUninit::uninit()),
        ));
        refused(brolga_module_function(
            None,
            c"f".as_ptr(),
            ptr::null(),
            ptr::null(),
            0,
            int,
            Some(&mut MaybeUninit::uninit()),
        ));
        refused(brolga_module_struct(None, ptr::null(), false, ptr::null(), ptr::null(), 0));
    }
    refused(brolga_builder_finish(None));
    refused(brolga_builder_nothing(None, None));
    refused(brolga_module_new(None));
    refused(brolga_dylib_module(None, None));
    refused(brolga_module_define(None, 0));
    brolga_builder_free(None);
    brolga_module_free(None);
}

/// An empty folder of a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capi-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn path(folder: &Path, name: &str) -> CString {
    CString::new(folder.join(name).display().to_string()).expect("a path")
}

const HALF: &str = "function half(n::Int64)::Int64
1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
└──      return %1
end";

/// `half` of an engine with these options.
fn half(options: &BrolgaOptions) -> Box<BrolgaFunction> {
    let engine = owned(|place| brolga_engine_new(Some(options), place));
    // SAFETY: texts end in a zero byte, or their length is said.
    unsafe {
        let program =
            owned(|place| brolga_program_read(c"half".as_ptr(), HALF.as_ptr().cast(), HALF.len(), place));
        let unit = owned(|place| brolga_engine_compile(Some(&engine), Some(&program), place));
        owned(|place| brolga_unit_function(Some(&unit), c"half".as_ptr(), place))
    }
}

#[test]
fn a_cache_keeps_code_in_a_directory() {
    let folder = folder("cache");
    let (entries, key) = (path(&folder, "entries"), path(&folder, "key"));
    for round in 0..2 {
        // SAFETY: the texts end in a zero byte.
        let cache =
            owned(|place| unsafe { brolga_cache_open(entries.as_ptr(), 1 << 20, key.as_ptr(), place) });
        let mut options = brolga_options_new();
        done(brolga_options_set_cache(Some(&mut options), Some(&cache)));
        assert_eq!(call(&half(&options), 8), Ok(4));
        brolga_cache_flush(Some(&cache));
        let stats = out(|place| brolga_cache_stats(Some(&cache), place));
        match round {
            0 => assert!(stats.hits == 0 && stats.kept > 0, "{stats:?}"),
            _ => assert!(stats.hits > 0 && stats.kept == 0, "{stats:?}"),
        }
        done(brolga_options_set_cache(Some(&mut options), None));
        brolga_cache_free(Some(cache));
    }
    let place = &mut MaybeUninit::uninit();
    // SAFETY: the texts are null or end in a zero byte.
    unsafe {
        assert!(brolga_cache_open(c"/dev/null/x".as_ptr(), 1, key.as_ptr(), Some(place)).is_some());
        assert!(brolga_cache_open(entries.as_ptr(), 1, c"/dev/null/x".as_ptr(), Some(place)).is_some());
        assert!(brolga_cache_open(ptr::null(), 1, key.as_ptr(), Some(place)).is_some());
        assert!(brolga_cache_open(entries.as_ptr(), 1, key.as_ptr(), None).is_some());
    }
    assert!(brolga_options_set_cache(None, None).is_some() && brolga_cache_stats(None, None).is_some());
    brolga_cache_flush(None);
    brolga_cache_free(None);
}

#[test]
fn packages_are_built_and_opened() {
    let folder = folder("package");
    let file = path(&folder, "half.so");
    let mut options = brolga_options_new();
    // SAFETY: texts are null or end in a zero byte, or their length is said; the package is the one that is built here.
    unsafe {
        let build = owned(|place| brolga_package_build_new(c"half".as_ptr(), place));
        let (name, text) = (c"half.jlir".as_ptr(), HALF.as_ptr().cast::<c_char>());
        done(brolga_package_build_add_program(Some(&build), name, text, HALF.len()));
        let closed = message(brolga_package_build_write(Some(&build), Some(&options), file.as_ptr()));
        assert!(closed.contains("door"), "{closed}");
        done(brolga_options_allow_doors(Some(&mut options)));
        done(brolga_options_set_image_targets(Some(&mut options), c"generic".as_ptr()));
        assert!(brolga_options_set_image_targets(Some(&mut options), c"nowhere".as_ptr()).is_some());
        done(brolga_package_build_set_threads(Some(&build), 2));
        done(brolga_package_build_write(Some(&build), Some(&options), file.as_ptr()));
        let session = owned(|place| brolga_session_new(Some(&options), 0, place));
        let dylib = owned(|place| brolga_session_dylib(Some(&session), c"main".as_ptr(), place));
        let package = owned(|place| brolga_dylib_open_package(Some(&dylib), file.as_ptr(), place));
        let function = owned(|place| brolga_dylib_function(Some(&dylib), c"half".as_ptr(), place));
        assert_eq!(call(&function, 8), Ok(4));
        done(brolga_package_close(Some(&package), 1));
        assert!(
            brolga_dylib_function(Some(&dylib), c"half".as_ptr(), Some(&mut MaybeUninit::uninit())).is_some()
        );
        brolga_package_free(Some(package));
        assert!(
            brolga_dylib_open_package(Some(&dylib), c"/nowhere".as_ptr(), Some(&mut MaybeUninit::uninit()))
                .is_some()
        );
        assert!(brolga_package_build_new(ptr::null(), None).is_some());
        assert!(brolga_package_build_add_program(None, name, text, 1).is_some());
        assert!(brolga_package_build_add_program(Some(&build), name, ptr::null(), 1).is_some());
        assert!(brolga_package_build_add_need(None, name).is_some());
        assert!(brolga_package_build_add_against(None, name, text, 1).is_some());
        assert!(brolga_package_build_write(None, None, name).is_some());
        assert!(
            brolga_package_build_set_tiered(None, 1).is_some() && brolga_package_close(None, 0).is_some()
        );
    }
    brolga_package_free(None);
    brolga_package_build_free(None);
}

#[test]
fn processors_have_names() {
    let mut options = brolga_options_new();
    // SAFETY: the texts are null or end in a zero byte.
    unsafe {
        done(brolga_options_set_cpu(Some(&mut options), c"generic".as_ptr()));
        let wrong = message(brolga_options_set_cpu(Some(&mut options), c"z80".as_ptr()));
        assert!(wrong.contains("`native`"), "{wrong}");
        assert!(brolga_options_set_cpu(None, c"generic".as_ptr()).is_some());
        assert!(brolga_options_set_image_targets(None, c"generic".as_ptr()).is_some());
    }
    assert_eq!(call(&half(&options), 10), Ok(5));
}

static HEARD: [AtomicUsize; 12] = [const { AtomicUsize::new(0) }; 12];
static FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn hear(data: *mut c_void, activity: *const BrolgaActivity) {
    assert_eq!(data.addr(), 7);
    // SAFETY: the activity is lent for the call.
    let activity = unsafe { &*activity };
    HEARD[activity.kind as usize].fetch_add(1, Ordering::SeqCst);
    assert_eq!(activity.stage.is_null(), activity.kind > BrolgaActivityKind::End as u32);
}

unsafe extern "C" fn freed(_: *mut c_void) {
    FREED.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_listener_hears_what_a_run_time_does() {
    let engine = owned(|place| brolga_engine_new(None, place));
    let runtime = owned(|place| brolga_engine_runtime(Some(&engine), place));
    let data = ptr::without_provenance_mut(7);
    // SAFETY: the functions are what their types say.
    unsafe {
        done(brolga_runtime_listen(Some(&runtime), Some(hear), data, Some(freed)));
        assert!(
            brolga_runtime_listen(Some(&runtime), Some(hear), data, Some(freed)).is_some(),
            "there is one"
        );
        assert!(brolga_runtime_listen(Some(&runtime), None, data, Some(freed)).is_some());
        assert!(brolga_runtime_listen(None, Some(hear), data, Some(freed)).is_some());
        assert_eq!(FREED.load(Ordering::SeqCst), 3);
        let program =
            owned(|place| brolga_program_read(c"half".as_ptr(), HALF.as_ptr().cast(), HALF.len(), place));
        owned(|place| brolga_engine_compile(Some(&engine), Some(&program), place));
    }
    done(brolga_runtime_collect(Some(&runtime)));
    let heard = |kind: BrolgaActivityKind| HEARD[kind as usize].load(Ordering::SeqCst);
    assert!(heard(BrolgaActivityKind::Begin) > 0 && heard(BrolgaActivityKind::Collected) > 0);
    assert_eq!(heard(BrolgaActivityKind::Begin), heard(BrolgaActivityKind::End));
    drop((runtime, engine));
    assert_eq!(FREED.load(Ordering::SeqCst), 4);
}
