//! The commands of the prompt.
//!
//! One table has their names, arguments and help; a test holds it against what is done.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brolga_engine::{Program, Stages, emit};
use brolga_explore as explore;
use brolga_ir::FuncId;
use brolga_ir::text::show_func;
use brolga_opt::Cx;

use crate::prompt::{Prompt, Reply, shown};

/// A command: its name, its arguments, and what it does.
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
enum Form {
    Opt,
    Low,
    Asm,
}

impl Prompt<'_> {
    pub(crate) fn command(&mut self, name: &str, args: &str) -> Result<Reply, String> {
        match name {
            "opt" => self.show(Form::Opt, args),
            "low" => self.show(Form::Low, args),
            "asm" => self.show(Form::Asm, args),
            "time" if args.is_empty() => Err(self.message("`:time` takes an expression")),
            "time" => self.timed(args),
            "dispatch" => self.dispatch(args),
            "vars" => Ok(self.variables()),
            "explore" => self.explore(args),
            "load" if args.is_empty() => Err(self.message("`:load` takes a file")),
            "load" => Ok(self.load(Path::new(args))),
            "stats" => Ok(shown(self.stats())),
            "help" | "?" => Ok(shown(help())),
            "quit" | "q" | "exit" => Ok(Reply::Quit),
            _ => {
                let names: Vec<String> =
                    COMMANDS.iter().map(|command| format!("`:{}`", command.name)).collect();
                Err(self.message(&format!("there is no command `:{name}`; there is {}", names.join(", "))))
            }
        }
    }

    /// The forms that the compiler gives the functions of this name or symbol, or all.
    fn show(&self, form: Form, name: &str) -> Result<Reply, String> {
        let program = self.definitions.program().map_err(|error| self.error(&error))?;
        let ids = self.named(&program, name)?;
        let (module, options) = (program.module(), brolga_opt::Options::default());
        let mut stages = Stages::new(module, self.options.level, &options, Cx::default());
        let mut text = String::new();
        let mut lows = Vec::new();
        for id in ids {
            let made = match form {
                Form::Opt => stages.high(id),
                Form::Low => stages.low(id),
                Form::Asm => stages.placed(id),
            };
            let made = made.map_err(|error| self.error(&error))?;
            match form {
                Form::Asm => lows.push(made),
                // Writing to a string cannot fail.
                Form::Opt | Form::Low => drop(writeln!(text, "{}", show_func(&module.cx, &made))),
            }
        }
        if let Form::Asm = form {
            let code =
                emit::generate(module, &lows, self.options.level).map_err(|error| self.error(&error))?;
            text = explore::assembly(&code);
        }
        Ok(shown(text.trim_end().to_owned()))
    }

    fn named(&self, program: &Program, name: &str) -> Result<Vec<FuncId>, String> {
        let module = program.module();
        let symbols = self.definitions.symbols();
        let fits = |id: &FuncId| {
            let (func, cx) = (&module[*id], &module.cx);
            let symbol = func.symbol(cx);
            match name {
                // Functions of the library that the program uses are not the user's.
                "" => symbols.contains(&symbol.as_str()),
                name => symbol == name || func.spelled_name(cx) == name,
            }
        };
        let ids: Vec<FuncId> = module.funcs().map(|(id, _)| id).filter(fits).collect();
        match (ids.is_empty(), name) {
            (false, _) => Ok(ids),
            (true, "") => Err(self.message("nothing is defined")),
            (true, name) => Err(self.message(&format!("no function `{name}` is defined"))),
        }
    }

    fn dispatch(&self, name: &str) -> Result<Reply, String> {
        let methods = self.dylib.methods().map_err(|error| self.session_error(&error))?;
        let fits =
            methods.iter().filter(|method| name.is_empty() || method.name == name || method.symbol == name);
        let line = |method: &brolga_engine::session::Method| match &method.result {
            Some(result) => format!("{}::{result}", method.symbol),
            None => method.symbol.clone(),
        };
        let lines: Vec<String> = fits.map(line).collect();
        match lines.is_empty() {
            true if name.is_empty() => Err(self.message("nothing is defined")),
            true => Err(self.message(&format!("no function `{name}` is defined"))),
            false => Ok(shown(lines.join("\n"))),
        }
    }

    fn variables(&self) -> Reply {
        let line = |(name, value)| format!("{name}::{}", self.evaluator.type_text(value));
        let lines: Vec<String> = self.evaluator.variables().map(line).collect();
        if lines.is_empty() { Reply::Nothing } else { shown(lines.join("\n")) }
    }

    fn explore(&self, file: &str) -> Result<Reply, String> {
        let program = self.definitions.program().map_err(|error| self.error(&error))?;
        self.named(&program, "")?;
        let options = explore::Options { level: self.options.level, ..explore::Options::default() };
        let page = explore::page(&program, &options).map_err(|error| self.error(&error))?;
        let file = match file {
            "" => PathBuf::from(format!("brolga-explore-{}.html", std::process::id())),
            file => PathBuf::from(file),
        };
        std::fs::write(&file, page)
            .map_err(|error| self.message(&format!("cannot write `{}`: {error}", file.display())))?;
        Ok(shown(format!("wrote {}", file.display())))
    }

    fn stats(&self) -> String {
        let (session, stats) = (self.session(), self.session().stats());
        let heap = session.runtime().heap().stats();
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
}

fn help() -> String {
    let mut text = HELP.to_owned();
    for Command { name, args, help } in COMMANDS {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {:24}{help}", format!(":{name} {args}"));
    }
    text
}
