//! `brolga repl`: functions and expressions of the IR, line by line.

use std::env;
use std::io::{self, BufReader, IsTerminal};
use std::path::PathBuf;

use brolga_repl::{Ended, Options, run_lines, run_terminal};

use super::report::{STYLE, Stop};
use super::{Done, Level, doors};

/// Takes functions and expressions line by line: defines, redefines, evaluates and shows them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "`:help` lists the commands of the prompt. Where the standard input is no terminal, inputs are taken from it, values go to the \
                        standard output, and the exit status is 1 if there was an error.\n\nExamples:\n  brolga repl examples/fib.jlir\n  \
                        echo 'fib(20)' | brolga repl examples/fib.jlir -O3"
)]
pub(crate) struct Args {
    /// Programs to load first
    files: Vec<PathBuf>,
    /// Compile functions fast at first, and with all passes when they were called this often
    #[arg(long, value_name = "CALLS")]
    tiered: Option<u32>,
    /// Where the history of inputs is kept [default: brolga/history in the user's folder for state]
    #[arg(long, value_name = "FILE", conflicts_with = "no_history")]
    history: Option<PathBuf>,
    /// Keep no history
    #[arg(long)]
    no_history: bool,
    /// Refuse programs with doors: pointers, C functions, low IR. Without this they run, with all rights of the process
    #[arg(long)]
    checked: bool,
    #[command(flatten)]
    level: Level,
}

pub(crate) fn run(args: &Args) -> Done {
    let history = match args.no_history {
        true => None,
        false => args.history.clone().or_else(state_file),
    };
    let options = Options {
        level: args.level.level,
        doors: (!args.checked).then(doors::open),
        tiered: args.tiered,
        files: args.files.clone(),
        history,
        style: io::stderr().is_terminal().then_some(&STYLE),
    };
    let ended = if io::stdin().is_terminal() && io::stdout().is_terminal() {
        run_terminal(&options)?
    } else {
        let mut input = BufReader::new(io::stdin());
        run_lines(&options, &mut input, &mut anstream::stdout(), &mut anstream::stderr())?
    };
    match ended.map_err(|error| Stop::unwritten(&error))? {
        Ended::Well => Ok(()),
        Ended::WithErrors => Err(Stop::Failed),
    }
}

/// The file for the history in the user's folder for state, if there is one.
#[expect(clippy::disallowed_methods, reason = "the command is where the environment is read")]
fn state_file() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("brolga/history"))
}
