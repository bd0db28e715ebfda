//! The order of first calls: what one run has called, another one compiles ahead.

use brolga::session::CallOrder;
use brolga::{OptLevel, Session};

use super::kinds::session;

/// Programs of their own, so that no body comes into another.
const TEXTS: [&str; 4] = [
    "function never(n::Int64)::Int64\n1 ─      return n\nend\n",
    "function first(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 1)::Int64\n└──      return %1\nend\n",
    "function second(n::Int64)::Int64\n1 ─ %1 = Base.mul_int(n, 2)::Int64\n└──      return %1\nend\n",
    "function main(n::Int64)::Int64\n1 ─ %1 = invoke Main.second(n::Int64)::Int64\n│   %2 = invoke Main.first(%1::Int64)::Int64\n└──      return %2\nend\n",
];

fn program(session: &Session, tiered: bool) -> brolga::session::Dylib {
    let main = session.create_dylib("a \\ dylib\twith\nall").unwrap();
    for text in TEXTS {
        let read = main.read("program.jlir", text.as_bytes()).unwrap();
        main.define(if tiered { read.tiered(1_000) } else { read.lazy() }).unwrap();
    }
    main
}

#[test]
fn what_was_called_is_compiled_ahead() {
    for tiered in [false, true] {
        let one = session(OptLevel::O1);
        let main = program(&one, tiered);
        assert_eq!(one.call_order(), CallOrder::default());
        assert_eq!(main.func::<(i64,), i64>("main").unwrap().call((20,)), Ok(41));
        let order = one.call_order();
        let called: Vec<&str> = order.functions().map(|(_, symbol)| symbol).collect();
        assert_eq!(called, ["main(Int64)", "second(Int64)", "first(Int64)"]);
        let text = order.to_string();
        assert!(text.starts_with("a \\\\ dylib\\twith\\nall\tmain(Int64)\n"), "{text}");
        assert_eq!(text.parse(), Ok(order.clone()));

        let next = session(OptLevel::O1);
        assert_eq!(next.compile_ahead(&order), 0, "there is nothing yet");
        let main = program(&next, tiered);
        assert_eq!(next.compile_ahead(&order), 3);
        // Whoever waits works.
        let never = main.function("never").unwrap();
        never.compile().unwrap();
        next.finish_background();
        assert_eq!(next.stats().compiled_functions, 4);
        assert_eq!(main.func::<(i64,), i64>("main").unwrap().call((20,)), Ok(41));
        assert_eq!(next.stats().compiled_functions, 4, "all was there");
    }
}

#[test]
fn a_text_that_is_not_an_order_is_refused_with_its_line() {
    for (text, line) in [("a\tb\nc", 2), ("a\tb\tc", 1), ("a\\x\tb", 1), ("a\tb\n\n", 2), ("a\\\tb", 1)] {
        let error = text.parse::<CallOrder>().unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
    }
}
