//! The C API as C sees it: the examples, built and run against the static and the shared library; the header, held against the source;
//! null pointers everywhere.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use brolga_capi::activity::*;
use brolga_capi::c_symbols::*;
use brolga_capi::debuggers::*;
use brolga_capi::definitions::*;
use brolga_capi::dependants::*;
use brolga_capi::dylib::*;
use brolga_capi::engine::*;
use brolga_capi::error::*;
use brolga_capi::exports::*;
use brolga_capi::field::*;
use brolga_capi::function::*;
use brolga_capi::generator::*;
use brolga_capi::host::*;
use brolga_capi::image::*;
use brolga_capi::limits::*;
use brolga_capi::look_up::*;
use brolga_capi::materializer::*;
use brolga_capi::numbers::*;
use brolga_capi::object::*;
use brolga_capi::options::*;
use brolga_capi::promise::*;
use brolga_capi::report::*;
use brolga_capi::runtime::*;
use brolga_capi::session::*;
use brolga_capi::symbols::*;
use brolga_capi::text::*;
use brolga_capi::tracker::*;
use brolga_capi::value::*;

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder that cargo builds libraries into, beside this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the test's path");
    test.parent().expect("a folder").to_owned()
}

/// Builds an example against a library, runs it, and compares what it prints.
fn check(example: &str, kind: &str, library: &[String]) {
    let program = built().join(format!("capi-{example}-{kind}"));
    let (source, compiler, language) = match here().join(format!("examples/{example}.cpp")) {
        source if source.exists() => (source, "c++", "-std=c++17"),
        _ => (here().join(format!("examples/{example}.c")), "cc", "-std=c11"),
    };
    let mut cc = Command::new(compiler);
    cc.args([language, "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]);
    cc.arg(here().join("include"))
        .arg(&source)
        .args(library)
        .args(["-s", "-lm", "-lpthread", "-ldl", "-o"])
        .arg(&program);
    let made = cc.output().expect("compilers of C and C++");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // Cargo's variable comes before the program's own path, and leads to a library of another build.
    let run = Command::new(&program).env_remove("LD_LIBRARY_PATH").output().expect("the example runs");
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{example}, {kind}: {:?} {told}", run.status);
    let expected = read(&here().join(format!("examples/{example}.out")));
    assert_eq!(String::from_utf8_lossy(&run.stdout), expected, "{example}, {kind}");
    let _ = fs::remove_file(&program);
}

#[test]
fn examples_run_with_both_libraries() {
    let (folder, examples) = (built(), ["columns", "filter", "plugins", "rules"]);
    let find = |name: &str| {
        [folder.clone(), folder.join("..")].into_iter().map(|dir| dir.join(name)).find(|path| path.exists())
    };
    let archive = find("libbrolga_capi.a").expect("cargo builds the static library with the test");
    for example in examples {
        check(example, "static", &[archive.display().to_string()]);
    }
    let Some(shared) = find("libbrolga_capi.so") else {
        println!("skipped: there is no shared library beside the test");
        return;
    };
    let folder = shared.parent().expect("a folder").display().to_string();
    for example in examples {
        check(
            example,
            "shared",
            &[format!("-L{folder}"), format!("-Wl,-rpath,{folder}"), "-lbrolga_capi".to_owned()],
        );
    }
}

/// The C type that cbindgen writes for a type of a signature.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    let inner = |prefix: &str| rust.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(pointer) = inner("Option<") {
        return c_type(pointer);
    }
    if let Some(owned) = inner("Box<") {
        return pointer_to(&c_type(owned));
    }
    if let Some(unset) = inner("MaybeUninit<") {
        return c_type(unset);
    }
    for (prefix, is_constant) in [("&mut ", false), ("&", true), ("*mut ", false), ("*const ", true)] {
        if let Some(to) = rust.strip_prefix(prefix) {
            let to = c_type(to);
            // A pointer that may not be changed has `const` after its star.
            return match (is_constant, to.ends_with('*')) {
                (true, true) => format!("{to}const *"),
                (true, false) => format!("const {}", pointer_to(&to)),
                (false, _) => pointer_to(&to),
            };
        }
    }
    let known = [
        ("usize", "size_t"),
        ("u8", "uint8_t"),
        ("u32", "uint32_t"),
        ("u64", "uint64_t"),
        ("c_int", "int"),
        ("i64", "int64_t"),
        ("f64", "double"),
        ("bool", "bool"),
        ("c_char", "char"),
        ("c_void", "void"),
    ];
    known.iter().find(|(name, _)| *name == rust).map_or(rust, |(_, c)| c).to_owned()
}

fn pointer_to(ty: &str) -> String {
    if ty.ends_with('*') { format!("{ty}*") } else { format!("{ty} *") }
}

/// Texts with one blank between words and none at brackets and stars.
fn normal(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace(" *", "*").replace("* ", "*").replace("( ", "(").replace(", )", ")").replace(",)", ")")
}

/// The functions of a source file, as the header should declare them.
fn declared_by(source: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in source.split("extern \"C\" fn brolga_").skip(1) {
        let head = part.split('{').next().unwrap_or("");
        let (name, rest) = head.split_once('(').expect("a list of parameters");
        let (params, result) = rest.rsplit_once(')').expect("a list of parameters");
        let params = params.split(',').map(str::trim).filter(|param| !param.is_empty()).map(|param| {
            let (name, ty) = param.split_once(": ").expect("a name and a type");
            format!("{} {name}", c_type(ty))
        });
        let params = params.collect::<Vec<_>>().join(", ");
        let params = if params.is_empty() { "void".to_owned() } else { params };
        let result = result.trim().strip_prefix("-> ").map_or("void".to_owned(), c_type);
        found.insert(format!("brolga_{name}"), normal(&format!("{result} brolga_{name}({params})")));
    }
    found
}

/// `tests/capi_header.sh` writes the header; this needs no cbindgen.
#[test]
fn the_header_declares_what_the_source_exports() {
    let mut expected = BTreeMap::new();
    for entry in fs::read_dir(here().join("src")).expect("the source") {
        expected.extend(declared_by(&read(&entry.expect("a readable folder").path())));
    }
    let header = read(&here().join("include/brolga.h"));
    let mut found = BTreeMap::new();
    for part in header.split(';').filter(|part| part.contains("brolga_") && part.trim_end().ends_with(')')) {
        // The declaration is after the comment.
        let text = part.rsplit("*/").next().unwrap_or("").replace("BROLGA_CHECKED", "");
        let Some((head, _)) = text.split_once('(') else { continue };
        let name = head.rsplit([' ', '*']).next().unwrap_or("").to_owned();
        if name.starts_with("brolga_") {
            found.insert(name, normal(&text));
        }
    }
    assert!(expected.len() > 40, "the walk found almost nothing");
    assert_eq!(found, expected, "run tests/capi_header.sh");
}

#[test]
fn the_header_has_the_numbers_of_the_source() {
    let header = read(&here().join("include/brolga.h"));
    let has = |text: String| assert!(header.contains(&text), "{text}: run tests/capi_header.sh");
    has(format!("BROLGA_CODE_INTERNAL = {},", BrolgaCode::Internal as u32));
    has(format!("BROLGA_MODE_REPLACEABLE = {},", BrolgaMode::Replaceable as u32));
    has(format!("BROLGA_KIND_OBJECT = {},", BrolgaKind::Object as u32));
    has(format!("BROLGA_DEPENDANTS_KEEP = {},", BrolgaDependants::Keep as u32));
    has(format!("BROLGA_ON_FREE_REMOVE = {},", BrolgaOnFree::Remove as u32));
    has(format!("BROLGA_EXPORTS_EXCEPT = {},", BrolgaExports::Except as u32));
    has(format!("BROLGA_PRIORITY_IDLE = {},", BrolgaPriority::Idle as u32));
    has(format!("BROLGA_PROGRESS_FAILED = {},", BrolgaProgress::Failed as u32));
    has(format!("BROLGA_HAPPENED_OTHER = {},", BrolgaHappened::Other as u32));
    has(format!("BROLGA_ACTIVITY_KIND_OTHER = {},", BrolgaActivityKind::Other as u32));
}

/// Pages that name functions of C name those that there are.
#[test]
fn documents_name_functions_that_there_are() {
    let header = read(&here().join("include/brolga.h"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for page in ["docs/conformance-orc.md", "docs/guide/src/c.md", "CHANGELOG.md"] {
        let text = read(&here().join("../..").join(page));
        for (at, _) in text.match_indices("`brolga_dylib_").chain(text.match_indices("`brolga_session_")) {
            let name: String = text[at + 1..].chars().take_while(|c| is_part(*c)).collect();
            assert!(header.contains(&format!("{name}(")), "{page}: there is no `{name}`");
        }
    }
}

/// The error for a null pointer.
fn is_null(error: Option<Box<BrolgaError>>) {
    let error = error.expect("an error");
    assert_eq!(brolga_error_code(Some(&error)), BrolgaCode::Argument, "{error:?}");
    brolga_error_free(Some(error));
}

#[test]
fn null_pointers_are_errors_or_nothing() {
    let text = c"text".as_ptr();
    is_null(brolga_options_set_level(None, 1));
    is_null(brolga_options_set_heap_limit(None, 1));
    is_null(brolga_options_set_code_limit(None, 1));
    is_null(brolga_options_set_compile_memory(None, 1));
    is_null(brolga_options_set_capture(None, true));
    is_null(brolga_engine_new(None, None));
    is_null(brolga_engine_runtime(None, None));
    is_null(brolga_engine_compile(None, None, None));
    is_null(brolga_runtime_take_output(None, None));
    is_null(brolga_runtime_collect(None));
    is_null(brolga_interrupt_new(None, None));
    is_null(brolga_session_new(None, 0, None));
    is_null(brolga_session_runtime(None, None));
    is_null(brolga_session_end(None));
    is_null(brolga_dylib_link(None, None));
    is_null(brolga_object_type(None, None));
    is_null(brolga_object_clone(None, None));
    is_null(brolga_object_field(None, 0, None));
    is_null(brolga_function_signature(None, None));
    let mut program = MaybeUninit::uninit();
    // SAFETY: every pointer is null, or refers to a text that ends in a zero byte; the lengths beside null pointers are 0 or are refused.
    unsafe {
        is_null(brolga_program_read(text, text, 4, None));
        is_null(brolga_program_read(ptr::null(), text, 4, Some(&mut program)));
        is_null(brolga_program_read(text, ptr::null(), 4, Some(&mut program)));
        is_null(brolga_unit_function(None, text, None));
        is_null(brolga_engine_open(None, text, None));
        is_null(brolga_exports_open(ptr::null(), None));
        brolga_exports_call(ptr::null(), 0, ptr::null(), ptr::null_mut());
        is_null(brolga_exports_take_error());
        assert!(brolga_exports_take_error().is_none());
        assert_eq!(brolga_image_main(0, ptr::null(), None), 1);
        is_null(brolga_session_dylib(None, text, None));
        is_null(brolga_dylib_define(None, text, text, 4, 0));
        is_null(brolga_dylib_redefine(None, text, text, 4, None));
        is_null(brolga_dylib_remove(None, text));
        is_null(brolga_dylib_function(None, text, None));
        is_null(brolga_dylib_define_host(None, text, None, ptr::null_mut(), None));
        is_null(brolga_function_call(None, ptr::null(), 0, None));
        is_null(brolga_object_string(None, ptr::null(), 0, None));
        is_null(brolga_object_float64s(None, ptr::null(), 0, None));
        is_null(brolga_object_int64s(None, ptr::null(), 0, None));
        is_null(brolga_object_copy_float64s(None, ptr::null_mut(), 0, None));
        is_null(brolga_object_copy_int64s(None, ptr::null_mut(), 0, None));
        is_null(brolga_object_copy_string(None, ptr::null_mut(), 0, None));
        is_null(brolga_error_new(ptr::null(), 3));
        brolga_text_free(ptr::null_mut());
    }
    brolga_options_free(None);
    brolga_engine_free(None);
    brolga_program_free(None);
    brolga_unit_free(None);
    brolga_function_free(None);
    brolga_session_free(None);
    brolga_dylib_free(None);
    brolga_runtime_free(None);
    is_null(brolga_limits_set_timeout(None, 1));
    is_null(brolga_limits_set_fuel(None, 1));
    is_null(brolga_options_set_fuel(None, true));
    assert_eq!(brolga_limits_fuel_left(None), 0);
    brolga_limits_cancel(None);
    brolga_limits_clear(None);
    brolga_limits_free(None);
    brolga_interrupt_raise(None);
    brolga_interrupt_free(None);
    brolga_object_free(None);
    brolga_error_free(None);
    assert_eq!(brolga_error_code(None), BrolgaCode::Ok);
    assert!(brolga_error_exception(None).is_null() && brolga_error_file(None).is_null());
    assert_eq!((brolga_error_line(None), brolga_error_column(None)), (0, 0));
}

#[test]
fn null_pointers_of_dylibs_are_errors_or_nothing() {
    let (text, nothing) = (c"text".as_ptr(), ptr::null_mut());
    is_null(brolga_session_dump(None, None));
    is_null(brolga_dylib_name(None, None));
    is_null(brolga_dylib_unlink(None, None));
    is_null(brolga_dylib_open(None));
    is_null(brolga_dylib_update(None));
    is_null(brolga_dylib_close(None));
    is_null(brolga_dylib_clear(None, 0));
    is_null(brolga_dylib_end_reexport(None, None));
    is_null(brolga_dylib_tracker(None, 0, None));
    is_null(brolga_dylib_tracked_by(None, None, None));
    is_null(brolga_tracker_remove(None, 0));
    is_null(brolga_tracker_transfer(None, None));
    is_null(brolga_dylib_symbols(None, None));
    is_null(brolga_symbols_get(None, 0, None));
    is_null(brolga_definitions_set_mode(None, 0));
    is_null(brolga_definitions_set_tiered(None, 1));
    is_null(brolga_definitions_set_interpreted(None, 1));
    is_null(brolga_definitions_set_weak(None));
    is_null(brolga_definitions_set_hidden(None));
    is_null(brolga_definitions_set_inlinable(None));
    is_null(brolga_definitions_set_together(None));
    is_null(brolga_definitions_set_start(None, 0));
    is_null(brolga_definitions_define(None));
    is_null(brolga_definitions_redefine(None, None));
    is_null(brolga_request_wait(None, None));
    is_null(brolga_function_c_address(None, None));
    is_null(brolga_responsibility_emit(None));
    // SAFETY: every pointer is null, or refers to a text that ends in a zero byte; the lengths beside null pointers are 0 or are refused.
    unsafe {
        is_null(brolga_session_empty_dylib(None, text, None));
        is_null(brolga_session_find_dylib(None, text, None));
        is_null(brolga_session_close_dylibs(None, ptr::null(), 0, 0));
        is_null(brolga_session_show_debuggers(None, text));
        is_null(brolga_session_report_failures(None, None, nothing, None));
        is_null(brolga_session_observe(None, None, nothing, None));
        is_null(brolga_dylib_redefine_host(None, text, None, nothing, None, None));
        is_null(brolga_dylib_set_links(None, ptr::null(), 0));
        is_null(brolga_dylib_links(None, ptr::null_mut(), 0, None));
        is_null(brolga_dylib_remove_all(None, ptr::null(), 0));
        is_null(brolga_dylib_reexport(None, None, 0, ptr::null(), 0));
        is_null(brolga_dylib_alias(None, text, None, text));
        is_null(brolga_dylib_read(None, text, text, 4, false, None));
        is_null(brolga_definitions_add_initializer(None, text));
        is_null(brolga_definitions_add_finalizer(None, ptr::null()));
        is_null(brolga_dylib_functions(None, ptr::null(), 0, ptr::null_mut()));
        is_null(brolga_dylib_request(None, text, None));
        is_null(brolga_dylib_request_then(None, text, None, nothing));
        is_null(brolga_dylib_define_c_symbol(None, text, text.cast()));
        is_null(brolga_dylib_redefine_c_symbol(None, text, text.cast(), None));
        is_null(brolga_dylib_c_symbol(None, text, None));
        is_null(brolga_dylib_add_object(None, text, text.cast(), 4));
        is_null(brolga_dylib_add_objects(None, ptr::null(), 0));
        is_null(brolga_dylib_add_archive(None, text, text.cast(), 4));
        is_null(brolga_dylib_add_library(None, text));
        is_null(brolga_dylib_add_process_symbols(None, None, nothing, None));
        is_null(brolga_dylib_add_generator(None, None, nothing, None));
        is_null(brolga_missing_define(None, text, text.cast()));
        is_null(brolga_dylib_promise(None, ptr::null(), 0, None, nothing, None));
        is_null(brolga_promised_keep(None, text, text, 4));
        is_null(brolga_dylib_promise_c_symbols(None, ptr::null(), 0, None, nothing, None));
        is_null(brolga_responsibility_is_requested(None, text, None));
        is_null(brolga_responsibility_resolve(None, text, text.cast()));
        is_null(brolga_responsibility_need(None, text));
        is_null(brolga_responsibility_delegate(None, ptr::null(), 0, None));
        is_null(brolga_responsibility_hand_back(None, ptr::null(), 0, None, nothing, None));
    }
    brolga_definitions_free(None);
    brolga_tracker_free(None);
    brolga_symbols_free(None);
    brolga_request_free(None);
    brolga_c_symbol_free(None);
    brolga_missing_done(None);
    brolga_missing_fail(None, None);
    brolga_responsibility_fail(None, None);
    assert!(brolga_c_symbol_address(None).is_null() && brolga_promised_dylib(None).is_null());
    assert_eq!(
        (brolga_missing_count(None), brolga_responsibility_count(None), brolga_symbols_count(None)),
        (0, 0, 0)
    );
    assert!(brolga_missing_name(None, 0).is_null() && brolga_responsibility_name(None, 0).is_null());
    assert!(brolga_symbols_user(None, 0, 0).is_null() && brolga_symbols_waits_for(None, 0, 0).is_null());
    assert!(brolga_request_is_done(None), "a wait for it is short: it is an error");
}

/// The result of a function of the API.
fn out<T>(call: impl FnOnce(Option<&mut MaybeUninit<T>>) -> Option<Box<BrolgaError>>) -> T {
    let mut place = MaybeUninit::uninit();
    assert!(call(Some(&mut place)).is_none(), "the call succeeds");
    // SAFETY: a function that succeeds has written its output.
    unsafe { place.assume_init() }
}

/// An object of the API, as its owner has it.
fn owned<T>(call: impl FnOnce(Option<&mut MaybeUninit<*mut T>>) -> Option<Box<BrolgaError>>) -> Box<T> {
    // SAFETY: the API returns each result of `Box::into_raw` once.
    unsafe { Box::from_raw(out(call)) }
}

/// The code of the error that a call returns.
fn code(error: Option<Box<BrolgaError>>) -> BrolgaCode {
    brolga_error_code(error.as_deref())
}

const MANY: &str = "
function ninth(a::Int64, b::Int64, c::Int64, d::Int64, e::Int64, f::Int64, g::Int64, h::Int64, i::Int64)::Int64
1 ─      return i
end
function same(text::String)::String
1 ─      return text
end
function letter(c::Char, none::Nothing)::Char
1 ─      return c
end";

#[test]
fn arguments_are_many_or_wrong() {
    let engine = owned(|place| brolga_engine_new(None, place));
    let other = owned(|place| brolga_engine_new(None, place));
    let elsewhere = owned(|place| brolga_engine_runtime(Some(&other), place));
    // SAFETY: texts end in a zero byte, or their length is said.
    let program = owned(|place| unsafe {
        brolga_program_read(c"many".as_ptr(), MANY.as_ptr().cast(), MANY.len(), place)
    });
    let unit = owned(|place| brolga_engine_compile(Some(&engine), Some(&program), place));
    let function = |name: &std::ffi::CStr| {
        // SAFETY: as above.
        owned(|place| unsafe { brolga_unit_function(Some(&unit), name.as_ptr(), place) })
    };
    let call =
        |function: &BrolgaFunction, args: &[BrolgaValue], result: Option<&mut MaybeUninit<BrolgaValue>>| {
            // SAFETY: the values have the members of their kinds, and objects among them are alive.
            unsafe { brolga_function_call(Some(function), args.as_ptr(), args.len(), result) }
        };

    let nine: Vec<BrolgaValue> = (1..=9).map(|n| brolga_int64(n)).collect();
    let ninth = function(c"ninth");
    let result = out(|place| call(&ninth, &nine, place));
    // SAFETY: the kind is `Int64`'s.
    assert_eq!((result.kind, unsafe { result.bits.int64 }), (BrolgaKind::Int64 as u32, 9));
    assert_eq!(code(call(&ninth, &nine[1..], None)), BrolgaCode::Argument, "too few");
    let mut wrong = nine.clone();
    wrong[8] = brolga_float64(9.0);
    assert_eq!(code(call(&ninth, &wrong, None)), BrolgaCode::Argument, "a float for an integer");
    wrong[8].kind = 99;
    assert_eq!(code(call(&ninth, &wrong, None)), BrolgaCode::Argument, "no kind");
    wrong[8] = brolga_object(ptr::null_mut());
    assert_eq!(code(call(&ninth, &wrong, None)), BrolgaCode::Argument, "no object");

    let char = |code: u32| BrolgaValue { kind: BrolgaKind::Char as u32, bits: BrolgaBits { uint32: code } };
    let letter = function(c"letter");
    let result = out(|place| call(&letter, &[char(0xe9), brolga_nothing()], place));
    // SAFETY: the kind is `Char`'s.
    assert_eq!((result.kind, unsafe { result.bits.uint32 }), (BrolgaKind::Char as u32, 0xe9));
    assert_eq!(
        code(call(&letter, &[char(0xd800), brolga_nothing()], None)),
        BrolgaCode::Argument,
        "no character"
    );

    // SAFETY: there is one byte.
    let mut text = owned(|place| unsafe { brolga_object_string(Some(&elsewhere), c"a".as_ptr(), 1, place) });
    let same = function(c"same");
    let foreign = [brolga_object(&raw mut *text)];
    assert_eq!(code(call(&same, &foreign, None)), BrolgaCode::Argument, "an object of another heap");
    assert_eq!(code(call(&same, &[brolga_int64(1)], None)), BrolgaCode::Exception, "no method takes it");
}

/// A routine that would not end: a vector that contains itself is splatted. And one that is immediate: an insertion before 2^62 elements without bytes.
const ENDLESS: &str = "
function endless(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Any}, svec(Any, Int64), 0, :(:ccall), Vector{Any}, 3))::Vector{Any}
│        Base.arrayset(true, %1, Base.iterate, 1)::Vector{Any}
│        Base.arrayset(true, %1, Core._apply_iterate, 2)::Vector{Any}
│        Base.arrayset(true, %1, %1, 3)::Vector{Any}
│   %5 =   builtin Core._apply_iterate(Base.iterate, Core._apply_iterate, %1)::Any
│        Core.donotdelete(%5)::Nothing
└──      return n
end
function huge(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Nothing}, svec(Any, Int64), 0, :(:ccall), Vector{Nothing}, 4611686018427387904))::Vector{Nothing}
│        $(Expr(:foreigncall, :(:jl_array_grow_at), Nothing, svec(Any, Int64, Int64), 0, :(:ccall), :(%1), 1, 1))::Nothing
└──      return n
end";

#[test]
fn a_routine_that_would_not_end_ends_at_the_deadline() {
    let engine = owned(|place| brolga_engine_new(None, place));
    // SAFETY: texts end in a zero byte, or their length is said.
    let program = owned(|place| unsafe {
        brolga_program_read(c"endless".as_ptr(), ENDLESS.as_ptr().cast(), ENDLESS.len(), place)
    });
    let unit = owned(|place| brolga_engine_compile(Some(&engine), Some(&program), place));
    let call = |name: &std::ffi::CStr| {
        // SAFETY: as above.
        let function = owned(|place| unsafe { brolga_unit_function(Some(&unit), name.as_ptr(), place) });
        let limits = brolga_limits_new();
        assert!(brolga_limits_set_timeout(Some(&limits), 50_000_000).is_none());
        let args = [brolga_int64(7)];
        // SAFETY: the values have the members of their kinds.
        code(unsafe {
            brolga_function_call_limited(Some(&function), Some(&limits), args.as_ptr(), args.len(), None)
        })
    };
    assert_eq!(call(c"endless"), BrolgaCode::Ended);
    assert_eq!(call(c"huge"), BrolgaCode::Ok);
}
