//! The kernels of the bench that are written as a front end prints them: each gives what its C source gives, at every level, with and without
//! a collection at every safepoint, and when any one pass is left out.

#[path = "support/front/mod.rs"]
mod front;

use brolga::opt::PASSES;
use brolga::{Engine, OptLevel, Options, Program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernels and arguments at which they take no time.
const KERNELS: &[(&str, i64, i64)] = &[
    ("axpy_f64", 70, 5),
    ("bfs", 40, 3),
    ("bigmul", 13, 4),
    ("bitsieve", 700, 2),
    ("blur", 23, 2),
    ("closures", 45, 3),
    ("crc32", 300, 2),
    ("dot_f64", 64, 5),
    ("fft", 6, 2),
    ("floyd", 11, 2),
    ("hash_table", 90, 2),
    ("histogram", 500, 2),
    ("kmeans", 60, 3),
    ("lcs", 19, 2),
    ("life", 21, 4),
    ("lu", 13, 2),
    ("matmul_ijk", 9, 2),
    ("matmul_ikj", 9, 2),
    ("matvec", 17, 3),
    ("merge", 90, 4),
    ("nbody", 10, 0),
    ("nqueens", 6, 0),
    ("pairs", 20, 2),
    ("priority_queue", 60, 2),
    ("quicksort", 90, 2),
    ("regex", 60, 2),
    ("search", 37, 9),
    ("sieve", 500, 2),
    ("sort_structs", 70, 3),
    ("spectral_norm", 12, 0),
    ("spmv", 20, 3),
    ("stencil", 14, 3),
    ("sums", 75, 5),
    ("tokens", 3, 0),
    ("tree_map", 70, 2),
    ("unionfind", 90, 2),
    ("varint", 70, 2),
    ("vm", 40, 2),
    ("words", 400, 2),
];

/// The C source: beside the kernel, or the one that the kernels over `Ptr` have.
fn c_source(name: &str) -> Option<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = root.ancestors().map(|dir| dir.join("shared/kernels")).find(|dir| dir.is_dir());
    let own = root.join(format!("benches/kernels/julia/{name}.c"));
    let common = shared.as_ref().map_or_else(|| root.to_owned(), |s| s.join("common"));
    if own.is_file() {
        return Some((own, common));
    }
    let source = shared?.join(name).join(format!("{name}.c"));
    source.is_file().then_some((source, common))
}

/// The kernel's result when the system's C compiler has compiled it, where there is one. Tests run at once, so each has its own files.
fn by_c(name: &str, a: i64, b: i64, test: &str) -> Option<f64> {
    let (source, common) = c_source(name)?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let main = folder.join(format!("front-{name}-{test}.c"));
    let text = format!(
        "#include <stdio.h>\n#include <stdint.h>\ndouble run(int64_t, int64_t);\n\
         int main(void) {{ printf(\"%.17g\\n\", run({a}, {b})); return 0; }}\n"
    );
    std::fs::write(&main, text).unwrap();
    let program = folder.join(format!("front-{name}-{test}"));
    let built = Command::new("cc")
        .arg("-O2")
        .arg("-I")
        .arg(common)
        .args([&main, &source])
        .arg("-lm")
        .arg("-o")
        .arg(&program)
        .status()
        .ok()?;
    assert!(built.success(), "{name}: the C source is not C");
    let output = Command::new(&program).output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
}

fn program(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("benches/kernels/julia/{name}.jl"));
    let text = front::print(&std::fs::read_to_string(&path).unwrap());
    Program::read(name, text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"))
}

/// The result of a kernel under some options; `how` names them in failures.
fn run(name: &str, how: &str, program: &Program, options: Options, (a, b): (i64, i64)) -> f64 {
    let engine = Engine::new(crate::doors::open(options)).unwrap();
    let unit = engine.compile(program).unwrap_or_else(|e| panic!("{name} {how}: {e}"));
    let run = unit.func::<(i64, i64), f64>("run").unwrap_or_else(|e| panic!("{name} {how}: {e}"));
    run.call((a, b)).unwrap_or_else(|e| panic!("{name} {how}: {e}"))
}

fn agree(levels: &[OptLevel], stress: bool) {
    for &(name, a, b) in KERNELS {
        let program = program(name);
        let expected = by_c(name, a, b, if stress { "stress" } else { "plain" });
        for &level in levels {
            let options = Options::new().opt_level(level).gc_stress(stress);
            let got = run(name, &format!("at {level:?}"), &program, options, (a, b));
            if let Some(expected) = expected {
                assert_eq!(got, expected, "{name} at {level:?}");
            }
        }
    }
}

#[test]
fn kernels_give_what_c_gives() {
    agree(&OptLevel::ALL, false);
}

#[test]
fn kernels_give_what_c_gives_while_everything_is_collected() {
    agree(&[OptLevel::O0, OptLevel::O3], true);
}

#[test]
fn every_kernel_is_tested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernels/julia");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "jl"))
        .map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    let known: Vec<&str> = KERNELS.iter().map(|k| k.0).collect();
    assert_eq!(names, known);
}

#[path = "support/doors.rs"]
mod doors;

/// Compares each kernel at O3 with itself without one pass, for the pairs of kernel and pass that `choose` selects by their indices.
fn agree_without_passes(choose: impl Fn(usize, usize) -> bool) {
    for (number, &(name, a, b)) in KERNELS.iter().enumerate() {
        let program = program(name);
        let options = || Options::new().opt_level(OptLevel::O3);
        let expected = run(name, "at O3", &program, options(), (a, b));
        for (_, pass) in PASSES.iter().enumerate().filter(|&(pass, _)| choose(number, pass)) {
            let without = options().without_passes(&[pass.name]).unwrap();
            let got = run(name, &format!("without {}", pass.name), &program, without, (a, b));
            // `@simd` allows reassociation, and a pass may reassociate or not.
            let near = (got - expected).abs() <= 1e-9 * expected.abs();
            assert!(near, "{name} without {}: {got}, not {expected}", pass.name);
        }
    }
}

/// Without a pass, later passes see IR that the full pipeline rarely produces.
#[test]
fn kernels_need_no_single_pass() {
    agree_without_passes(|kernel, pass| (kernel + pass) % 9 == 0);
}

#[test]
#[ignore = "takes minutes"]
fn kernels_need_no_pass_at_all() {
    agree_without_passes(|_, _| true);
}
