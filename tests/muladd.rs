//! `muladd_float` rounds once where the target has the operation for it, and twice elsewhere, in every engine.
//!
//! ```text
//! x = 1 + 2⁻²⁷    x² = 1 + 2⁻²⁶ + 2⁻⁵⁴    z = −(1 + 2⁻²⁶)
//! once:  x² + z = 2⁻⁵⁴        twice:  x² rounds to 1 + 2⁻²⁶, and the sum is 0
//! ```

use brolga::options::{CpuFeatures, CpuTarget};
use brolga::{Engine, Evaluator, OptLevel, Options, Program, Session, Workers, session};

#[path = "support/doors.rs"]
mod doors;

const TEXT: &str = "\
# signature: given(x::Float64, z::Float64)::Float64
CodeInfo(
1 ─ %1 = intrinsic Base.muladd_float(x, x, z)::Float64
└──      return %1
) => Float64

# signature: constant()::Float64
CodeInfo(
1 ─ %1 = intrinsic Base.muladd_float(1.0000000074505806, 1.0000000074505806, -1.0000000149011612)::Float64
└──      return %1
) => Float64

# signature: single(x::Float32, z::Float32)::Float32
CodeInfo(
1 ─ %1 = intrinsic Base.muladd_float(x, x, z)::Float32
└──      return %1
) => Float32

# signature: half(x::Float16, z::Float16)::Float16
CodeInfo(
1 ─ %1 = intrinsic Base.muladd_float(x, x, z)::Float16
└──      return %1
) => Float16

# signature: asked()::Bool
CodeInfo(
1 ─ %1 = intrinsic (Core.Intrinsics.have_fma)(Float64)::Bool
│   %2 = intrinsic (Core.Intrinsics.have_fma)(Float16)::Bool
│   %3 = intrinsic Base.not_int(%2)::Bool
│   %4 = intrinsic Base.and_int(%1, %3)::Bool
└──      return %4
) => Bool

# signature: lanes(v::Vector{Float64}, w::Vector{Float64})::Vector{Float64}
CodeInfo(
1 ─ %1  =   builtin Base.getfield(v, :size)::Tuple{Int64}
│   %2  =   builtin Core.getfield(%1, 1)::Int64
└──       goto #2
2 ┄ %4  = φ (#1 => 1, #3 => %13)::Int64
│   %5  = intrinsic Base.sle_int(%4, %2)::Bool
└──       goto #4 if not %5
3 ─ %7  =   builtin Base.getfield(v, :ref)::MemoryRef{Float64}
│   %8  =   builtin Base.memoryrefnew(%7, %4, false)::MemoryRef{Float64}
│   %9  =   builtin Base.memoryrefget(%8, :not_atomic, false)::Float64
│   %10 =   builtin Base.getfield(w, :ref)::MemoryRef{Float64}
│   %11 =   builtin Base.memoryrefnew(%10, %4, false)::MemoryRef{Float64}
│   %12 = intrinsic Base.muladd_float(%9, %9, -1.0000000149011612)::Float64
│             builtin Base.memoryrefset!(%11, %12, :not_atomic, false)::Float64
│   %13 = intrinsic Base.add_int(%4, 1)::Int64
└──       goto #2
4 ─       return w
) => Vector{Float64}
";

const CALLS: [(&str, &str, &str); 6] = [
    ("given(1.0000000074505806, -1.0000000149011612)", "5.551115123125783e-17", "0.0"),
    ("constant()", "5.551115123125783e-17", "0.0"),
    ("single(1.0002441f0, -1.0004883f0)", "5.9604645f-8", "0.0f0"),
    // Floats of 16 bits are computed with in 32, on every processor.
    ("half(Float16(1.015625), Float16(-1.03125))", "Float16(0.0)", "Float16(0.0)"),
    ("asked()", "true", "false"),
    (
        "lanes([1.0000000074505806, 1.0, 1.0000000074505806, 1.0, 1.0000000074505806], [0.0, 0.0, 0.0, 0.0, 0.0])",
        "[5.551115123125783e-17, -1.4901161193847656e-8, 5.551115123125783e-17, -1.4901161193847656e-8, 5.551115123125783e-17]",
        "[0.0, -1.4901161193847656e-8, 0.0, -1.4901161193847656e-8, 0.0]",
    ),
];

const LEVELS: [OptLevel; 4] = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];

fn check(how: &str, program: &Program, mut evaluator: Evaluator<'_>, fma: bool) {
    for (call, once, twice) in CALLS {
        let call = program.call(call).expect("a call");
        let value = evaluator.call(&call).map_err(|failure| failure.to_string());
        assert_eq!(value.as_deref(), Ok(if fma { once } else { twice }), "{how}, {fma}: {call:?}");
    }
}

fn options(target: CpuTarget, level: OptLevel) -> Options {
    doors::open(Options::new()).cpu_target(target).opt_level(level)
}

/// The targets that this processor reaches.
fn targets() -> Vec<CpuTarget> {
    let reaches = |target: &CpuTarget| Engine::new(options(*target, OptLevel::O0)).is_ok();
    [CpuTarget::Native, CpuTarget::Generic, CpuTarget::X86V2, CpuTarget::X86V3]
        .into_iter()
        .filter(reaches)
        .collect()
}

#[test]
fn engines_and_the_interpreter_round_as_the_target_does() {
    let program = Program::read("muladd", TEXT.as_bytes()).expect("a program");
    for target in targets() {
        let fma = target.has_fma();
        check("interpreted", &program, Evaluator::interpreted(&program).with_cpu_target(target), fma);
        for level in LEVELS {
            let engine = Engine::new(options(target, level)).expect("an engine");
            check("native", &program, Evaluator::native(&program, &engine), fma);
            let file = std::env::temp_dir().join(format!("brolga-muladd-{}.so", std::process::id()));
            check("image", &program, Evaluator::through_images(&program, &engine, &file), fma);
            // There is none if nothing was compiled.
            let _ = std::fs::remove_file(&file);
        }
    }
    // The interpreter can be any processor.
    for target in CpuTarget::ALL {
        let evaluator = Evaluator::interpreted(&program).with_cpu_target(target);
        check("interpreted", &program, evaluator, target.has_fma());
    }
}

#[test]
fn sessions_round_as_the_target_does() {
    for target in targets() {
        for level in [OptLevel::O0, OptLevel::O2] {
            let session = Session::new(options(target, level), Workers::Caller).expect("a session");
            let dylib = session.create_dylib("main").expect("a dylib");
            let read = dylib.read_late("muladd", TEXT.as_bytes()).expect("a program");
            dylib.define(read.lazy()).expect("definitions");
            let names = brolga::ir::Module::new(session.context().view());
            let mut evaluator = session::Evaluator::new(&dylib, &names);
            for (call, once, twice) in CALLS {
                let value = evaluator.evaluate("check", call).expect("a value");
                let expected = if target.has_fma() { once } else { twice };
                assert_eq!(evaluator.show(&value).expect("a text"), expected, "{target:?}, {level}: {call}");
            }
        }
    }
}

#[test]
fn the_features_of_a_target_can_be_chosen_apart() {
    let program = Program::read("muladd", TEXT.as_bytes()).expect("a program");
    let chosen = CpuFeatures::default();
    // Before the target, and after it.
    let before = doors::open(Options::new()).cpu_features(chosen).cpu_target(CpuTarget::Native);
    let after = doors::open(Options::new()).cpu_target(CpuTarget::Native).cpu_features(chosen);
    for options in [before, after] {
        let engine = Engine::new(options).expect("an engine");
        check("chosen", &program, Evaluator::native(&program, &engine), false);
    }
}
