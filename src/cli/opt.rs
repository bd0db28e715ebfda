//! `brolga opt FILE`: runs passes on a program and prints what they made of it.

use brolga::Stages;
use brolga::ir::text::{Unit, show_unit};
use brolga::opt::parse_passes;

use super::report::{Stop, out};
use super::{Done, Level, input, passes};

/// Runs passes on a program and prints the result.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --passes the passes of the level run. Functions in high IR stay in high IR: \
                        `brolga compile --emit=low` lowers them.\n\nExamples:\n  \
                        brolga opt examples/nbody.jlir -O1 --time-passes\n  \
                        brolga opt --passes=inst-simplify,dce --print-after-all -"
)]
pub(crate) struct Args {
    /// The program; `-` reads the standard input
    file: String,
    /// Run these passes, in this order
    #[arg(long, value_name = "PASS,…")]
    passes: Option<String>,
    #[command(flatten)]
    level: Level,
    #[command(flatten)]
    about: passes::Flags,
}

pub(crate) fn run(args: &Args) -> Done {
    let program = input::program(&args.file)?;
    let list = args.passes.as_deref().map(parse_passes).transpose();
    let list = list.map_err(|error| Stop::Usage(error.to_string()))?;
    let options = args.about.options()?;
    let mut stages = Stages::new(program.module(), args.level.level, &options, args.about.cx());
    let mut module = program.module().clone();
    for (id, _) in program.module().funcs() {
        *module.func_mut(id) = match &list {
            Some(list) => stages.passes(id, list)?,
            None => stages.optimised(id)?,
        };
    }
    args.about.report(stages.report());
    let unit = Unit { module, ..program.unit().clone() };
    out(show_unit(&unit).to_string().trim_end())
}
