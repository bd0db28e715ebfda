//! A prompt for a small Scheme. The language is in `language`.
//!
//! ```text
//! $ cargo run --example scheme
//! > (define (compose f g) (lambda (x) (f (g x))))
//! > (define (twice x) (* x 2))
//! > ((compose twice (lambda (x) (+ x 1))) 20)
//! 42
//! ```
//!
//! Forms come from the standard input. `--tiered` compiles twice, fast at first; `--bench` measures; `--ir NAME` shows a function in the IR
//! at the end, `--ir` all that were defined. `cargo test --example scheme` runs `script.scm`.
//! `brolga repl --lang scheme` has an editor.

mod language;

use std::io::{BufRead, Write};
use std::time::Instant;

use brolga::Options;
use brolga::build::Func;
use brolga::observe::show_func;
use language::globals::spelled;
use language::{Lowered, Repl, Tiers, is_complete};

/// Reads forms to the end, and writes what they show.
fn serve(repl: &Repl, input: impl BufRead, mut out: impl Write) -> std::io::Result<()> {
    let mut pending = String::new();
    for line in input.lines() {
        pending += &(line? + "\n");
        if !is_complete(&pending) {
            continue;
        }
        let done = repl.forms(&std::mem::take(&mut pending));
        out.write_all(repl.written().as_bytes())?;
        for done in done {
            match done {
                Ok(shown) if shown.is_empty() => {}
                Ok(shown) => writeln!(out, "{shown}")?,
                Err(error) => writeln!(out, "error: {error}")?,
            }
        }
    }
    Ok(())
}

/// Programs that are measured, each with what it gives.
const BENCH: &str = "
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (adders n) (let loop ((i 0) (sum 0)) (if (= i n) sum (loop (+ i 1) ((lambda (x) (+ x i)) sum)))))
(define (counter) (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
(define (count f n) (let loop ((i 0)) (if (= i n) (f) (begin (f) (loop (+ i 1))))))
(define (build n) (let loop ((i 0) (out '())) (if (= i n) out (loop (+ i 1) (cons i out)))))
";

fn bench(repl: &Repl) -> Lowered<()> {
    for form in repl.forms(BENCH) {
        form?;
    }
    for text in
        ["(fib 27)", "(adders 1000000)", "(count (counter) 1000000)", "(fold + 0 (map abs (build 1000)))"]
    {
        for round in ["first", "again"] {
            let begun = Instant::now();
            let shown = repl.forms(text).pop().ok_or("nothing to run")??;
            println!("{text} = {shown}, {round}: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
            repl.session.optimize_hot();
        }
    }
    Ok(())
}

/// The function of this name in the IR, or all functions that were defined.
fn in_ir(repl: &Repl, name: Option<&str>) -> Lowered<String> {
    let (program, own) = (repl.program()?, repl.own_functions());
    let module = program.module();
    let is_wanted = |func: &Func| match name {
        Some(name) => spelled(&func.spelled_name(&module.cx)).as_deref() == Some(name),
        None => own.contains(&func.symbol(&module.cx)),
    };
    let functions = module.funcs().filter(|(_, func)| is_wanted(func));
    Ok(functions.map(|(_, func)| show_func(&module.cx, func).to_string()).collect())
}

fn main() -> Lowered<()> {
    let has = |flag: &str| std::env::args().any(|arg| arg == flag);
    let repl = Repl::new(Options::new(), if has("--tiered") { Tiers::Two(100) } else { Tiers::One })?;
    if has("--bench") {
        bench(&repl)?;
    } else {
        serve(&repl, std::io::stdin().lock(), std::io::stdout().lock())?;
    }
    if has("--ir") {
        let name = std::env::args().skip_while(|arg| arg != "--ir").nth(1);
        print!("{}", in_ir(&repl, name.as_deref())?);
    }
    repl.session.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use brolga::Options;

    use super::{Repl, Tiers, in_ir, is_complete, serve};

    const SCRIPT: &str = include_str!("script.scm");

    #[test]
    fn a_function_is_shown_as_it_was_defined_last() {
        let repl = Repl::new(Options::new(), Tiers::One).unwrap();
        for form in repl.forms(
            "(define total 3) (define (f a) a) (define (g b) (lambda (x) (+ x b))) (define (f c) (g total))",
        ) {
            form.unwrap();
        }
        let text = in_ir(&repl, Some("f")).unwrap();
        assert!(text.starts_with("function var\"@f\"(c::Any)::Any"), "{text}");
        assert!(in_ir(&repl, Some("g")).unwrap().contains("(b::Any)"));
        assert_eq!(in_ir(&repl, Some("h")).unwrap(), "");
        // `f`, `g` and the closure in it, and nothing of the library.
        assert_eq!(in_ir(&repl, None).unwrap().matches("function ").count(), 3);
        repl.session.end();
    }

    /// Forms, each with what it shows behind `;=>`.
    #[test]
    fn the_script_shows_what_it_says() {
        for tiers in [Tiers::One, Tiers::Two(1), Tiers::Two(100)] {
            let repl = Repl::new(Options::new(), tiers).unwrap_or_else(|error| panic!("{error}"));
            let mut shown = Vec::new();
            serve(&repl, SCRIPT.as_bytes(), &mut shown).unwrap();
            let shown = String::from_utf8(shown).unwrap();
            let expected: Vec<&str> =
                SCRIPT.lines().filter_map(|line| line.split_once(";=> ")).map(|(_, e)| e).collect();
            let shown: Vec<&str> = shown.lines().collect();
            for (at, (shown, expected)) in shown.iter().zip(&expected).enumerate() {
                assert_eq!(shown, expected, "{tiers:?}, line {at} of what is shown");
            }
            assert_eq!(shown.len(), expected.len(), "{tiers:?}");
            assert!(expected.len() >= 60);
        }
    }

    #[test]
    fn expressions_leave_nothing_behind() {
        let repl = Repl::new(Options::new(), Tiers::One).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(repl.forms("(define (twice x) (* x 2)) (twice 3)")[1], Ok("6".into()));
        let before = repl.session.stats();
        for n in 0..50 {
            assert_eq!(repl.forms(&format!("(twice {n})")), [Ok((2 * n).to_string())]);
        }
        let after = repl.session.stats();
        assert_eq!((after.symbols, after.units, after.placed), (before.symbols, before.units, before.placed));
    }

    #[test]
    fn forms_end_with_their_brackets() {
        assert!(is_complete("") && is_complete("(f 1) 2 ; (") && is_complete(")"));
        assert!(!is_complete("(f 1") && !is_complete("(f 1) (g") && !is_complete("\"a"));
    }

    #[test]
    fn no_text_does_harm() {
        let repl = Repl::new(Options::new(), Tiers::One).unwrap_or_else(|error| panic!("{error}"));
        let deep = "(".repeat(5000);
        for text in [
            ")",
            "(",
            "(car",
            "\"",
            "'",
            "#x",
            "(let ((x)) x)",
            "(lambda)",
            "(define)",
            "(set! y 1)",
            "()",
            &deep,
        ] {
            assert!(repl.forms(text).iter().all(Result::is_err), "{text}");
        }
    }
}
