//! `brolga repl`: functions and expressions of the IR, line by line.

mod languages;

use std::env;
use std::io::{self, BufReader, IsTerminal};
use std::path::PathBuf;

use brolga_repl::{Ended, Options, run_lines, run_lines_in, run_terminal, run_terminal_in};
use languages::Lang;

use super::report::{STYLE, Stop};
use super::{Done, Level, doors};

/// Takes functions and expressions line by line: defines, redefines, evaluates and shows them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "`:help` lists the commands of the prompt. Where the standard input is not a terminal, inputs are taken from it, values go to the \
                        standard output, and the exit status is 1 if there was an error.\n\nExamples:\n  brolga repl examples/fib.jlir\n  \
                        echo 'fib(20)' | brolga repl examples/fib.jlir -O3\n  brolga repl --lang scheme"
)]
pub(crate) struct Args {
    /// Programs to load first
    files: Vec<PathBuf>,
    /// The language of inputs and files: the IR, or one of the small languages in the folder `embedding`
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value = "ir")]
    lang: Lang,
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
        false => args.history.clone().or_else(|| state_file(args.lang)),
    };
    let options = Options {
        level: args.level.level,
        doors: (!args.checked).then(doors::open),
        tiered: args.tiered,
        files: args.files.clone(),
        history,
        style: io::stderr().is_terminal().then_some(&STYLE),
    };
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let mut input = BufReader::new(io::stdin());
    let (mut out, mut err) = (anstream::stdout(), anstream::stderr());
    let settings = doors::options(args.checked).opt_level(args.level.level);
    let ended = match (args.lang.make(settings, args.tiered)?, is_terminal) {
        (None, true) => run_terminal(&options)?,
        (None, false) => run_lines(&options, &mut input, &mut out, &mut err)?,
        (Some(mut language), true) => run_terminal_in(&mut *language, &options),
        (Some(mut language), false) => run_lines_in(&mut *language, &options, &mut input, &mut out, &mut err),
    };
    match ended.map_err(|error| Stop::unwritten(&error))? {
        Ended::Well => Ok(()),
        Ended::WithErrors => Err(Stop::Failed),
    }
}

/// The file for the history in the user's folder for state, if there is one.
#[expect(clippy::disallowed_methods, reason = "the command is where the environment is read")]
fn state_file(lang: Lang) -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    let name = match lang {
        Lang::Ir => "history",
        Lang::Kaleidoscope => "history-kaleidoscope",
        Lang::Scheme => "history-scheme",
    };
    Some(state.join("brolga").join(name))
}
