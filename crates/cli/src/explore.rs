//! `brolga explore FILE`: a page that shows a program from its source to machine code.

use std::io::{self, IsTerminal, Write as _};

use brolga::explore;
use brolga::opt::Options;

use super::report::Stop;
use super::{Done, Level, input};

/// Writes a page for a browser: a program after each pass, in low IR, in Cranelift's IR and as machine code.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The page is one file and asks the network for nothing. Rows that come from one row of the program light up together; press `?` \
                        in the page for its keys.\n\nExamples:\n  brolga explore examples/nbody.jlir -o nbody.html\n  \
                        brolga explore examples/fib.jlir --call 'fib(20)' -O3 -o fib.html"
)]
pub(crate) struct Args {
    /// The program; `-` reads the standard input
    file: String,
    /// Where to write the page instead of the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Make this call in the interpreter, and show how often each row was executed
    #[arg(long, value_name = "CALL")]
    call: Option<String>,
    /// How many statements the call may run
    #[arg(long, value_name = "N", requires = "call")]
    steps: Option<u64>,
    /// The text that the program's line numbers are about, as a column of its own
    #[arg(long, value_name = "FILE")]
    source: Option<String>,
    /// Rely on features of the processor
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', value_parser = ["fma", "bit-counts"])]
    cpu: Vec<String>,
    #[command(flatten)]
    level: Level,
}

pub(crate) fn run(args: &Args) -> Done {
    if args.output.is_none() && io::stdout().is_terminal() {
        return Err(Stop::Usage("a page is not text for a terminal; name a file with `-o`".to_owned()));
    }
    let program = input::program(&args.file)?;
    let source = args.source.as_deref().map(input::bytes).transpose()?;
    let source = source.map(|(name, bytes)| explore::Source {
        name: name.to_owned(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    });
    let cpu = crate::passes::features(&args.cpu);
    let passes = Options { cpu, ..Options::default() };
    let options = explore::Options {
        level: args.level.level,
        passes,
        call: args.call.clone(),
        steps: args.steps,
        source,
        only: None,
    };
    let page = explore::page(&program, &options)?;
    match &args.output {
        Some(path) => brolga_files::write(path.as_ref(), page.as_ref())
            .map_err(|error| Stop::System(format!("cannot write `{path}`: {error}"))),
        None => Ok(io::stdout().write_all(page.as_bytes())?),
    }
}
