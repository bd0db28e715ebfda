//! The gain of each pass: the kernels at `-O3` without it.
//!
//! A pass is switched off, all kernels are recompiled, and run beside the same kernels with all passes. A ratio above 1 says that
//! the pass makes code faster. The result is the table of `docs/passes.md`, which this writes; where the other columns come from:
//!
//! | column | from |
//! |---|---|
//! | pass, levels | the pipelines of `brolga_opt` |
//! | what it does | the first line of the pass's file |
//! | tests | its folder in `tests/filetests/opt` |
//!
//! A kernel whose low IR is the same without the pass is not run: its ratio would only be noise.

use std::fmt::Write as _;
use std::path::Path;

use brolga::ir::text::show_func;
use brolga::opt::{Cx, OptLevel, PASSES, PassLevel, stage};
use brolga::unstable::Stages;
use brolga::{Options, ir};

use crate::{Contender, Kernel, brolga_code, race};

/// How often each contender runs.
const ROUNDS: usize = 15;
/// Changes below this are noise.
const NOISE: f64 = 0.03;

/// The effect of a pass on a kernel.
struct Effect {
    kernel: &'static str,
    ratio: f64,
}

/// Writes `docs/passes.md`, or prints its rows alone.
pub(crate) fn report(kernels: &[Kernel], only_print: bool) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::from(HEAD);
    for pass in PASSES {
        let mut effects = Vec::new();
        for kernel in kernels.iter().filter(|_| !pass.required) {
            match without(kernel, pass.name) {
                Ok(effect) => effects.push(effect),
                Err(why) => eprintln!("{} without {}: {why}", kernel.name, pass.name),
            }
        }
        let row = row(root, pass.name, pass.level, pass.required, &effects);
        print!("{row}");
        text.push_str(&row);
    }
    if only_print {
        return;
    }
    let path = root.join("docs/passes.md");
    if let Err(error) = std::fs::write(&path, text) {
        eprintln!("{}: {error}", path.display());
    }
}

const HEAD: &str = "\
# The passes

Written by `cargo bench --bench kernels -- --without-passes`; a test holds it against the table of passes, their files and their tests. The file of
a pass is `crates/opt/src/passes/` and its name with `_` for `-`, its tests are `tests/filetests/opt/` and its name.

*Without* is the time of [the kernels on pointers](../benches/kernels/README.md#on-pointers) at -O3 without the pass, divided by the time with it: the geometric mean of
all, and the kernels that change most. Changes of less than 3 % are not shown, and kernels whose code does not change
are not run. Passes work together, so the effects do not multiply to the effect of all.

| pass | from | what it does | tests | without | most |
|---|---|---|---|---:|---|
";

fn without(kernel: &Kernel, pass: &'static str) -> Result<Effect, String> {
    if low_text(kernel, &[])? == low_text(kernel, &[pass])? {
        return Ok(Effect { kernel: kernel.name, ratio: 1.0 });
    }
    let options = || crate::doors::open(Options::new()).opt_level(OptLevel::O3);
    let skipping = options().without_passes(&[pass]).map_err(|e| e.to_string())?;
    let contenders: [Contender; 2] = [
        brolga_code::contender(kernel, "with", options())?,
        brolga_code::contender(kernel, "without", skipping)?,
    ];
    let times = race(kernel, &contenders, ROUNDS)?;
    Ok(Effect { kernel: kernel.name, ratio: times[1] / times[0] })
}

/// The low IR of a kernel.
fn low_text(kernel: &Kernel, skip: &[&'static str]) -> Result<String, String> {
    let program = brolga_code::program(kernel)?;
    let options = brolga::opt::Options { skip: skip.to_vec(), ..Default::default() };
    let mut stages = Stages::new(program.module(), OptLevel::O3, &options, Cx::default());
    let mut text = String::new();
    for (id, _) in program.module().funcs() {
        let low = stages.low(id).map_err(|e| e.to_string())?;
        text += &show_func(&program.module().cx, &low).to_string();
    }
    Ok(text)
}

fn row(root: &Path, name: &str, level: PassLevel, required: bool, effects: &[Effect]) -> String {
    let file = format!("crates/opt/src/passes/{}.rs", name.replace('-', "_"));
    let source = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
    let what = source.lines().next().unwrap_or("").trim_start_matches("//!").trim();
    let from = OptLevel::ALL.into_iter().find(|&from| {
        [ir::Level::High, ir::Level::Low]
            .into_iter()
            .any(|ir| level.takes(ir) && stage(from, ir).iter().any(|step| step.pass.name == name))
    });
    let from = from.map_or_else(String::new, |level| format!("O{}", level as u8));
    let mean = effects.iter().map(|e| e.ratio.ln()).sum::<f64>() / effects.len().max(1) as f64;
    let mut most: Vec<&Effect> = effects.iter().filter(|e| (e.ratio - 1.0).abs() > NOISE).collect();
    most.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let most: Vec<String> = most.iter().take(4).map(|e| format!("{} {:.2}", e.kernel, e.ratio)).collect();
    let mut row = String::new();
    let mean = if required { "required".to_owned() } else { format!("{:.2}", mean.exp()) };
    let _ = writeln!(
        row,
        "| `{name}` | {from} | {what} | [tests](../tests/filetests/opt/{name}) | {mean} | {} |",
        most.join(", ")
    );
    row
}
