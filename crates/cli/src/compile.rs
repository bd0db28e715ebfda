//! `brolga compile FILE`: the stages of a program's compilation as text, or an object file.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use brolga::ir::Func;
use brolga::ir::text::{Unit, show_func, show_unit};
use brolga::observe::emit;
use brolga::observe::emit::Generating;
use brolga::unstable::Stages;
use brolga::{Error, Program};

use super::progress::Bars;
use super::report::Stop;
use super::{Done, Level, input, passes};

/// The output form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Form {
    /// The program after the passes on high IR
    Ir,
    /// Low IR after all passes
    Low,
    /// Low IR with the roots of objects placed
    Placed,
    /// Cranelift's IR
    Clif,
    /// Machine code in the system assembler's syntax, with symbols and relocations
    Asm,
    /// Machine instructions as the code generator lists them
    Vcode,
    /// An object file
    Obj,
}

/// Compiles a program without running it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program; `-` reads the standard input
    file: String,
    /// The output form
    #[arg(long, value_name = "FORM", value_enum, default_value = "obj")]
    emit: Form,
    /// Where to write it instead of the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    #[command(flatten)]
    level: Level,
    #[command(flatten)]
    about: passes::Flags,
    #[command(flatten)]
    bars: Bars,
}

pub(crate) fn run(args: &Args) -> Done {
    let program = input::program(&args.file)?;
    let options = args.about.options()?;
    let mut stages = Stages::new(program.module(), args.level.level, &options, args.about.cx());
    let written = if args.emit == Form::Ir {
        ir(&program, &mut stages)?.into()
    } else {
        code(args, &program, &mut stages)?
    };
    args.about.report(stages.report());
    match &args.output {
        Some(path) => brolga_files::write(path.as_ref(), written.as_ref())
            .map_err(|error| Stop::System(format!("cannot write `{path}`: {error}"))),
        None if args.emit == Form::Obj && io::stdout().is_terminal() => {
            Err(Stop::Usage("an object file is not text for a terminal; name a file with `-o`".to_owned()))
        }
        None => Ok(io::stdout().write_all(&written)?),
    }
}

fn ir(program: &Program, stages: &mut Stages<'_, '_>) -> Result<String, Stop> {
    let mut module = program.module().clone();
    for (id, _) in program.module().funcs() {
        module[id] = stages.high(id)?;
    }
    Ok(show_unit(&Unit { module, ..program.unit().clone() }).to_string())
}

fn code(args: &Args, program: &Program, stages: &mut Stages<'_, '_>) -> Result<Vec<u8>, Stop> {
    let module = program.module();
    let mut lows: Vec<Func> = Vec::with_capacity(module.func_count());
    let mut refused = Vec::new();
    // Passes are one half of the work, code generation the other.
    let progress = args.bars.begin("compile", 2 * module.func_count());
    for (id, func) in module.funcs() {
        progress.at(module.cx.names.text(func.name));
        progress.step();
        let made = if args.emit == Form::Low { stages.low(id) } else { stages.placed(id) };
        match made {
            Ok(low) => lows.push(low),
            Err(Error::NotNative(reasons)) => refused.push(reasons),
            Err(error) => return Err(error.into()),
        }
    }
    if !refused.is_empty() {
        return Err(Stop::not_native(program, &refused));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut add = |part: &dyn std::fmt::Display| {
        let _ = write!(text, "{}{part}", if text.is_empty() { "" } else { "\n" });
    };
    if matches!(args.emit, Form::Low | Form::Placed) {
        lows.iter().for_each(|low| add(&show_func(&module.cx, low)));
        return Ok(text.into());
    }
    let (mut translating, mut compiling, mut last) = (0, 0, 0);
    let code = emit::generate_telling(module, &lows, args.level.level, &mut |what| {
        let Some(now) = stages.now() else {
            if what == Generating::Compiled {
                progress.step();
            }
            return;
        };
        let took = now.saturating_sub(std::mem::replace(&mut last, now));
        match what {
            Generating::Begins => {}
            Generating::Translated => translating += took,
            Generating::Compiled => {
                compiling += took;
                progress.step();
            }
        }
    })?;
    drop(progress);
    if stages.now().is_some() {
        stages.note_time("translate", translating);
        stages.note_time("generate code", compiling);
    }
    match args.emit {
        Form::Obj => {
            return Ok(stages.timed("write object file", |_| code.object(program.source().name()))?);
        }
        Form::Clif => code.clif().for_each(|clif| add(&clif)),
        Form::Asm => text = brolga::explore::assembly(&code),
        Form::Ir | Form::Low | Form::Placed | Form::Vcode => {
            for function in code.functions() {
                add(&format_args!("{}:\n{}", function.name, function.listing));
            }
        }
    }
    Ok(text.into())
}
