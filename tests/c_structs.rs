//! Structs by value to and from C, as the C compiler of the host passes them.
#![cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]

use brolga::{Engine, Evaluator, OptLevel, Options, Program, Verdict};

/// Structs of the C library: complex numbers of two sizes, quotients of two sizes.
const PROGRAM: &str = "\
struct Complex64
    re::Float64
    im::Float64
end
struct Complex32
    re::Float32
    im::Float32
end
struct Quotient
    quot::Int64
    rem::Int64
end
struct Small
    quot::Int32
    rem::Int32
end

function cabs(x::Float64, y::Float64)::Float64
1 ─ %1 = %new(Complex64, x, y)::Complex64
│   %2 = $(Expr(:foreigncall, :(:cabs), Float64, svec(Complex64), 0, :(:ccall), :(%1)))::Float64
└──      return %2
end

function cabsf(x::Float32, y::Float32)::Float32
1 ─ %1 = %new(Complex32, x, y)::Complex32
│   %2 = $(Expr(:foreigncall, :(:cabsf), Float32, svec(Complex32), 0, :(:ccall), :(%1)))::Float32
└──      return %2
end

function conj(x::Float64, y::Float64)::Tuple{Float64, Float64}
1 ─ %1 = %new(Complex64, x, y)::Complex64
│   %2 = $(Expr(:foreigncall, :(:conj), Complex64, svec(Complex64), 0, :(:ccall), :(%1)))::Complex64
│   %3 = Base.getfield(%2, :re)::Float64
│   %4 = Base.getfield(%2, :im)::Float64
│   %5 = Core.tuple(%3, %4)::Tuple{Float64, Float64}
└──      return %5
end

function conjf(x::Float32, y::Float32)::Tuple{Float32, Float32}
1 ─ %1 = %new(Complex32, x, y)::Complex32
│   %2 = $(Expr(:foreigncall, :(:conjf), Complex32, svec(Complex32), 0, :(:ccall), :(%1)))::Complex32
│   %3 = Base.getfield(%2, :re)::Float32
│   %4 = Base.getfield(%2, :im)::Float32
│   %5 = Core.tuple(%3, %4)::Tuple{Float32, Float32}
└──      return %5
end

function ldiv(x::Int64, y::Int64)::Tuple{Int64, Int64}
1 ─ %1 = $(Expr(:foreigncall, :(:ldiv), Quotient, svec(Int64, Int64), 0, :(:ccall), :(x), :(y)))::Quotient
│   %2 = Base.getfield(%1, :quot)::Int64
│   %3 = Base.getfield(%1, :rem)::Int64
│   %4 = Core.tuple(%2, %3)::Tuple{Int64, Int64}
└──      return %4
end

function div(x::Int32, y::Int32)::Tuple{Int32, Int32}
1 ─ %1 = $(Expr(:foreigncall, :(:div), Small, svec(Int32, Int32), 0, :(:ccall), :(x), :(y)))::Small
│   %2 = Base.getfield(%1, :quot)::Int32
│   %3 = Base.getfield(%1, :rem)::Int32
│   %4 = Core.tuple(%2, %3)::Tuple{Int32, Int32}
└──      return %4
end
";

#[test]
fn small_structs_pass_in_registers() {
    let program = Program::read("t", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        let cabs = unit.func::<(f64, f64), f64>("cabs").unwrap();
        assert_eq!(cabs.call((3.0, -4.0)), Ok(5.0));
        let cabsf = unit.func::<(f32, f32), f32>("cabsf").unwrap();
        assert_eq!(cabsf.call((-6.0, 8.0)), Ok(10.0));
        let conj = unit.func::<(f64, f64), (f64, f64)>("conj").unwrap();
        assert_eq!(conj.call((1.5, 2.5)), Ok((1.5, -2.5)));
        let conjf = unit.func::<(f32, f32), (f32, f32)>("conjf").unwrap();
        assert_eq!(conjf.call((1.5, 2.5)), Ok((1.5, -2.5)));
        let ldiv = unit.func::<(i64, i64), (i64, i64)>("ldiv").unwrap();
        assert_eq!(ldiv.call((-17, 5)), Ok((-3, -2)));
        let div = unit.func::<(i32, i32), (i32, i32)>("div").unwrap();
        assert_eq!(div.call((17, -5)), Ok((-3, 2)));
    }
}

/// Objects bring root placement, which reads what it is given as strictly as what a user writes.
const BESIDE_OBJECTS: &str = "\
struct Quotient
    quot::Int64
    rem::Int64
end

function quotient(x::Int64, y::Int64)::Any
1 ─ %1 = $(Expr(:foreigncall, :(:ldiv), Quotient, svec(Int64, Int64), 0, :(:ccall), :(x), :(y)))::Quotient
│   %2 = Base.getfield(%1, :quot)::Int64
└──      return %2
end
# check: quotient(-1700000, 5) == -340000
";

#[test]
fn a_struct_comes_back_to_a_function_with_objects() {
    let program = Program::read("t", BESIDE_OBJECTS.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
        let mut evaluator = Evaluator::native(&program, &engine);
        for check in program.checks() {
            assert_eq!(evaluator.check(check), Verdict::Passed, "{level:?}");
        }
    }
}

const VARIADIC: &str = "\
function text(to::Ptr{UInt8}, format::Ptr{UInt8}, x::Float64, n::Int64, y::Float64)::Int32
1 ─ %1 = $(Expr(:foreigncall, :(:snprintf), Int32, svec(Ptr{UInt8}, UInt64, Ptr{UInt8}, Float64, Int64, Float64), 3, :(:ccall), :(to), 0x0000000000000040, :(format), :(x), :(n), :(y)))::Int32
└──      return %1
end
";

#[test]
fn variadic_functions_get_floats() {
    let program = Program::read("t", VARIADIC.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        let text = unit.func::<(*mut u8, *const u8, f64, i64, f64), i32>("text").unwrap();
        let mut to = [0u8; 64];
        let length = text.call((to.as_mut_ptr(), c"%.2f %ld %g".as_ptr().cast(), 1.5, -7, 0.25)).unwrap();
        assert_eq!(&to[..length as usize], b"1.50 -7 0.25");
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Large {
    a: i64,
    b: f64,
    c: i32,
    d: u8,
}

/// Structs that do not fit into registers, before and behind arguments that do; two that run out of them.
extern "C" fn mixed(x: i64, large: Large, y: f64) -> f64 {
    x as f64 + large.a as f64 + large.b + f64::from(large.c) + f64::from(large.d) + y
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Two {
    a: i64,
    b: i64,
}

extern "C" fn crowded(a: Two, b: Two, x: i64, c: Two, d: Two, y: i64) -> i64 {
    let digits = [a.a, a.b, b.a, b.b, x, c.a, c.b, d.a, d.b, y];
    digits.iter().fold(0, |sum, digit| 10 * sum + digit)
}

extern "C" fn grown(large: Large, by: i64) -> Large {
    Large { a: large.a + by, b: large.b * 2.0, c: -large.c, d: large.d + 1 }
}

const LARGE: &str = "\
struct Large
    a::Int64
    b::Float64
    c::Int32
    d::UInt8
end
struct Two
    a::Int64
    b::Int64
end

function mixed(f::Ptr{Nothing}, x::Int64)::Float64
1 ─ %1 = %new(Large, 100, 0.5, 7, 0x03)::Large
│   %2 = $(Expr(:foreigncall, :(f), Float64, svec(Int64, Large, Float64), 0, :(:ccall), :(x), :(%1), 1000.0))::Float64
└──      return %2
end

function crowded(f::Ptr{Nothing}, n::Int64)::Int64
1 ─ %1 = %new(Two, 1, 2)::Two
│   %2 = %new(Two, 3, n)::Two
│   %3 = %new(Two, 6, 7)::Two
│   %4 = %new(Two, 8, 9)::Two
│   %5 = $(Expr(:foreigncall, :(f), Int64, svec(Two, Two, Int64, Two, Two, Int64), 0, :(:ccall), :(%1), :(%2), 5, :(%3), :(%4), 0))::Int64
└──      return %5
end

function grown(f::Ptr{Nothing}, n::Int64)::Tuple{Int64, Float64, Int32, UInt8}
1 ─ %1 = %new(Large, 100, 0.5, 7, 0x03)::Large
│   %2 = $(Expr(:foreigncall, :(f), Large, svec(Large, Int64), 0, :(:ccall), :(%1), :(n)))::Large
│   %3 = $(Expr(:foreigncall, :(f), Large, svec(Large, Int64), 0, :(:ccall), :(%2), :(n)))::Large
│   %4 = Base.getfield(%3, :a)::Int64
│   %5 = Base.getfield(%3, :b)::Float64
│   %6 = Base.getfield(%2, :c)::Int32
│   %7 = Base.getfield(%3, :d)::UInt8
│   %8 = Core.tuple(%4, %5, %6, %7)::Tuple{Int64, Float64, Int32, UInt8}
└──      return %8
end
";

#[cfg(target_arch = "x86_64")]
#[test]
fn large_structs_pass_in_memory() {
    let program = Program::read("t", LARGE.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        let address = |function: *const ()| function.cast_mut();
        let func = unit.func::<(*mut (), i64), f64>("mixed").unwrap();
        assert_eq!(func.call((address(mixed as *const ()), 10_000)), Ok(11_110.5));
        let func = unit.func::<(*mut (), i64), i64>("crowded").unwrap();
        assert_eq!(func.call((address(crowded as *const ()), 4)), Ok(1_234_567_890));
        let func = unit.func::<(*mut (), i64), (i64, f64, i32, u8)>("grown").unwrap();
        assert_eq!(func.call((address(grown as *const ()), 11)), Ok((122, 2.0, -7, 5)));
    }
}

/// A struct that C gets by its address on aarch64 where registers are left for that, and on the stack.
const BY_ADDRESS: &str = "\
struct Large
    a::Int64
    b::Float64
    c::Int32
    d::UInt8
end

function mixed(f::Ptr{Nothing}, x::Int64)::Float64
1 ─ %1 = %new(Large, 100, 0.5, 7, 0x03)::Large
│   %2 = $(Expr(:foreigncall, :(f), Float64, svec(Int64, Large, Float64), 0, :(:ccall), :(x), :(%1), 1000.0))::Float64
└──      return %2
end

function late(f::Ptr{Nothing}, x::Int64)::Float64
1 ─ %1 = %new(Large, 100, 0.5, 7, 0x03)::Large
│   %2 = $(Expr(:foreigncall, :(f), Float64, svec(Int64, Int64, Int64, Int64, Int64, Int64, Int64, Large, Large), 0, :(:ccall), 1, 2, 3, 4, 5, 6, :(x), :(%1), :(%1)))::Float64
└──      return %2
end
";

extern "C" fn late(a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, x: Large, y: Large) -> f64 {
    let sum = a + b + c + d + e + f + g;
    sum as f64 + mixed(0, x, 0.0) + 1000.0 * mixed(0, y, 0.0)
}

#[test]
fn large_structs_pass_whatever_stands_before_them() {
    let program = Program::read("t", BY_ADDRESS.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        let func = unit.func::<(*mut (), i64), f64>("mixed").unwrap();
        assert_eq!(func.call(((mixed as *const ()).cast_mut(), 10_000)), Ok(11_110.5));
        let func = unit.func::<(*mut (), i64), f64>("late").unwrap();
        assert_eq!(func.call(((late as *const ()).cast_mut(), 7)), Ok(28.0 + 110.5 + 110_500.0));
    }
}

/// Wide integers behind few and many others, both ways.
const WIDE: &str = "\
function early(f::Ptr{Nothing}, w::Int128)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(f), Int64, svec(Int64, Int128, Int64, Int64, Int64, Int128, Int64), 0, :(:ccall), 1, :(w), 4, 5, 6, :(w), 9))::Int64
└──      return %1
end

function late(f::Ptr{Nothing}, w::Int128)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(f), Int64, svec(Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int128, Int64), 0, :(:ccall), 1, 2, 3, 4, 5, 6, 7, :(w), 9))::Int64
└──      return %1
end

function digits(a::Int64, b::Int64, c::Int64, d::Int64, e::Int64, f::Int64, g::Int64, w::Int128, z::Int64)::Int64
1 ─ %1 = Base.trunc_int(Int64, w)::Int64
│   %2 = Base.lshr_int(w, 0x0000000000000040)::Int128
│   %3 = Base.trunc_int(Int64, %2)::Int64
│   %4 = Base.mul_int(g, 1000)::Int64
│   %5 = Base.mul_int(%3, 100)::Int64
│   %6 = Base.mul_int(%1, 10)::Int64
│   %7 = Base.add_int(%4, %5)::Int64
│   %8 = Base.add_int(%7, %6)::Int64
│   %9 = Base.add_int(%8, z)::Int64
└──      return %9
end

function back(f::Ptr{Nothing})::Int64
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(:digits), Int64, svec(Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int128, Int64), :(:ccall)))::Ptr{Nothing}
│   %2 = $(Expr(:foreigncall, :(f), Int64, svec(Ptr{Nothing}), 0, :(:ccall), :(%1)))::Int64
└──      return %2
end
";

fn fold(digits: &[i64]) -> i64 {
    digits.iter().fold(0, |sum, digit| 10 * sum + digit)
}

extern "C" fn early_wide(a: i64, w: i128, b: i64, c: i64, d: i64, x: i128, e: i64) -> i64 {
    fold(&[a, (w >> 64) as i64, w as i64, b, c, d, (x >> 64) as i64, x as i64, e])
}

type Late = extern "C" fn(i64, i64, i64, i64, i64, i64, i64, i128, i64) -> i64;

extern "C" fn late_wide(a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, w: i128, z: i64) -> i64 {
    fold(&[a, b, c, d, e, f, g, (w >> 64) as i64, w as i64, z])
}

extern "C" fn calls_back(digits: Late) -> i64 {
    digits(1, 2, 3, 4, 5, 6, 7, 8 << 64 | 9, 5)
}

#[test]
fn wide_integers_pass_as_c_passes_them() {
    let program = Program::read("t", WIDE.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    for level in [OptLevel::O0, OptLevel::O2] {
        let engine = Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap();
        let unit = engine.compile(&program).unwrap_or_else(|error| panic!("{error}"));
        let early = unit.func::<(*mut (), i128), i64>("early").unwrap();
        assert_eq!(early.call(((early_wide as *const ()).cast_mut(), 2 << 64 | 3)), Ok(123_456_239));
        let late = unit.func::<(*mut (), i128), i64>("late").unwrap();
        assert_eq!(late.call(((late_wide as *const ()).cast_mut(), 8 << 64 | 9)), Ok(1_234_567_899));
        let back = unit.func::<(*mut (),), i64>("back").unwrap();
        assert_eq!(back.call(((calls_back as *const ()).cast_mut(),)), Ok(7_895));
    }
}

/// The wide integer leaves a register unused in front of it, so that one is left for two.
#[cfg(target_arch = "aarch64")]
#[test]
fn a_struct_that_runs_out_of_registers_is_refused() {
    const CROWDED: &str = "\
struct Two
    a::Int64
    b::Int64
end

function crowded(f::Ptr{Nothing}, w::Int128)::Int64
1 ─ %1 = %new(Two, 1, 2)::Two
│   %2 = $(Expr(:foreigncall, :(f), Int64, svec(Int64, Int128, Int64, Int64, Int64, Two), 0, :(:ccall), 1, :(w), 4, 5, 6, :(%1)))::Int64
└──      return %2
end
";
    let program = Program::read("t", CROWDED.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let engine = Engine::new(crate::doors::open(Options::new())).unwrap();
    let error = engine.compile(&program).map(drop).unwrap_err().to_string();
    assert!(error.contains("Two"), "{error}");
}

#[path = "support/doors.rs"]
mod doors;
