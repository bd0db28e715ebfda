//! A prompt for a small language. The language is in `language`.
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
//! Lines come from the standard input; `cargo test --example kaleidoscope` feeds it a script. `brolga repl --lang kaleidoscope` has an editor. `--ir` prints the IR of
//! all functions at the end.

mod language;

use std::io::{BufRead, Write};

use brolga::Options;
use language::{Done, Repl, is_complete};

fn main() -> Done<()> {
    let repl = Repl::new(Options::new())?;
    let mut out = std::io::stdout().lock();
    let mut pending = String::new();
    for line in std::io::stdin().lock().lines() {
        // An empty line ends what is not complete.
        let line = line?;
        pending += &(line.clone() + "\n");
        if !line.trim().is_empty() && !is_complete(&pending) {
            continue;
        }
        match repl.line(&std::mem::take(&mut pending)) {
            Ok(None) => {}
            Ok(Some(value)) => writeln!(out, "{value}")?,
            Err(error) => writeln!(out, "error: {error}")?,
        }
    }
    if std::env::args().any(|arg| arg == "--ir") {
        write!(out, "{}", brolga::observe::show_module(repl.program()?.module()))?;
    }
    repl.session.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use brolga::Options;

    use super::Repl;

    /// Lines, each with what it prints.
    fn script(lines: &[(&str, &str)]) -> Repl {
        let repl = Repl::new(Options::new()).unwrap_or_else(|error| panic!("{error}"));
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
            ("1 +", "error: `` is not a name"),
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
