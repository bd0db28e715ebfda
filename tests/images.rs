//! Programs that are built ahead of time and opened: they behave the same in another process or run time.

use std::ops::Range;
use std::path::PathBuf;

use brolga::options::{CpuTarget, Roots, Traces};
use brolga::{Engine, Evaluator, ExceptionKind, Fault, OptLevel, Options, Program, Verdict, image};
use brolga_fuzz::mutate;
use brolga_fuzz::rng::Rng;

const SOURCE: &str = include_str!("support/outlives.jlir");

fn program(source: &str) -> Program {
    Program::read("images.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn built(source: &str, options: &Options) -> Vec<u8> {
    image::build(&program(source), options).unwrap_or_else(|error| panic!("{error}"))
}

fn engine() -> Engine {
    Engine::new(crate::doors::open(Options::new())).unwrap()
}

#[test]
fn a_program_is_what_it_was() {
    for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
        for roots in [Roots::Maps, Roots::Linked] {
            for stress in [false, true] {
                let bytes = built(SOURCE, &crate::doors::open(Options::new()).opt_level(level).roots(roots));
                let engine = Engine::new(crate::doors::open(Options::new()).gc_stress(stress)).unwrap();
                let image = engine.open_bytes(bytes.clone()).unwrap();
                let guarded = image.unit().func::<(i64,), i64>("guarded").unwrap();
                assert_eq!((guarded.call((0,)).unwrap(), guarded.call((10,)).unwrap()), (-1, 101));
                let program = program(SOURCE);
                let mut evaluator = Evaluator::of_image(&image, &engine).unwrap();
                for text in ["total(3)", "guarded(5)", "area(Square(7))", "step(1)"] {
                    let by_image = evaluator.call(&image.program().unwrap().call(text).unwrap()).unwrap();
                    let expected =
                        Evaluator::interpreted(&program).call(&program.call(text).unwrap()).unwrap();
                    assert_eq!(by_image, expected, "{text} at {level:?}");
                }
            }
        }
    }
}

/// Thread-local variables of an image begin in each thread with the declared value, in each opening of it.
#[test]
fn threads_have_their_own_variables_of_an_image() {
    for level in [OptLevel::O0, OptLevel::O2] {
        for stress in [false, true] {
            let bytes = built(
                include_str!("support/thread_local.jlir"),
                &crate::doors::open(Options::new()).opt_level(level),
            );
            let engine = Engine::new(crate::doors::open(Options::new()).gc_stress(stress)).unwrap();
            let images = [(); 2].map(|()| engine.open_bytes(bytes.clone()).unwrap());
            let both = |n: i64| {
                images.each_ref().map(|image| {
                    let [inc, last] =
                        ["inc", "last"].map(|name| image.unit().func::<(i64,), i64>(name).unwrap());
                    (last.call((-1,)).unwrap(), inc.call((n,)).unwrap(), last.call((-1,)).unwrap())
                })
            };
            assert_eq!(both(1), [(-1, 101, 101); 2], "{level:?}");
            let other = std::thread::scope(|threads| threads.spawn(|| [both(20), both(20)]).join().unwrap());
            assert_eq!(other, [[(-1, 120, 120); 2], [(120, 140, 140); 2]], "{level:?}");
            assert_eq!(both(1), [(101, 102, 102); 2], "{level:?}");
        }
    }
}

#[test]
fn exceptions_leave_with_their_lines() {
    let engine = Engine::new(crate::doors::open(Options::new()).traces(Traces::default())).unwrap();
    let compiled = engine.compile(&program(SOURCE)).unwrap();
    let image = engine.open_bytes(built(SOURCE, &crate::doors::open(Options::new()))).unwrap();
    let thrown = |unit: &brolga::Unit| {
        let outer = unit.func::<(i64,), i64>("outer").unwrap();
        match outer.call((0,)) {
            Err(brolga::CallError::Exception(exception)) => exception,
            other => panic!("{other:?}"),
        }
    };
    let (by_image, by_jit) = (thrown(image.unit()), thrown(&compiled));
    assert_eq!(by_image.kind, ExceptionKind::DivideError);
    assert!(!by_image.trace().is_empty());
    let frames = |exception: &brolga::Exception| {
        exception.trace().iter().map(|frame| (frame.function.clone(), frame.line)).collect::<Vec<_>>()
    };
    assert_eq!(frames(&by_image), frames(&by_jit));
}

#[test]
fn an_image_and_what_was_taken_from_it_are_freed() {
    let engine = engine();
    let bytes = built(SOURCE, &crate::doors::open(Options::new()));
    let warm = engine.open_bytes(bytes.clone()).unwrap();
    let guarded = warm.unit().func::<(i64,), i64>("guarded").unwrap();
    assert_eq!(guarded.call((0,)).unwrap(), -1);
    let before = engine.code_memory().in_use;
    for _ in 0..20 {
        let image = engine.open_bytes(bytes.clone()).unwrap();
        let guarded = image.unit().func::<(i64,), i64>("guarded").unwrap();
        drop(image);
        assert_eq!(guarded.call((0,)).unwrap(), -1, "a function keeps its image");
    }
    assert_eq!(engine.code_memory().in_use, before);
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    assert!(
        built(SOURCE, &crate::doors::open(Options::new()))
            == built(SOURCE, &crate::doors::open(Options::new()))
    );
    assert!(
        built(SOURCE, &crate::doors::open(Options::new()))
            != built(SOURCE, &crate::doors::open(Options::new()).opt_level(OptLevel::O0))
    );
}

#[test]
fn an_image_says_what_it_was_made_of() {
    let source = program(SOURCE);
    let changed = program(&format!("{SOURCE}\nfunction more()::Int64\n1 ─      return 1\nend\n"));
    for level in [OptLevel::O0, OptLevel::O2] {
        let bytes = image::build(&source, &Options::new().opt_level(level)).unwrap();
        let info = image::info(&bytes).unwrap();
        assert_eq!(info.program, image::program_id(&source), "the program is the same at each level");
        assert_ne!(info.program, image::program_id(&changed));
        assert_eq!(
            (info.functions, info.bytes, info.fits),
            (source.module().func_count(), bytes.len(), true)
        );
        assert!(info.to_string().contains(&format!("{:?}", info.id)));
        assert!(image::info(&bytes[..sealed(&bytes).end - 1]).is_err(), "it is damaged");
    }
    assert!(image::info(b"no image").is_err());
}

#[test]
fn a_file_is_opened_by_its_path() {
    let path: PathBuf = std::env::temp_dir().join(format!("brolga-images-{}.so", std::process::id()));
    image::write(&path, &built(SOURCE, &crate::doors::open(Options::new()))).unwrap();
    let image = engine().open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // An opened image does not depend on the file.
    assert_eq!(image.unit().func::<(i64,), i64>("inverse").unwrap().call((10,)).unwrap(), 100);
    let error = engine().open(&path).unwrap_err();
    assert_eq!(error.fault(), Fault::World);
    assert!(error.to_string().starts_with("cannot read `"), "{error}");
}

/// A change of the file of an opened image is an error of later reads, or has no effect.
#[test]
fn a_file_that_changes_under_a_process_is_an_error_or_nothing() {
    let path: PathBuf = std::env::temp_dir().join(format!("brolga-images-cut-{}.so", std::process::id()));
    let bytes = built(SOURCE, &crate::doors::open(Options::new()));
    let engine = engine();
    let inverse = |image: &image::Image| image.unit().func::<(i64,), i64>("inverse");
    // Replaced by another program's image.
    image::write(&path, &bytes).unwrap();
    let opened = engine.open(&path).unwrap();
    image::write(&path, &built(VERSIONS, &Options::new())).unwrap();
    assert_eq!(inverse(&opened).unwrap().call((10,)).unwrap(), 100);
    // Cut off at any place: what was loaded stays, and the rest cannot be taken.
    for step in 0..64 {
        image::write(&path, &bytes).unwrap();
        let opened = engine.open(&path).unwrap();
        let loaded = opened.unit().func::<(i64,), i64>("guarded").unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len((bytes.len() * step / 64) as u64).unwrap();
        assert_eq!(loaded.call((10,)).unwrap(), 101);
        for symbol in opened.unit().symbols() {
            if let Err(error) = opened.unit().untyped(symbol) {
                assert!(error.to_string().contains("cannot be taken from the image: cannot read"), "{error}");
            }
        }
        if step == 0 {
            assert!(opened.unit().untyped("total(Int64)").is_err());
        }
    }
    // Another byte in each place: refused when it is opened, or when the function is looked up; or it is of a part for tools.
    for at in (0..bytes.len()).step_by(97) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        image::write(&path, &changed).unwrap();
        let Ok(opened) = engine.open(&path) else { continue };
        if let Ok(inverse) = inverse(&opened) {
            assert_eq!(inverse.call((10,)).unwrap(), 100);
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_target_beyond_the_processor_is_refused() {
    for target in CpuTarget::ALL {
        let bytes = built(SOURCE, &crate::doors::open(Options::new()).cpu_target(target));
        match engine().open_bytes(bytes.clone()) {
            Ok(image) => {
                let guarded = image.unit().func::<(i64,), i64>("guarded").unwrap();
                assert_eq!(guarded.call((0,)).unwrap(), -1);
            }
            Err(error) => {
                assert!(!matches!(target, CpuTarget::Native | CpuTarget::Generic), "{error}");
                assert!(
                    error.to_string().starts_with("no target of the image fits this processor: "),
                    "{error}"
                );
            }
        }
    }
}

/// Malformed IR is an error when the program is requested: opening and calling read no function.
#[test]
fn a_program_is_read_when_it_is_requested() {
    let whole = built(SOURCE, &crate::doors::open(Options::new()));
    let (mut opened, mut refused) = (0, 0);
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        mutate::seal_image(&mut bytes);
        // Code that is changed is not called.
        let Ok(image) = engine().open_bytes(bytes) else { continue };
        opened += 1;
        match image.program() {
            Ok(program) => assert!(program.module().func_count() > 0),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().starts_with("the program in the image is refused: "), "{error}");
                assert!(image.program().is_err(), "it is refused again");
            }
        }
    }
    assert!(refused > 20 && opened > refused, "{refused} of {opened}");
}

#[test]
fn functions_of_an_image_are_found_by_both_names() {
    let bytes = built(SOURCE, &crate::doors::open(Options::new()));
    let image = engine().open_bytes(bytes).unwrap();
    let compiled = engine().compile(&program(SOURCE)).unwrap();
    let symbols: Vec<&str> = image.unit().symbols().collect();
    assert_eq!(symbols, compiled.symbols().collect::<Vec<_>>());
    for symbol in symbols {
        let declared = image.declaration(symbol).unwrap().unwrap();
        assert_eq!(declared.symbol(image.context()), symbol);
        let (by_image, by_jit) = (image.unit().untyped(symbol), compiled.untyped(symbol));
        assert_eq!(by_image.unwrap().signature(), by_jit.unwrap().signature());
        let bare = symbol.split('(').next().unwrap();
        assert_eq!(image.unit().untyped(bare).is_ok(), compiled.untyped(bare).is_ok(), "{bare}");
    }
    let unknown = |unit: &brolga::Unit| unit.untyped("unknown").unwrap_err().to_string();
    assert_eq!(unknown(image.unit()), unknown(&compiled));
    assert!(image.declaration("unknown").unwrap().is_none());
}

#[test]
fn an_image_is_cut_down_to_what_its_entries_reach() {
    let only = |entries: &[&str]| Options::new().image_trim(entries.iter().copied());
    let whole = built(SOURCE, &Options::new());
    for (entries, code, ir) in [
        (
            &["guarded"][..],
            &["guarded(Int64)"][..],
            &["inverse(Int64)", "outer(Int64)", "guarded(Int64)"][..],
        ),
        (&["total"], &["total(Int64)"], &["area(Square)", "area(Line)", "total(Int64)"]),
        (&["step(Int64)", "area(Line)"], &["area(Line)", "step(Int64)"], &["area(Line)", "step(Int64)"]),
    ] {
        let bytes = built(SOURCE, &only(entries).opt_level(OptLevel::O2));
        assert!(bytes.len() < whole.len());
        let engine = engine();
        let image = engine.open_bytes(bytes).unwrap();
        let symbols: Vec<&str> = image.unit().symbols().collect();
        assert!(code.iter().all(|symbol| symbols.contains(symbol)), "{symbols:?} of {entries:?}");
        let module = image.program().unwrap().module();
        let kept: Vec<String> = module.funcs().map(|(_, func)| func.symbol(&module.cx)).collect();
        assert_eq!(kept, ir, "{entries:?}");
        assert!(symbols.iter().all(|symbol| kept.iter().any(|kept| kept == symbol)), "{symbols:?}");
        let source = program(SOURCE);
        for text in ["total(3)", "guarded(5)", "guarded(0)", "area(Line(1, 2))", "step(1)"] {
            let found = image.run(&engine, text);
            let is_kept = kept.iter().any(|symbol| symbol.split('(').next() == text.split('(').next());
            match found {
                Ok(run) => {
                    let expected = Evaluator::interpreted(&source).call(&source.call(text).unwrap());
                    assert_eq!(run.evaluator().call(run.call()).unwrap(), expected.unwrap(), "{text}");
                }
                Err(error) => assert!(!is_kept, "{text}: {error}"),
            }
        }
    }
    let refused = |options: &Options| image::build(&program(SOURCE), options).unwrap_err();
    let error = refused(&only(&["unknown"]));
    assert_eq!(error.fault(), Fault::Caller);
    assert!(error.to_string().contains("`unknown`"), "{error}");
    assert!(refused(&only(&[])).to_string().contains("none is named"));
}

#[test]
fn a_call_of_an_image_reads_the_methods_of_its_name_alone() {
    let engine = engine();
    let image = engine.open_bytes(built(SOURCE, &Options::new())).unwrap();
    let source = program(SOURCE);
    for text in
        ["total(3)", "guarded(5)", "guarded(0)", "area(Square(7))", "area(Line(1, 2))", "step(1)", "step(2)"]
    {
        let run = image.run(&engine, text).unwrap();
        let name = text.split('(').next().unwrap();
        let module = run.program().module();
        assert!(module.funcs().all(|(_, func)| func.spelled_name(&module.cx) == name), "{text}");
        let value = run.evaluator().call(run.call()).unwrap();
        let expected = Evaluator::interpreted(&source).call(&source.call(text).unwrap());
        assert_eq!(value, expected.unwrap(), "{text}");
    }
    let error = image.run(&engine, "unknown(1)").unwrap_err().to_string();
    assert_eq!(error, source.call("unknown(1)").unwrap_err().to_string());
}

/// The part of an image that is mapped, by its header, which follows the program headers.
fn sealed(image: &[u8]) -> Range<usize> {
    const HEADER: usize = 64 + 56 * 5;
    let end = image[HEADER + 16..HEADER + 24].try_into().unwrap();
    HEADER..u64::from_le_bytes(end) as usize
}

/// Opening a damaged file is an error. Symbols and section headers, which tools remove, follow what is mapped.
fn damage(count: usize, seed: u64) {
    let whole = built(SOURCE, &crate::doors::open(Options::new()));
    let engine = engine();
    let mut rng = Rng::new(seed);
    for turn in 0..count {
        let mut bytes = whole.clone();
        match turn % 3 {
            0 => bytes.truncate((rng.next_u64() % whole.len() as u64) as usize),
            1 => {
                let at = (rng.next_u64() % whole.len() as u64) as usize;
                bytes[at] ^= 1 << (rng.next_u64() % 8);
            }
            _ => bytes = mutate::bytes(&mut rng, &whole),
        }
        if bytes.get(sealed(&whole)) != whole.get(sealed(&whole)) {
            assert!(engine.open_bytes(bytes.clone()).is_err(), "turn {turn} of seed {seed} was not noticed");
        }
    }
}

#[test]
fn damage_is_an_error() {
    damage(3_000, 1);
}

#[test]
#[ignore = "takes minutes; run with --ignored"]
fn damage_is_an_error_a_hundred_thousand_times() {
    damage(100_000, 2);
}

#[test]
fn tests_run_through_images() {
    let program = program(SOURCE);
    let engine = engine();
    let file = std::env::temp_dir().join(format!("brolga-images-tests-{}.so", std::process::id()));
    let mut evaluator = Evaluator::through_images(&program, &engine, &file);
    for check in program.checks() {
        assert_eq!(evaluator.check(check), Verdict::Passed);
    }
    std::fs::remove_file(&file).unwrap();
}

/// The mnemonics of an image's text, which is what the second program header says.
#[cfg(target_arch = "x86_64")]
fn mnemonics(image: &[u8]) -> Vec<String> {
    use iced_x86::{Decoder, DecoderOptions};
    let wide = |at: usize| u64::from_le_bytes(*image[at..].first_chunk().unwrap()) as usize;
    let header = 64 + 56;
    let text = &image[wide(header + 8)..][..wide(header + 32)];
    let found = Decoder::new(64, text, DecoderOptions::NONE).into_iter();
    found.map(|instruction| format!("{:?}", instruction.mnemonic())).collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_generic_image_holds_no_instruction_beyond_the_baseline() {
    const BITS: &str = "
function bits(n::Int64, s::Int64)::Int64
1 ─ %1 = Base.ctpop_int(n)::Int64
│   %2 = Base.cttz_int(n)::Int64
│   %3 = Base.ctlz_int(n)::Int64
│   %4 = Base.add_int(%1, %2)::Int64
│   %5 = Base.add_int(%4, %3)::Int64
└──      return %5
end
function floats(x::Float64, y::Float64)::Float64
1 ─ %1 = Base.floor_llvm(x)::Float64
│   %2 = Base.fma_float(%1, y, x)::Float64
└──      return %2
end
";
    /// Beside what is encoded with VEX or EVEX, whose names begin with V.
    const BEYOND: [&str; 12] = [
        "Popcnt", "Lzcnt", "Tzcnt", "Andn", "Blsi", "Blsr", "Bextr", "Roundsd", "Roundss", "Pshufb", "Rorx",
        "Shlx",
    ];
    let beyond = |target, source| {
        let image = built(source, &crate::doors::open(Options::new()).cpu_target(target));
        let is_beyond = |name: &String| name.starts_with('V') || BEYOND.contains(&name.as_str());
        mnemonics(&image).into_iter().filter(is_beyond).collect::<Vec<_>>()
    };
    for source in [SOURCE, BITS] {
        assert_eq!(beyond(CpuTarget::Generic, source), Vec::<String>::new());
    }
    let third = beyond(CpuTarget::X86V3, BITS);
    for name in ["Popcnt", "Lzcnt", "Roundsd"] {
        assert!(third.iter().any(|found| found.contains(name) || found == "Vroundsd"), "{name} in {third:?}");
    }
}

/// A loop, its caller, a function that gains, and one that does not.
const VERSIONS: &str = "
function sum(n::Int64)::Int64
1 ─      goto #2
2 ─ %2 = φ (#1 => 0, #3 => %6)::Int64
│   %3 = φ (#1 => n, #3 => %7)::Int64
│   %4 = Base.slt_int(0, %3)::Bool
└──      goto #4 if not %4
3 ─ %5 = Base.ctpop_int(%3)::Int64
│   %6 = Base.add_int(%2, %5)::Int64
│   %7 = Base.sub_int(%3, 1)::Int64
└──      goto #2
4 ─      return %2
end
function caller(n::Int64)::Int64
1 ─ %1 = invoke Main.sum(n::Int64)::Int64
│   %2 = invoke Main.plain(%1::Int64)::Int64
└──      return %2
end
function fused(x::Float64, y::Float64)::Float64
1 ─ %1 = Base.fma_float(x, y, 0.5)::Float64
└──      return %1
end
function plain(n::Int64)::Int64
1 ─ %1 = Base.mul_int(n, 3)::Int64
└──      return %1
end
";

const TARGETS: &str = "generic;x86-64-v2,+popcnt;x86-64-v3,base(1)";

/// Inlining would leave no calls.
fn versions(targets: &str) -> Vec<u8> {
    let options = Options::new().without_passes(&["inline"]).unwrap().cpu_targets(targets).unwrap();
    built(VERSIONS, &options)
}

/// An engine on a processor without these features.
fn without(features: &[&str]) -> Engine {
    Engine::new(crate::doors::open(Options::new()).without_cpu_features(features).unwrap()).unwrap()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_best_version_is_chosen_under_masked_features() {
    let bytes = versions(TARGETS);
    let native = Engine::new(Options::new().cpu_target(CpuTarget::X86V3)).is_ok();
    for (masked, target) in [
        (&[][..], if native { "x86-64-v3,base(1)" } else { "" }),
        (&["avx2"][..], if native { "x86-64-v2,+popcnt" } else { "" }),
        (&["popcnt"][..], "generic"),
        (&["sse3", "avx2"][..], "generic"),
    ] {
        let engine = without(masked);
        let image = engine.open_bytes(bytes.clone()).unwrap();
        assert!(target.is_empty() || image.target() == target, "{} without {masked:?}", image.target());
        let caller = image.unit().func::<(i64,), i64>("caller").unwrap();
        let expected: i64 = (1..=1000i64).map(|n| i64::from(n.count_ones())).sum::<i64>() * 3;
        assert_eq!(caller.call((1000,)).unwrap(), expected);
        let fused = image.unit().func::<(f64, f64), f64>("fused").unwrap();
        assert_eq!(fused.call((0.1, 10.0)).unwrap(), 0.1f64.mul_add(10.0, 0.5));
        // The opened image is tested as well.
        let program = program(VERSIONS);
        let by_image = Evaluator::of_image(&image, &engine)
            .unwrap()
            .call(&image.program().unwrap().call("plain(14)").unwrap());
        let expected = Evaluator::interpreted(&program).call(&program.call("plain(14)").unwrap());
        assert_eq!(by_image.unwrap(), expected.unwrap());
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn an_error_lists_the_targets_that_do_not_fit() {
    let bytes = versions("x86-64-v2;x86-64-v3");
    let error = without(&["sse4.2", "avx2"]).open_bytes(bytes.clone()).unwrap_err();
    assert_eq!(error.fault(), Fault::World);
    let text = error.to_string();
    assert!(
        text.starts_with("no target of the image fits this processor: `x86-64-v2` needs sse42"),
        "{text}"
    );
    assert!(text.contains("; `x86-64-v3` needs ") && text.contains("avx2"), "{text}");
    let error = Options::new().cpu_targets("generic;z80").err().unwrap();
    assert_eq!((error.fault(), error.to_string().contains("`z80`")), (Fault::Caller, true));
    assert!(Options::new().without_cpu_features(&["wings"]).is_err());
}

/// Mnemonics by the local symbols of an image.
#[cfg(target_arch = "x86_64")]
fn mnemonics_by_function(image: &[u8]) -> Vec<(String, Vec<String>)> {
    use iced_x86::{Decoder, DecoderOptions};
    use object::{Object as _, ObjectSymbol as _};
    let file = object::File::parse(image).unwrap();
    let of = |symbol: object::Symbol<'_, '_>| {
        // Addresses are offsets of the file.
        let code = &image[symbol.address() as usize..][..symbol.size() as usize];
        let found = Decoder::new(64, code, DecoderOptions::NONE).into_iter();
        let names = found.map(|instruction| format!("{:?}", instruction.mnemonic())).collect();
        (symbol.name().unwrap().to_owned(), names)
    };
    file.symbols().filter(|symbol| symbol.size() > 0).map(of).collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn functions_that_gain_and_their_callers_have_versions() {
    let functions = mnemonics_by_function(&versions(TARGETS));
    let names: Vec<&str> = functions.iter().map(|(name, _)| name.as_str()).collect();
    for (name, suffix) in [
        ("sum(Int64)", ""),
        ("sum(Int64)", ".x86-64-v2,+popcnt"),
        ("caller(Int64)", ""),
        ("caller(Int64)", ".x86-64-v2,+popcnt"),
        ("fused(Float64, Float64)", ""),
        ("fused(Float64, Float64)", ".x86-64-v3,base(1)"),
    ] {
        assert!(names.contains(&format!("{name}{suffix}").as_str()), "{name}{suffix} in {names:?}");
    }
    // Without multiply-add its code would be the one for `generic`.
    assert!(!names.contains(&"fused(Float64, Float64).x86-64-v2,+popcnt"), "{names:?}");
    assert_eq!(names.iter().filter(|name| name.starts_with("plain")).count(), 1, "{names:?}");
    for (name, mnemonics) in &functions {
        let has = |wanted: &str| mnemonics.iter().any(|found| found == wanted);
        let has_vex = mnemonics.iter().any(|found| found.starts_with('V'));
        assert_eq!(has_vex, name.starts_with("fused") && name.contains(".x86-64-v3"), "{name}");
        let counts = name.starts_with("sum") && name.contains('.');
        assert_eq!(has("Popcnt"), counts, "{name}: a version for `generic` is for all");
    }
    let all = mnemonics_by_function(&versions("generic;x86-64-v3,clone_all"));
    assert_eq!(all.iter().filter(|(name, _)| name.starts_with("plain")).count(), 2);
}

/// `tests/cross.sh` runs such images.
#[test]
#[cfg(all(feature = "cross", target_arch = "x86_64", target_os = "linux"))]
fn an_image_for_another_architecture_is_made_and_refused_here() {
    use brolga::options::Arch;
    use object::{Architecture, Object as _};
    for level in [OptLevel::O0, OptLevel::O2] {
        for targets in ["generic", "generic;generic,+lse,clone_all"] {
            let options = Options::new().opt_level(level).cpu_targets_of(Arch::Aarch64, targets).unwrap();
            let bytes = built(SOURCE, &options);
            let file = object::File::parse(&*bytes).unwrap();
            assert_eq!(file.architecture(), Architecture::Aarch64);
            assert!(file.dynamic_relocations().is_none_or(|mut all| all.next().is_none()));
            let error = engine().open_bytes(bytes.clone()).unwrap_err();
            assert_eq!(error.fault(), Fault::World);
            assert_eq!(error.to_string(), "the image is for the machine 183 of ELF's list, and this is 62");
            let error = Engine::new(options).err().unwrap();
            assert!(error.to_string().contains("code for aarch64 runs in images only"), "{error}");
        }
    }
    let unknown = |targets| Options::new().cpu_targets_of(Arch::Aarch64, targets).err().unwrap().to_string();
    assert_eq!(unknown("native"), "unknown cpu target `native`: `help` lists them");
    assert!(unknown("generic,+avx2").starts_with("unknown feature or option `+avx2`"));
}

#[path = "support/doors.rs"]
mod doors;

#[test]
fn an_image_is_the_same_by_any_number_of_threads() {
    for targets in ["native", "generic;x86-64-v2,clone_all"] {
        let by = |threads| {
            let options = crate::doors::open(Options::new()).cpu_targets(targets).unwrap();
            built(SOURCE, &options.image_threads(threads))
        };
        let one = by(1);
        for threads in [0, 2, 3, 8] {
            assert!(by(threads) == one, "{threads} threads for {targets}");
        }
    }
}

#[test]
fn all_functions_are_steps_of_a_build_by_several_threads() {
    use std::sync::{Arc, Mutex};
    let (steps, report) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None)));
    let (told, reported) = (steps.clone(), report.clone());
    let options = crate::doors::open(Options::new()).image_threads(2);
    let options = options.progress(move |step| told.lock().unwrap().push((step.done, step.of)));
    let options = options.image_report(move |made| *reported.lock().unwrap() = Some(made.clone()));
    built(SOURCE, &options);
    let report: image::BuildReport = report.lock().unwrap().take().unwrap();
    let functions = program(SOURCE).module().func_count();
    assert_eq!((report.functions, report.threads.len()), (functions, 2));
    let mut steps = std::mem::take(&mut *steps.lock().unwrap());
    steps.sort_unstable();
    // A low form and machine code for each.
    let expected: Vec<(usize, usize)> = (1..=2 * functions).map(|done| (done, 2 * functions)).collect();
    assert_eq!(steps, expected);
}
