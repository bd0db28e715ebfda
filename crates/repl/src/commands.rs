//! The commands of the prompt.
//!
//! A table defines their names, arguments and help; a test compares it with the implementation.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brolga_engine::session::{Dylib, Session};
use brolga_engine::{Program, Stages, emit};
use brolga_explore as explore;
use brolga_ir::FuncId;
use brolga_ir::text::show_func;
use brolga_opt::Cx;

use crate::options::Options;
use crate::prompt::Prompt;
use crate::shell::{Reply, shown};

/// A command: its name, its arguments, and its effect.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    args: &'static str,
    help: &'static str,
}

/// All commands, in the order in which help lists them.
pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "opt", args: "[FUNCTION]", help: "the IR after the passes on high IR" },
    Command { name: "low", args: "[FUNCTION]", help: "low IR after all passes" },
    Command { name: "asm", args: "[FUNCTION]", help: "machine code with bytes and relocations" },
    Command { name: "time", args: "EXPRESSION", help: "evaluates, and says how long it took" },
    Command { name: "dispatch", args: "[FUNCTION]", help: "lists methods with the types of their results" },
    Command { name: "vars", args: "", help: "lists variables with their types" },
    Command { name: "explore", args: "[FILE]", help: "writes the explorer's page of all definitions" },
    Command { name: "load", args: "FILE", help: "reads definitions from a file" },
    Command { name: "stats", args: "", help: "shows the world, the code and the heap of the session" },
    Command { name: "help", args: "", help: "shows this" },
    Command { name: "quit", args: "", help: "ends the prompt" },
];

const HELP: &str = "\
Type functions, types and expressions of the IR's text. A function is defined, or redefined, when its `end` is there; calls made
afterwards see the new one. An expression is a constant, a variable, or a call of either or of other calls; `name = expression`
sets a variable, and `ans` is the last value. Variables hold values: a function that changes an object changes a copy.
An empty line ends an input that is not complete.
";

/// A form of a function that a command shows.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Opt,
    Low,
    Asm,
}

impl Form {
    /// The form that a command shows, if it shows one.
    pub(crate) fn of(command: &str) -> Option<Form> {
        match command {
            "opt" => Some(Form::Opt),
            "low" => Some(Form::Low),
            "asm" => Some(Form::Asm),
            _ => None,
        }
    }
}

impl Prompt<'_> {
    pub(crate) fn command(&mut self, name: &str, args: &str) -> Result<Reply, String> {
        match name {
            "opt" | "low" | "asm" | "explore" => self.show(name, args),
            "time" if args.is_empty() => Err(self.message("`:time` takes an expression")),
            "time" => self.timed(args),
            "dispatch" => dispatch(&self.dylib, &args.into(), &|name| Some(name.to_owned()), &self.options),
            "vars" => Ok(self.variables()),
            "load" if args.is_empty() => Err(self.message("`:load` takes a file")),
            "load" => Ok(self.load(Path::new(args))),
            "stats" => Ok(shown(stats(self.session()))),
            "help" | "?" => Ok(shown(help(HELP, |_| true))),
            "quit" | "q" | "exit" => Ok(Reply::Quit),
            _ => Err(unknown(name, |_| true, &self.options)),
        }
    }

    fn show(&self, command: &str, args: &str) -> Result<Reply, String> {
        let program = self.definitions.program().map_err(|error| self.options.error(&error))?;
        // Library functions used by the program are not the user's own.
        let symbols = self.definitions.symbols();
        let is_own = |symbol: &str| symbols.contains(&symbol);
        match Form::of(command) {
            Some(form) => show(&program, form, &args.into(), &is_own, &self.options),
            None => explore(&program, args, &is_own, &self.options),
        }
    }

    fn variables(&self) -> Reply {
        let line = |(name, value)| format!("{name}::{}", self.evaluator.type_text(value));
        let lines: Vec<String> = self.evaluator.variables().map(line).collect();
        if lines.is_empty() { Reply::Nothing } else { shown(lines.join("\n")) }
    }
}

/// The functions to which a command applies.
pub(crate) struct Wanted<'a> {
    /// As written by the user; empty for all functions.
    pub(crate) name: &'a str,
    /// The corresponding name in the IR.
    pub(crate) ir_name: Cow<'a, str>,
}

impl<'a> From<&'a str> for Wanted<'a> {
    fn from(name: &'a str) -> Wanted<'a> {
        Wanted { name, ir_name: name.into() }
    }
}

/// The compiled forms of the functions with this name or symbol, or of all of the user's own.
pub(crate) fn show(
    program: &Program,
    form: Form,
    wanted: &Wanted<'_>,
    is_own: &dyn Fn(&str) -> bool,
    options: &Options,
) -> Result<Reply, String> {
    let ids = named(program, wanted, is_own, options)?;
    let (module, settings) = (program.module(), brolga_opt::Options::default());
    let mut stages = Stages::new(module, options.level, &settings, Cx::default());
    let mut text = String::new();
    let mut lows = Vec::new();
    for id in ids {
        let made = match form {
            Form::Opt => stages.high(id),
            Form::Low => stages.low(id),
            Form::Asm => stages.placed(id),
        };
        let made = made.map_err(|error| options.error(&error))?;
        match form {
            Form::Asm => lows.push(made),
            // Writing to a string cannot fail.
            Form::Opt | Form::Low => drop(writeln!(text, "{}", show_func(&module.cx, &made))),
        }
    }
    if let Form::Asm = form {
        let code = emit::generate(module, &lows, options.level).map_err(|error| options.error(&error))?;
        text = explore::assembly(&code);
    }
    Ok(shown(text.trim_end().to_owned()))
}

fn named(
    program: &Program,
    wanted: &Wanted<'_>,
    is_own: &dyn Fn(&str) -> bool,
    options: &Options,
) -> Result<Vec<FuncId>, String> {
    let module = program.module();
    let fits = |id: &FuncId| {
        let (func, cx) = (&module[*id], &module.cx);
        let symbol = func.symbol(cx);
        match wanted.name {
            "" => is_own(&symbol),
            name => symbol == name || func.spelled_name(cx) == wanted.ir_name,
        }
    };
    let ids: Vec<FuncId> = module.funcs().map(|(id, _)| id).filter(fits).collect();
    if ids.is_empty() { Err(not_there(wanted.name, options)) } else { Ok(ids) }
}

fn not_there(name: &str, options: &Options) -> String {
    match name {
        "" => options.message("nothing is defined"),
        name => options.message(&format!("no function `{name}` is defined")),
    }
}

/// Methods with their result types. `own_name` maps the name of a function in the IR to the user's name.
pub(crate) fn dispatch(
    dylib: &Dylib,
    wanted: &Wanted<'_>,
    own_name: &dyn Fn(&str) -> Option<String>,
    options: &Options,
) -> Result<Reply, String> {
    let methods = dylib.methods().map_err(|error| options.session_error(&error))?;
    let fits = methods.iter().filter(|method| {
        wanted.name.is_empty() || method.name == wanted.ir_name || method.symbol == wanted.name
    });
    let line = |method: &brolga_engine::session::Method| {
        let symbol = match (own_name(&method.name), method.symbol.find('(')) {
            (Some(name), Some(at)) => format!("{name}{}", &method.symbol[at..]),
            _ => method.symbol.clone(),
        };
        match &method.result {
            Some(result) => format!("{symbol}::{result}"),
            None => symbol,
        }
    };
    let lines: Vec<String> = fits.map(line).collect();
    if lines.is_empty() { Err(not_there(wanted.name, options)) } else { Ok(shown(lines.join("\n"))) }
}

/// Writes the explorer's page of the user's own functions.
pub(crate) fn explore(
    program: &Program,
    file: &str,
    is_own: &dyn Fn(&str) -> bool,
    options: &Options,
) -> Result<Reply, String> {
    let module = program.module();
    let own = named(program, &"".into(), is_own, options)?;
    let only = own.iter().map(|&id| module[id].symbol(&module.cx)).collect();
    let settings = explore::Options { level: options.level, only: Some(only), ..explore::Options::default() };
    let page = explore::page(program, &settings).map_err(|error| options.error(&error))?;
    let file = match file {
        "" => PathBuf::from(format!("brolga-explore-{}.html", std::process::id())),
        file => PathBuf::from(file),
    };
    brolga_files::write(&file, page.as_bytes())
        .map_err(|error| options.message(&format!("cannot write `{}`: {error}", file.display())))?;
    Ok(shown(format!("wrote {}", file.display())))
}

/// The world, the code and the heap of a session.
pub(crate) fn stats(session: &Session) -> String {
    let (stats, heap) = (session.stats(), session.runtime().heap().stats());
    let rows = [
        ("world", session.runtime().world().to_string()),
        ("functions compiled", stats.compiled_functions.to_string()),
        ("bytes of code made", stats.compiled_bytes.to_string()),
        ("functions evicted", stats.evicted.to_string()),
        ("loops left for better code", stats.left_loops.to_string()),
        ("collections", (heap.minor_collections + heap.full_collections).to_string()),
        ("bytes of objects in use", heap.used_bytes.to_string()),
    ];
    let lines: Vec<String> = rows.iter().map(|(name, value)| format!("{name:28} {value:>12}")).collect();
    lines.join("\n")
}

/// The error for an unknown command.
pub(crate) fn unknown(name: &str, is_known: fn(&Command) -> bool, options: &Options) -> String {
    let known = COMMANDS.iter().filter(|command| is_known(command));
    let names: Vec<String> = known.map(|command| format!("`:{}`", command.name)).collect();
    options.message(&format!("there is no command `:{name}`; there is {}", names.join(", ")))
}

pub(crate) fn help(introduction: &str, is_known: fn(&Command) -> bool) -> String {
    let mut text = introduction.to_owned();
    for Command { name, args, help } in COMMANDS.iter().filter(|command| is_known(command)) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {:24}{help}", format!(":{name} {args}"));
    }
    text
}
