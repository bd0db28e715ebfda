//! `brolga opt FILE`: runs passes on a program and prints the result.

use brolga::ir::module::ModuleError;
use brolga::ir::text::{Unit, show_unit};
use brolga::ir::{Func, FuncId, Module};
use brolga::opt::osr;
use brolga::opt::parse_passes;
use brolga::unstable::Stages;

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
    /// Then let loops be left, and print the functions that continue in them
    #[arg(long)]
    leave_loops: bool,
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
        module[id] = match &list {
            Some(list) => stages.passes(id, list)?,
            None => stages.optimised(id)?,
        };
    }
    args.about.report(stages.report());
    if args.leave_loops {
        leave_loops(&mut module)?;
    }
    let unit = Unit { module, ..program.unit().clone() };
    out(show_unit(&unit).to_string().trim_end())
}

/// Lets the loops of all functions be left. The OSR checks are answered by yes, so that the result runs.
fn leave_loops(module: &mut Module) -> Result<(), Stop> {
    let all: Vec<FuncId> = module.funcs().map(|(id, _)| id).collect();
    for id in all {
        let (cx, func) = (module.cx.clone(), module[id].clone());
        let Some(leaving) = osr::leave_loops(&cx, &module[id].symbol(&module.cx), &func) else { continue };
        let made: Vec<Func> =
            leaving.exits.iter().flat_map(|exit| [exit.answer(&cx, true), exit.body(&cx, &func)]).collect();
        module[id] = leaving.func;
        for func in made {
            module.add_func(func).map_err(taken)?;
        }
    }
    Ok(())
}

fn taken(_: ModuleError) -> Stop {
    Stop::Usage("the program has functions with the names that loops get".to_owned())
}
