//! The cost of compilation, stage by stage, beside Cranelift's own time, and its growth with the size of a function.
//!
//! ```text
//! cargo bench --bench compile_cost [-- NAME…]
//!
//!   workload           insts   verify high lower low roots translate Cranelift  ours  ours÷CL  passes÷CL  bytes
//!                              ──────── nanoseconds for each statement of the input ────────
//! ```
//!
//! *ours* is everything between the parsed module and Cranelift: verifying the input, the passes of both levels, lowering,
//! placing roots, and building Cranelift's IR; *passes* is passes and lowering alone. *Cranelift* is its compile alone. A stage's time is the thread's
//! own processor time, the best of several rounds; a round measures all functions of a workload before the next starts.
//!
//! The workloads are the example programs, all functions of each, and functions of one extreme shape from a hundred to a
//! hundred thousand statements, which reveal a superlinear stage.

#[path = "../kernels/clock.rs"]
mod clock;

use std::ops::Range;
use std::path::Path;

use brolga_codegen::compile::{CompileOptions, Compiler, Limits};
use brolga_codegen::compiled::MAX_GUARDED_FRAME_BYTES;
use brolga_codegen::isa::{IsaOptions, TargetIsa, Tier};
use brolga_codegen::linkage::{CallKind, CallLinkage};
use brolga_codegen::translate::{TranslateOptions, Translator};
use brolga_fuzz::shapes::{self, Shape};
use brolga_ir::diag::SourceFile;
use brolga_ir::verify::verify_func_in;
use brolga_ir::{Context, Func, Module, text};
use brolga_opt::lower::{self, lower};
use brolga_opt::{Cx, OptLevel, Options, optimize};
use brolga_runtime::heap::DEFAULT_ABI;

/// The stages that are timed.
const STAGES: [&str; 7] = ["verify", "high", "lower", "low", "roots", "translate", "Cranelift"];
/// The stage that is not ours.
const CRANELIFT: usize = 6;
/// The stages before it.
const OURS: Range<usize> = 0..CRANELIFT;
/// The stages that are passes.
const PASSES: Range<usize> = 1..4;
const LEVELS: [OptLevel; 3] = [OptLevel::O1, OptLevel::O2, OptLevel::O3];

fn main() {
    let isa = TargetIsa::new(IsaOptions { verify_clif: false, ..IsaOptions::default() });
    let Ok(isa) = isa else { return println!("no code generator for this machine") };
    // `cargo bench` passes its own flags; names of workloads are what is left.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    for level in LEVELS {
        println!("\n-O{}: nanoseconds for each statement of the input", level as u8);
        print!("{:<22}{:>8}", "workload", "insts");
        for stage in STAGES {
            print!("{stage:>10}");
        }
        println!("{:>8}{:>10}{:>11}{:>14}", "ours", "ours/CL", "passes/CL", "bytes/func");
        let mut logs = (0.0, 0.0, 0);
        for (name, module) in examples().into_iter().filter(|(name, _)| is_wanted(name)) {
            let row = measure(&module, level, &isa, 15);
            row.print(&name);
            logs = (logs.0 + row.ratio(OURS).ln(), logs.1 + row.ratio(PASSES).ln(), logs.2 + 1);
        }
        let mean = |log: f64| (log / f64::from(logs.2.max(1))).exp();
        println!("{:<22}{:>106.2}{:>11.2}", "geometric mean", mean(logs.0), mean(logs.1));
    }
    println!(
        "\nOne function of an extreme shape: ours in nanoseconds for each statement, and ours and the passes divided by Cranelift's"
    );
    print!("{:<18}", "shape");
    for level in LEVELS {
        for size in SIZES {
            print!("{:>19}", format!("O{} {size}", level as u8));
        }
    }
    println!();
    for shape in Shape::ALL.into_iter().filter(|shape| is_wanted(shape.name())) {
        print!("{:<18}", shape.name());
        for level in LEVELS {
            for size in SIZES {
                // Cranelift takes minutes for loops nested that deep.
                if shape == Shape::DeepLoops && size > 10_000 {
                    print!("{:>19}", "-");
                    continue;
                }
                let module = sized(shape, size);
                let row = measure(&module, level, &isa, if size < 10_000 { 9 } else { 2 });
                let nanos = row.sum(OURS) / row.insts.max(1) as f64;
                let (ours, passes) = (row.ratio(OURS), row.ratio(PASSES));
                print!("{:>19}", format!("{nanos:.0} ({ours:.2} {passes:.2})"));
            }
        }
        println!();
    }
}

/// About how many statements the shapes have.
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// A function of about `size` statements.
fn sized(shape: Shape, size: usize) -> Module {
    let probe = statements(&shapes::module(shape, 100)).max(1);
    shapes::module(shape, (size * 100 / probe).max(1))
}

fn statements(module: &Module) -> usize {
    let count = |f: &Func| f.blocks().map(|b| f.block_insts(b).count()).sum::<usize>();
    module.funcs().map(|(_, f)| count(f)).sum()
}

fn examples() -> Vec<(String, Module)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "jlir"))
        .collect();
    paths.sort();
    let read = |path: &Path| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let source = SourceFile::new(name.clone(), std::fs::read_to_string(path).ok()?).ok()?;
        let (unit, diagnostics) = text::read(&source, &Context::new());
        (!diagnostics.has_errors()).then_some((name, unit.module))
    };
    paths.iter().filter_map(|path| read(path)).collect()
}

struct Row {
    insts: usize,
    funcs: usize,
    bytes: usize,
    nanos: [f64; STAGES.len()],
    /// Why Cranelift's part did not come to an end, if it did not.
    refused: Option<String>,
}

impl Row {
    fn sum(&self, stages: Range<usize>) -> f64 {
        self.nanos[stages].iter().sum()
    }

    fn ratio(&self, stages: Range<usize>) -> f64 {
        self.sum(stages) / self.nanos[CRANELIFT]
    }

    fn print(&self, name: &str) {
        if let Some(refusal) = &self.refused {
            println!("{name:<22} {refusal}");
        }
        let each = |nanos: f64| nanos / self.insts.max(1) as f64;
        print!("{name:<22}{:>8}", self.insts);
        for nanos in self.nanos {
            print!("{:>10.0}", each(nanos));
        }
        println!(
            "{:>8.0}{:>10.2}{:>11.2}{:>14.0}",
            each(self.sum(OURS)),
            self.ratio(OURS),
            self.ratio(PASSES),
            self.bytes as f64 / self.funcs.max(1) as f64
        );
    }
}

fn measure(module: &Module, level: OptLevel, isa: &TargetIsa, rounds: usize) -> Row {
    let options = Options::default();
    let roots = brolga_gcroots::Options { verify: false, ..brolga_gcroots::Options::new(DEFAULT_ABI) };
    let tier = Tier::Optimised;
    let (mut translator, mut compiler) = (
        Translator::new(),
        Compiler::new(Limits { frame_bytes: MAX_GUARDED_FRAME_BYTES, ..Limits::default() }),
    );
    let mut clif = cranelift_codegen::ir::Function::new();
    let mut row = Row {
        insts: statements(module),
        funcs: module.func_count(),
        bytes: 0,
        nanos: [f64::INFINITY; STAGES.len()],
        refused: None,
    };
    for _ in 0..rounds {
        let mut nanos = [0.0; STAGES.len()];
        row.bytes = 0;
        for (_, func) in module.funcs() {
            let mut stage = 0;
            let mut since = clock::cpu_seconds();
            let mut lap = || {
                nanos[stage] += (clock::cpu_seconds() - since) * 1e9;
                stage += 1;
                since = clock::cpu_seconds();
            };
            let verified = verify_func_in(module, func);
            lap();
            assert!(verified.is_ok(), "the workloads are well-formed");
            let copy = func.clone();
            let Ok((high, _)) = optimize(module, copy, level, &options, &mut Cx::new(None)) else { continue };
            lap();
            let Ok(low) = lower(module, &high, &lower::Options::default()) else { continue };
            lap();
            let Ok((low, _)) = optimize(module, low, level, &options, &mut Cx::new(None)) else { continue };
            lap();
            let mut placed = low;
            if brolga_gcroots::place(&mut placed, &module.cx, &roots).is_err() {
                continue;
            }
            lap();
            let made = translator.translate(
                &module.cx,
                &placed,
                isa,
                TranslateOptions::default(),
                CallLinkage { call_kind: &|_| CallKind::Near, counter: None, is_profiled: false },
                &mut clif,
            );
            lap();
            let Ok(made) = made else { continue };
            let name = module.cx.names.text(placed.name);
            let code =
                compiler.compile(name, &mut clif, made.symbols, isa, CompileOptions { tier, listing: false });
            lap();
            if let Err(refusal) = &code {
                row.refused = Some(refusal.to_string());
            }
            row.bytes += code.map_or(0, |c| {
                c.code.len() + c.relocs.len() * size_of::<brolga_codegen::compiled::Relocation>()
            });
        }
        for (best, now) in row.nanos.iter_mut().zip(nanos) {
            *best = best.min(now);
        }
    }
    row
}
