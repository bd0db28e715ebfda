//! A small language on a session: what a line defines is a promise with its syntax tree in it, which becomes IR and code when
//! something that is evaluated calls it. A line that defines a function again replaces it, also for code that is compiled.
//!
//! ```text
//! $ cargo run --example kaleidoscope
//! > def fib(n) if n < 3 then 1 else fib(n - 1) + fib(n - 2)
//! > fib(30)
//! 832040
//! > extern cos(x)
//! > cos(0) + 1
//! 2
//! ```
//!
//! Lines come from the standard input; `cargo test --example kaleidoscope` feeds it a script.

mod lower;
mod syntax;

use std::error::Error;
use std::io::{BufRead, Write};

use brolga::ir::Type;
use brolga::session::linking::OnDrop;
use brolga::session::{Dylib, Signature};
use brolga::{Options, Session, Workers};
use syntax::{Function, Line, parse};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Repl {
    session: Session,
    dylib: Dylib,
}

impl Repl {
    fn new() -> Done<Repl> {
        let session = Session::new(Options::new(), Workers::Pool(1))?;
        let dylib = session.create_dylib("repl")?;
        Ok(Repl { session, dylib })
    }

    /// Does what a line says. An expression has a value.
    fn line(&self, text: &str) -> Done<Option<f64>> {
        match parse(text)? {
            Line::Nothing => Ok(None),
            Line::Define(function) => {
                let signature = signature(&function.name, function.params.len());
                // The tree waits here until somebody calls the function.
                let make = move |dylib: &Dylib| lower::module(dylib.session().context(), &function);
                self.dylib.promise_again(&[signature], None, make)?;
                Ok(None)
            }
            Line::Extern(name, arity) => {
                let signature = signature(&name, arity);
                let make = move |dylib: &Dylib| lower::foreign(dylib.session().context(), &name, arity);
                self.dylib.promise_again(&[signature], None, make)?;
                Ok(None)
            }
            Line::Evaluate(body) => {
                // An expression is a function that is removed when it has run.
                let function = Function { name: "#expression".into(), params: Vec::new(), body };
                let tracker = self.dylib.create_tracker(OnDrop::Remove)?;
                let module = lower::module(self.session.context(), &function)?;
                self.dylib.define(self.dylib.build(module)?.tracked_by(&tracker))?;
                let value = self.dylib.func::<(), f64>(&function.name)?.call(())?;
                Ok(Some(value))
            }
        }
    }
}

/// Functions of the language take and give numbers.
fn signature(name: &str, arity: usize) -> Signature {
    Signature::new(name, &vec![Type::FLOAT64; arity], Type::FLOAT64)
}

fn main() -> Done<()> {
    let repl = Repl::new()?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        match repl.line(&line?) {
            Ok(None) => {}
            Ok(Some(value)) => writeln!(out, "{value}")?,
            Err(error) => writeln!(out, "error: {error}")?,
        }
    }
    repl.session.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Repl;

    /// Lines, each with what it prints.
    fn script(lines: &[(&str, &str)]) -> Repl {
        let repl = Repl::new().unwrap_or_else(|error| panic!("{error}"));
        for (line, expected) in lines {
            let printed = match repl.line(line) {
                Ok(value) => value.map_or_else(String::new, |value| value.to_string()),
                Err(error) => format!("error: {error}"),
            };
            assert_eq!(printed, *expected, "{line}");
        }
        repl
    }

    #[test]
    fn functions_are_compiled_when_something_needs_them() {
        let repl = script(&[
            ("def fib(n) if n < 3 then 1 else fib(n - 1) + fib(n - 2)", ""),
            ("def unused(x) nowhere(x)", ""),
            ("# nothing is compiled yet", ""),
        ]);
        assert_eq!(repl.session.stats().compiled_functions, 0);
        assert_eq!(repl.line("fib(20)").unwrap(), Some(6765.0));
        assert_eq!(repl.session.stats().compiled_functions, 2, "the expression and `fib`");
        let error = repl.line("unused(1)").unwrap_err().to_string();
        assert!(error.contains("unused"), "{error}");
    }

    #[test]
    fn definitions_take_the_place_of_older_ones() {
        script(&[
            ("def rate(x) x * 2", ""),
            ("def price(x) rate(x) + 1", ""),
            ("price(10)", "21"),
            ("def rate(x) x * 3", ""),
            ("# `price` calls the new one, though it is compiled already", ""),
            ("price(10)", "31"),
            ("rate(10)", "30"),
            ("let y = 4 in y * (y - 1) / 2", "6"),
        ]);
    }

    #[test]
    fn c_and_mistakes() {
        script(&[
            ("extern fabs(x)", ""),
            ("fabs(-2.5)", "2.5"),
            ("1 +", "error: `` is no name"),
            ("x", "error: there is no `x` here"),
            ("2 ? 3", "error: `?` means nothing here"),
            (&format!("{}1{}", "(".repeat(500), ")".repeat(500)), "error: too deep"),
        ]);
    }

    #[test]
    fn expressions_leave_nothing_behind() {
        let repl = script(&[("def twice(x) x + x", ""), ("twice(1)", "2")]);
        let before = repl.session.stats();
        for n in 0..50 {
            assert_eq!(repl.line(&format!("twice({n})")).unwrap(), Some(f64::from(2 * n)));
        }
        let after = repl.session.stats();
        assert_eq!((after.symbols, after.units, after.placed), (before.symbols, before.units, before.placed));
    }
}
