//! Plain calls, plain host functions, and numbers that are copied or borrowed: what they do, and what they refuse.

#[path = "support/results.rs"]
mod results;

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga_capi::definitions::*;
use brolga_capi::dylib::*;
use brolga_capi::error::*;
use brolga_capi::function::*;
use brolga_capi::host::*;
use brolga_capi::limits::*;
use brolga_capi::look_up::*;
use brolga_capi::numbers::*;
use brolga_capi::object::*;
use brolga_capi::plain::*;
use brolga_capi::runtime::*;
use brolga_capi::session::*;
use brolga_capi::text::brolga_error_new;
use brolga_capi::value::*;

use results::{Failed, message, out, owned};

fn code(error: Failed) -> BrolgaCode {
    brolga_error_code(error.as_deref())
}

const PROGRAM: &str = "
function inverse(x::Int64, by::Float64)::Float64
1 ─ %1 = Base.checked_sdiv_int(1000, x)::Int64
│   %2 = Base.sitofp(Float64, %1)::Float64
│   %3 = Base.mul_float(%2, by)::Float64
└──      return %3
end
function many(a::Int8, b::UInt16, c::Bool, d::Float32, e::Int64, f::Int64, g::Int64, h::Int64, i::UInt8)::Int64
1 ─ %1 = Base.sext_int(Int64, a)::Int64
│   %2 = Base.zext_int(Int64, b)::Int64
│   %3 = Base.zext_int(Int64, c)::Int64
│   %4 = Base.fptosi(Int64, d)::Int64
│   %5 = Base.zext_int(Int64, i)::Int64
│   %6 = Base.add_int(%1, %2)::Int64
│   %7 = Base.add_int(%6, %3)::Int64
│   %8 = Base.add_int(%7, %4)::Int64
│   %9 = Base.add_int(%8, %5)::Int64
│   %10 = Base.add_int(%9, e)::Int64
│   %11 = Base.add_int(%10, h)::Int64
└──      return %11
end
function silent(x::Int64)::Nothing
1 ─ %1 = Base.checked_sdiv_int(1000, x)::Int64
└──      return nothing
end
function endless(x::Int64)::Int64
1 ─      goto #2
2 ─      goto #2
end
function letter(c::Char)::Char
1 ─      return c
end
function same(text::String)::String
1 ─      return text
end
function first(v::Vector{Float64})::Float64
1 ─ %1 = Base.arrayref(true, v, 1)::Float64
│        Base.arrayset(true, v, 0.25, 1)::Vector{Float64}
└──      return %1
end
";

struct Setting {
    session: Box<BrolgaSession>,
    main: Box<BrolgaDylib>,
    runtime: Box<BrolgaRuntime>,
}

impl Setting {
    fn new() -> Setting {
        let session = owned(|place| brolga_session_new(None, 0, place));
        // SAFETY: the text ends in a zero byte.
        let main = owned(|place| unsafe { brolga_session_dylib(Some(&session), c"main".as_ptr(), place) });
        let runtime = owned(|place| brolga_session_runtime(Some(&session), place));
        let setting = Setting { session, main, runtime };
        setting.define(PROGRAM);
        setting
    }

    fn define(&self, text: &str) {
        let (main, mode) = (Some(&*self.main), BrolgaMode::Eager as u32);
        // SAFETY: the text is as long as is said.
        let defined =
            unsafe { brolga_dylib_define(main, c"plain".as_ptr(), text.as_ptr().cast(), text.len(), mode) };
        assert!(defined.is_none(), "{defined:?}");
    }

    fn function(&self, name: &CStr) -> Box<BrolgaFunction> {
        // SAFETY: the text ends in a zero byte.
        owned(|place| unsafe { brolga_dylib_function(Some(&self.main), name.as_ptr(), place) })
    }
}

/// The address for plain calls, with the value or a code.
fn address(
    function: &BrolgaFunction,
    params: &[BrolgaKind],
    result: BrolgaKind,
    is_code: bool,
) -> Result<unsafe extern "C" fn(), Failed> {
    let params: Vec<u32> = params.iter().map(|kind| *kind as u32).collect();
    let mut place = MaybeUninit::uninit();
    let get = if is_code { brolga_function_code_address } else { brolga_function_address };
    // SAFETY: there are as many numbers as is said.
    let error =
        unsafe { get(Some(function), params.as_ptr(), params.len(), result as u32, Some(&mut place)) };
    // SAFETY: a function that succeeds has written its output.
    if error.is_some() { Err(error) } else { Ok(unsafe { place.assume_init() }.expect("an address")) }
}

use BrolgaKind as Kind;

#[test]
fn plain_calls_return_values_or_codes() {
    let setting = Setting::new();
    let inverse = setting.function(c"inverse");
    let kinds = [Kind::Int64, Kind::Float64];
    let value = address(&inverse, &kinds, Kind::Float64, false).unwrap();
    assert_eq!(
        address(&inverse, &kinds, Kind::Float64, false).unwrap() as usize,
        value as usize,
        "made once"
    );
    let coded = address(&inverse, &kinds, Kind::Float64, true).unwrap();
    // SAFETY: the kinds match the prototypes.
    let (value, coded) = unsafe {
        (
            std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn(i64, f64) -> f64>(value),
            std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn(i64, f64, *mut f64) -> u32>(
                coded,
            ),
        )
    };
    assert!(brolga_take_error().is_none());
    let mut given = 7.0;
    // SAFETY: the prototypes are the functions'.
    unsafe {
        assert_eq!(value(10, 0.5), 50.0);
        assert_eq!(value(0, 0.5), 0.0);
        assert_eq!(value(0, 0.5), 0.0);
        let error = brolga_take_error();
        assert_eq!(CStr::from_ptr(brolga_error_exception(error.as_deref())), c"DivideError");
        assert!(brolga_take_error().is_none(), "the first one is kept");
        assert_eq!((coded(10, 0.5, &raw mut given), given), (0, 50.0));
        assert_eq!(coded(10, 0.5, ptr::null_mut()), 0);
        assert_eq!((coded(0, 0.5, &raw mut given), given), (BrolgaCode::Exception as u32, 50.0));
        assert_eq!(code(brolga_take_error()), BrolgaCode::Exception);
        assert_eq!(value(10, 0.5), 50.0, "and it is called on");
        // A thread that C has made.
        let there = std::thread::spawn(move || {
            let found = (value(10, 0.25), value(0, 1.0));
            (found, code(brolga_take_error()))
        });
        assert_eq!(there.join().unwrap(), ((25.0, 0.0), BrolgaCode::Exception));
        assert!(brolga_take_error().is_none(), "errors are the thread's");
    }
    let mut word = MaybeUninit::uninit();
    let args = [10u64, 0.5f64.to_bits()];
    // SAFETY: there are two words.
    assert!(unsafe { brolga_function_call_words(Some(&inverse), args.as_ptr(), Some(&mut word)) }.is_none());
    // SAFETY: the call has written it.
    assert_eq!(f64::from_bits(unsafe { word.assume_init() }), 50.0);
}

#[test]
fn narrow_and_many_arguments_arrive() {
    let setting = Setting::new();
    let many = setting.function(c"many");
    let kinds = [
        Kind::Int8,
        Kind::Uint16,
        Kind::Bool,
        Kind::Float32,
        Kind::Int64,
        Kind::Int64,
        Kind::Int64,
        Kind::Int64,
        Kind::Uint8,
    ];
    let many = address(&many, &kinds, Kind::Int64, false).unwrap();
    type Many = unsafe extern "C" fn(i8, u16, bool, f32, i64, i64, i64, i64, u8) -> i64;
    // SAFETY: the kinds match the prototype.
    let many: Many = unsafe { std::mem::transmute(many) };
    // SAFETY: the prototype is the function's.
    assert_eq!(unsafe { many(-1, 10, true, 100.5, 1000, 0, 0, 10_000, 200) }, 11_310);
    let silent = setting.function(c"silent");
    let silent = address(&silent, &[Kind::Int64], Kind::Nothing, true).unwrap();
    // SAFETY: as above.
    unsafe {
        let silent: unsafe extern "C" fn(i64, *mut c_void) -> u32 = std::mem::transmute(silent);
        assert_eq!(
            (silent(1, ptr::null_mut()), silent(0, ptr::null_mut())),
            (0, BrolgaCode::Exception as u32)
        );
        assert!(brolga_take_error().is_some());
    }
}

#[test]
fn wrong_kinds_have_no_address() {
    let setting = Setting::new();
    let inverse = setting.function(c"inverse");
    let refused = |function: &BrolgaFunction, params: &[Kind], result| {
        message(address(function, params, result, false).unwrap_err())
    };
    assert!(refused(&inverse, &[Kind::Int64], Kind::Float64).contains("takes 2 arguments, not 1"));
    assert!(refused(&inverse, &[Kind::Int32, Kind::Float64], Kind::Float64).contains("argument 1"));
    assert!(refused(&inverse, &[Kind::Int64, Kind::Float64], Kind::Int64).contains("the result"));
    assert!(
        refused(&setting.function(c"letter"), &[Kind::Char], Kind::Char).contains("`brolga_function_call`")
    );
    assert!(
        refused(&setting.function(c"same"), &[Kind::Object], Kind::Object).contains("`brolga_function_call`")
    );
    let silent = setting.function(c"silent");
    assert!(refused(&silent, &[], Kind::Nothing).contains("takes 1 argument, not 0"));
    // SAFETY: null, or numbers as many as is said.
    unsafe {
        let wrong = [99];
        let place = &mut MaybeUninit::uninit();
        assert_eq!(
            code(brolga_function_address(Some(&silent), wrong.as_ptr(), 1, 0, Some(place))),
            BrolgaCode::Argument
        );
        assert_eq!(
            code(brolga_function_address(Some(&silent), ptr::null(), 1, 0, Some(place))),
            BrolgaCode::Argument
        );
        assert_eq!(code(brolga_function_address(None, ptr::null(), 0, 0, Some(place))), BrolgaCode::Argument);
        assert_eq!(
            code(brolga_function_code_address(Some(&silent), wrong.as_ptr(), 1, 0, None)),
            BrolgaCode::Argument
        );
        assert_eq!(code(brolga_function_call_words(None, ptr::null(), None)), BrolgaCode::Argument);
        assert_eq!(code(brolga_function_call_words(Some(&silent), ptr::null(), None)), BrolgaCode::Argument);
        let same = setting.function(c"same");
        assert_eq!(
            code(brolga_function_call_words(Some(&same), [0u64].as_ptr(), None)),
            BrolgaCode::Argument
        );
    }
}

/// The code of a plain call of `endless`.
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// Calls the function of C twice.
unsafe extern "C" fn twice(data: *mut c_void) {
    // SAFETY: the data is the address for plain calls of `endless`, with a code.
    unsafe {
        let endless: unsafe extern "C" fn(i64, *mut i64) -> u32 = std::mem::transmute(data);
        for _ in 0..2 {
            ENDED.fetch_add(endless(1, ptr::null_mut()) as usize, Ordering::SeqCst);
        }
    }
}

#[test]
fn limits_end_plain_calls() {
    let setting = Setting::new();
    let endless = setting.function(c"endless");
    let endless = address(&endless, &[Kind::Int64], Kind::Int64, true).unwrap();
    let limits = brolga_limits_new();
    assert!(brolga_limits_set_timeout(Some(&limits), 20_000_000).is_none());
    // SAFETY: `twice` returns.
    unsafe {
        let limited = brolga_runtime_limited(
            Some(&setting.runtime),
            Some(&limits),
            Some(twice),
            endless as *mut c_void,
        );
        assert_eq!(code(limited), BrolgaCode::Ended);
        assert_eq!(
            code(brolga_runtime_limited(None, None, Some(twice), ptr::null_mut())),
            BrolgaCode::Argument
        );
        assert_eq!(
            code(brolga_runtime_limited(Some(&setting.runtime), None, None, ptr::null_mut())),
            BrolgaCode::Argument
        );
    }
    // Within the limits an end is an exception that no program catches.
    assert_eq!(ENDED.load(Ordering::SeqCst), 2 * BrolgaCode::Exception as usize);
    assert_eq!(code(brolga_take_error()), BrolgaCode::Exception);
    assert!(brolga_limits_set_fuel(Some(&limits), 5).is_none());
    // SAFETY: as above.
    let limited = unsafe {
        brolga_runtime_limited(Some(&setting.runtime), Some(&limits), Some(twice), endless as *mut c_void)
    };
    assert!(message(limited).contains("`brolga_options_set_fuel`"));
}

static FREED: AtomicUsize = AtomicUsize::new(0);

/// Counts the call in its data, which is null or a counter.
unsafe extern "C" fn count(data: *mut c_void) {
    // SAFETY: as documented.
    if let Some(counter) = unsafe { data.cast::<AtomicUsize>().as_ref() } {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

fn counter(counter: &'static AtomicUsize) -> *mut c_void {
    ptr::from_ref(counter).cast_mut().cast()
}

extern "C" fn scaled(_: *mut c_void, x: f64, n: u8) -> f64 {
    x * f64::from(n)
}

extern "C" fn fact(data: *mut c_void) {
    assert_eq!(data, counter(&FREED));
}

#[repr(C)]
struct Outcome {
    value: f64,
    error: Option<Box<BrolgaError>>,
}

extern "C" fn root(_: *mut c_void, x: f64) -> Outcome {
    let text = "no root";
    // SAFETY: the text is as long as is said.
    let error = (x < 0.0).then(|| unsafe { brolga_error_new(text.as_ptr().cast(), text.len()) }).flatten();
    Outcome { value: x.sqrt(), error }
}

extern "C" fn refuse(_: *mut c_void) -> Option<Box<BrolgaError>> {
    // SAFETY: the text is as long as is said.
    unsafe { brolga_error_new(c"never".as_ptr(), 5) }
}

#[test]
fn plain_host_functions_are_called_in_registers_and_fail() {
    let setting = Setting::new();
    let define = |header: &CStr, function: *const (), fails: bool| {
        // SAFETY: the functions have the types of their headers.
        unsafe {
            let function = std::mem::transmute::<*const (), BrolgaPlainFn>(function);
            brolga_dylib_define_plain_host(
                Some(&setting.main),
                header.as_ptr(),
                function,
                fails,
                counter(&FREED),
                Some(count),
            )
        }
    };
    assert!(define(c"scaled(x::Float64, n::UInt8)::Float64", scaled as *const (), false).is_none());
    assert!(define(c"fact()::Nothing", fact as *const (), false).is_none());
    assert!(define(c"root(x::Float64)::Float64", root as *const (), true).is_none());
    assert!(define(c"refuse()::Nothing", refuse as *const (), true).is_none());
    assert_eq!(FREED.load(Ordering::SeqCst), 0);
    for wrong in [
        c"f(x::String)::Int64",
        c"f(x::Char)::Int64",
        c"f()::Vector{Int64}",
        c"f(",
        c"scaled(x::Float64, n::UInt8)::Float64",
    ] {
        assert!(define(wrong, scaled as *const (), false).is_some(), "{wrong:?}");
    }
    assert!(define(c"f()::Int64", ptr::null(), false).is_some());
    assert_eq!(FREED.load(Ordering::SeqCst), 6, "the data of each definition that failed");
    setting.define(
        "function all(x::Float64)::Float64
1 ─      invoke Main.fact()::Nothing
│   %2 = invoke Main.root(x::Float64)::Float64
│   %3 = invoke Main.scaled(%2::Float64, 0x03::UInt8)::Float64
└──      return %3
end
function refused()::Nothing
1 ─      invoke Main.refuse()::Nothing
└──      return nothing
end",
    );
    let call = |name: &CStr, args: &[BrolgaValue]| {
        let mut result = MaybeUninit::uninit();
        let function = setting.function(name);
        // SAFETY: the values have the members of their kinds.
        let error =
            unsafe { brolga_function_call(Some(&function), args.as_ptr(), args.len(), Some(&mut result)) };
        // SAFETY: a call that succeeds has written a `Float64`.
        if error.is_some() { Err(message(error)) } else { Ok(unsafe { result.assume_init().bits.float64 }) }
    };
    assert_eq!(call(c"all", &[brolga_float64(16.0)]), Ok(12.0));
    assert!(call(c"all", &[brolga_float64(-1.0)]).unwrap_err().contains("no root"));
    assert!(call(c"refused", &[]).unwrap_err().contains("never"));
    assert!(brolga_session_end(Some(&setting.session)).is_none());
    drop(setting);
    assert_eq!(FREED.load(Ordering::SeqCst), 10);
}

/// Checks its arguments, and returns the one of the number in the last.
unsafe extern "C" fn pick(
    _: *mut c_void,
    args: *const BrolgaValue,
    count: usize,
    result: *mut BrolgaValue,
) -> *mut BrolgaError {
    // SAFETY: there are that many arguments, and room for a result.
    unsafe {
        let args = std::slice::from_raw_parts(args, count);
        let kinds: Vec<u32> = args.iter().map(|arg| arg.kind).collect();
        let expected =
            [Kind::Int8, Kind::Uint16, Kind::Bool, Kind::Float32, Kind::Char, Kind::Float64, Kind::Int64];
        assert_eq!(kinds, expected.map(|kind| kind as u32));
        let values = (args[0].bits.int8, args[1].bits.uint16, args[2].bits.boolean, args[3].bits.float32);
        assert_eq!(values, (-1, 65_535, true, 1.5));
        assert_eq!((args[4].bits.uint32, args[5].bits.float64), (0xe9, -0.25));
        match usize::try_from(args[6].bits.int64) {
            Ok(n) if n < 7 => result.write(args[n]),
            Ok(7) => return brolga_error_new(c"seventh".as_ptr(), 7).map_or(ptr::null_mut(), Box::into_raw),
            _ => result.write(brolga_nothing()),
        }
    }
    ptr::null_mut()
}

unsafe extern "C" fn six(
    _: *mut c_void,
    _: *const BrolgaValue,
    count: usize,
    result: *mut BrolgaValue,
) -> *mut BrolgaError {
    assert_eq!(count, 0);
    // SAFETY: there is room for a result.
    unsafe { result.write(brolga_int64(6)) };
    ptr::null_mut()
}

#[test]
fn host_functions_of_numbers_get_and_return_every_kind() {
    let setting = Setting::new();
    let define = |header: &CStr, function: HostOfTest| {
        // SAFETY: the functions are what `BrolgaHostFn` says.
        let defined = unsafe {
            brolga_dylib_define_host(
                Some(&setting.main),
                header.as_ptr(),
                Some(function),
                ptr::null_mut(),
                None,
            )
        };
        assert!(defined.is_none(), "{defined:?}");
    };
    define(c"six()::Int64", six);
    let mut text =
        String::from("function seen()::Int64\n1 ─ %1 = invoke Main.six()::Int64\n└── return %1\nend\n");
    let results = [
        ("Int8", "Base.sext_int(Int64, %2)", -1),
        ("UInt16", "Base.zext_int(Int64, %2)", 65_535),
        ("Bool", "Base.zext_int(Int64, %2)", 1),
        ("Float32", "Base.fptosi(Int64, %2)", 1),
        ("Char", "Base.zext_int(Int64, %3)", 0xc3a9_0000),
        ("Float64", "Base.fptosi(Int64, %4)", -1),
        ("Int64", "Base.add_int(%2, 0)", 6),
    ];
    for (n, (ty, convert, _)) in results.iter().enumerate() {
        let header =
            format!("pick{ty}(a::Int8, b::UInt16, c::Bool, d::Float32, e::Char, f::Float64, g::Int64)::{ty}");
        define(&std::ffi::CString::new(header).unwrap(), pick);
        let bits =
            if *ty == "Char" { "Base.bitcast(UInt32, %2)::UInt32" } else { "Base.add_int(n, 0)::Int64" };
        let four =
            if *ty == "Float64" { "Base.mul_float(%2, 4.0)::Float64" } else { "Base.add_int(n, 0)::Int64" };
        text += &format!(
            "function of{ty}(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, {n})::Int64
│   %2 = invoke Main.pick{ty}(-1::Int8, 0xffff::UInt16, true::Bool, 1.5f0::Float32, 'é'::Char, -0.25::Float64, %1::Int64)::{ty}
│   %3 = {bits}
│   %4 = {four}
│   %5 = {convert}::Int64
└──      return %5
end\n"
        );
    }
    setting.define(&text);
    let call = |name: &CStr, args: &[BrolgaValue]| {
        let (function, mut result) = (setting.function(name), MaybeUninit::uninit());
        // SAFETY: the values have the members of their kinds.
        let error =
            unsafe { brolga_function_call(Some(&function), args.as_ptr(), args.len(), Some(&mut result)) };
        // SAFETY: a call that succeeds has written an `Int64`.
        if error.is_some() { Err(message(error)) } else { Ok(unsafe { result.assume_init().bits.int64 }) }
    };
    assert_eq!(call(c"seen", &[]), Ok(6));
    for (ty, _, expected) in results {
        let name = std::ffi::CString::new(format!("of{ty}")).unwrap();
        assert_eq!(call(&name, &[brolga_int64(0)]), Ok(expected), "{ty}");
    }
    assert!(call(c"ofInt8", &[brolga_int64(7)]).unwrap_err().contains("seventh"));
    assert!(call(c"ofInt8", &[brolga_int64(8)]).unwrap_err().contains("Int8"), "nothing");
    assert!(call(c"ofInt8", &[brolga_int64(1)]).unwrap_err().contains("Int8"), "another kind");
}

type HostOfTest =
    unsafe extern "C" fn(*mut c_void, *const BrolgaValue, usize, *mut BrolgaValue) -> *mut BrolgaError;

/// The data of `again`: a function of the program that it calls, and its run time.
struct Back {
    silent: unsafe extern "C" fn(i64, *mut c_void) -> u32,
    runtime: Box<BrolgaRuntime>,
}

/// Calls back into the program, makes an object and collects. Returns the code of the call.
extern "C" fn again(data: *mut c_void, x: i64) -> i64 {
    // SAFETY: the data of `again` is a `Back`, which lives as long as the test.
    let back = unsafe { &*data.cast::<Back>() };
    // SAFETY: the prototype is the function's.
    let code = unsafe { (back.silent)(x, ptr::null_mut()) };
    // SAFETY: there are four bytes.
    let text =
        owned(|place| unsafe { brolga_object_string(Some(&back.runtime), c"text".as_ptr(), 4, place) });
    assert!(brolga_runtime_collect(Some(&back.runtime)).is_none());
    brolga_object_free(Some(text));
    i64::from(code)
}

#[test]
fn plain_host_functions_call_back_and_collect() {
    let setting = Setting::new();
    let silent = setting.function(c"silent");
    let silent =
        address(&silent, &[Kind::Int64], Kind::Nothing, true).map(|address| (silent, address)).unwrap();
    // SAFETY: the kinds match the prototype.
    let call: unsafe extern "C" fn(i64, *mut c_void) -> u32 = unsafe { std::mem::transmute(silent.1) };
    let runtime = owned(|place| brolga_session_runtime(Some(&setting.session), place));
    let mut back = Back { silent: call, runtime };
    // SAFETY: `again` has the type of its header, and its data lives as long as the session.
    let defined = unsafe {
        let function = std::mem::transmute::<*const (), BrolgaPlainFn>(again as *const ());
        let (header, data) = (c"again(x::Int64)::Int64".as_ptr(), (&raw mut back).cast());
        brolga_dylib_define_plain_host(Some(&setting.main), header, function, false, data, None)
    };
    assert!(defined.is_none(), "{defined:?}");
    setting.define(
        "function both(x::Int64)::Int64
1 ─ %1 = invoke Base.string(\"kept \"::String, x::Int64)::String
│   %2 = invoke Main.again(x::Int64)::Int64
│   %3 = invoke Main.again(0::Int64)::Int64
│   %4 = Base.mul_int(%3, 10)::Int64
│   %5 = Base.add_int(%2, %4)::Int64
│   %6 = Base.sizeof(%1)::Int64
│   %7 = Base.mul_int(%6, 100)::Int64
│   %8 = Base.add_int(%5, %7)::Int64
└──      return %8
end",
    );
    let both = setting.function(c"both");
    let both = address(&both, &[Kind::Int64], Kind::Int64, false).map(|address| (both, address)).unwrap();
    // SAFETY: the kinds match the prototype.
    let both: unsafe extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(both.1) };
    // SAFETY: the prototype is the function's.
    assert_eq!(unsafe { both(5) }, 600 + 10 * BrolgaCode::Exception as i64);
    assert_eq!(code(brolga_take_error()), BrolgaCode::Exception, "of the call that has failed within");
}

#[test]
fn numbers_of_all_kinds_are_copied_and_borrowed() {
    let setting = Setting::new();
    let kinds = [
        (Kind::Bool, 1),
        (Kind::Int8, 1),
        (Kind::Uint8, 1),
        (Kind::Int16, 2),
        (Kind::Uint16, 2),
        (Kind::Int32, 4),
        (Kind::Uint32, 4),
        (Kind::Float32, 4),
        (Kind::Int64, 8),
        (Kind::Uint64, 8),
        (Kind::Float64, 8),
    ];
    static RELEASED: AtomicUsize = AtomicUsize::new(0);
    for (kind, size) in kinds {
        let bytes: Vec<u8> = (0..80)
            .map(|n| u8::from(kind == Kind::Bool) * (n % 2) + u8::from(kind != Kind::Bool) * n)
            .collect();
        let mut numbers = [0u64; 10];
        // SAFETY: there is room for the bytes, and all bits are numbers of the kind.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), numbers.as_mut_ptr().cast(), 80);
            let first = numbers.as_mut_ptr().cast::<c_void>();
            let copied = owned(|place| {
                brolga_object_numbers(Some(&setting.runtime), kind as u32, first, 80 / size, place)
            });
            let borrow = |place: Option<&mut MaybeUninit<*mut BrolgaObject>>| {
                brolga_object_borrow(
                    Some(&setting.runtime),
                    kind as u32,
                    first,
                    80 / size,
                    Some(count),
                    counter(&RELEASED),
                    place,
                )
            };
            let objects = match kind {
                Kind::Bool => {
                    assert_eq!(
                        code(borrow(Some(&mut MaybeUninit::uninit()))),
                        BrolgaCode::Argument,
                        "not all bits are values"
                    );
                    vec![copied]
                }
                _ => vec![copied, owned(borrow)],
            };
            for object in objects {
                let mut back = [0u8; 80];
                let to = back.as_mut_ptr().cast::<c_void>();
                let length =
                    out(|place| brolga_object_copy_numbers(Some(&object), kind as u32, to, 80 / size, place));
                assert_eq!((length, &back[..]), (80 / size, &bytes[..]), "{kind:?}");
                let wrong = if kind == Kind::Int64 { Kind::Uint64 } else { Kind::Int64 };
                let place = &mut MaybeUninit::uninit();
                let copied =
                    brolga_object_copy_numbers(Some(&object), wrong as u32, ptr::null_mut(), 0, Some(place));
                assert!(message(copied).contains("is not a `Vector{"));
            }
        }
    }
    assert!(brolga_runtime_collect(Some(&setting.runtime)).is_none());
    assert_eq!(RELEASED.load(Ordering::SeqCst), kinds.len(), "each column once, and that of `Bool` at once");
}

#[test]
fn programs_write_what_they_borrow() {
    static RELEASED: AtomicUsize = AtomicUsize::new(0);
    let setting = Setting::new();
    let mut numbers = [1.5, 2.5];
    let (runtime, kind) = (Some(&*setting.runtime), Kind::Float64 as u32);
    // SAFETY: the numbers are there until the release, and nothing else uses them.
    let mut column = owned(|place| unsafe {
        brolga_object_borrow(
            runtime,
            kind,
            numbers.as_mut_ptr().cast(),
            2,
            Some(count),
            counter(&RELEASED),
            place,
        )
    });
    let first = setting.function(c"first");
    let args = [brolga_object(&raw mut *column)];
    // SAFETY: the values have the members of their kinds.
    let value = out(|place| unsafe { brolga_function_call(Some(&first), args.as_ptr(), 1, place) });
    // SAFETY: the kind is `Float64`'s.
    assert_eq!(unsafe { value.bits.float64 }, 1.5);
    brolga_object_free(Some(column));
    assert!(brolga_runtime_collect(runtime).is_none());
    assert_eq!((RELEASED.load(Ordering::SeqCst), numbers), (1, [0.25, 2.5]));
}

#[test]
fn places_that_are_none_are_refused() {
    static RELEASED: AtomicUsize = AtomicUsize::new(0);
    let setting = Setting::new();
    let (runtime, float) = (Some(&*setting.runtime), Kind::Float64 as u32);
    let null = ptr::null_mut::<c_void>();
    let is_refused = |error: Failed| assert_eq!(code(error), BrolgaCode::Argument);
    let place = &mut MaybeUninit::uninit();
    // SAFETY: addresses are null or odd, and are refused before they are used.
    unsafe {
        let odd = ptr::without_provenance_mut::<c_void>(0x1001);
        let (count, data): (_, *mut c_void) =
            (Some(count as unsafe extern "C" fn(*mut c_void)), counter(&RELEASED));
        is_refused(brolga_object_borrow(runtime, float, null, 5, count, data, Some(place)));
        is_refused(brolga_object_borrow(runtime, float, odd, 5, count, data, Some(place)));
        is_refused(brolga_object_borrow(runtime, float, odd, usize::MAX, count, data, Some(place)));
        is_refused(brolga_object_borrow(runtime, Kind::Char as u32, odd, 5, count, data, Some(place)));
        is_refused(brolga_object_borrow(runtime, Kind::Object as u32, odd, 5, count, data, Some(place)));
        is_refused(brolga_object_borrow(runtime, 99, odd, 5, count, data, Some(place)));
        is_refused(brolga_object_borrow(None, float, null, 0, count, data, Some(place)));
        is_refused(brolga_object_borrow(runtime, float, null, 0, count, data, None));
        assert_eq!(RELEASED.load(Ordering::SeqCst), 8);
        is_refused(brolga_object_numbers(runtime, float, null, 5, Some(place)));
        is_refused(brolga_object_numbers(runtime, float, odd, 5, Some(place)));
        is_refused(brolga_object_numbers(runtime, Kind::Nothing as u32, odd, 5, Some(place)));
        is_refused(brolga_object_numbers(runtime, Kind::Bool as u32, [2u8].as_ptr().cast(), 1, Some(place)));
        is_refused(brolga_object_float64s(runtime, ptr::null(), 5, Some(place)));
        let empty = owned(|place| brolga_object_float64s(runtime, ptr::null(), 0, place));
        let borrowed = owned(|place| brolga_object_borrow(runtime, float, null, 0, count, data, place));
        let length = &mut MaybeUninit::uninit();
        is_refused(brolga_object_copy_float64s(None, ptr::null_mut(), 5, Some(length)));
        is_refused(brolga_object_copy_float64s(Some(&empty), ptr::null_mut(), 5, Some(length)));
        is_refused(brolga_object_copy_float64s(Some(&empty), odd.cast(), 5, Some(length)));
        is_refused(brolga_object_copy_int64s(Some(&empty), ptr::null_mut(), 0, Some(length)));
        assert_eq!(out(|place| brolga_object_copy_float64s(Some(&borrowed), ptr::null_mut(), 0, place)), 0);
        let text = owned(|place| brolga_object_string(runtime, c"text".as_ptr(), 4, place));
        is_refused(brolga_object_copy_string(Some(&text), ptr::null_mut(), 5, Some(length)));
        is_refused(brolga_object_copy_float64s(Some(&text), ptr::null_mut(), 0, Some(length)));
    }
}
