//! The order in which functions were first called: recorded in one run, compiled ahead in the next.
//!
//! ```text
//!   one run:    main(), read(), parse() …  lazy functions are compiled when they are called ──► Session::call_order ──► a text that the embedder stores
//!   the next:   define the same, Session::compile_ahead(order) ──► tasks of low priority, in this order, while main() runs
//! ```
//!
//! The order is only a hint: functions that are undefined or already ready are skipped, and an earlier call compiles its callee as usual.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;

use brolga_linking::{DylibId, Label, Priority};

use super::Session;
use super::lazy::BODY;

/// The functions that were compiled because they were called, in this order. Its text has one line per function: its dylib, a tab, and its symbol; line breaks, tabs and backslashes in names are written `\n`, `\r`, `\t`
/// and `\\`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CallOrder {
    /// The dylib and symbol of each.
    functions: Vec<(String, String)>,
}

impl CallOrder {
    /// The dylib and symbol of each function.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.functions.iter().map(|(dylib, symbol)| (&**dylib, &**symbol))
    }
}

/// The escapes of the characters that separate lines and names.
const ESCAPES: [(char, &str); 4] = [('\\', "\\\\"), ('\t', "\\t"), ('\n', "\\n"), ('\r', "\\r")];

fn escaped(name: &str) -> String {
    ESCAPES.iter().fold(name.to_owned(), |name, (plain, escape)| name.replace(*plain, escape))
}

/// Undoes the escapes; `None` for an invalid one.
fn unescaped(text: &str) -> Option<String> {
    let (mut name, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        let (plain, _) = ESCAPES.iter().find(|(_, escape)| rest[at..].starts_with(escape))?;
        name.push_str(&rest[..at]);
        name.push(*plain);
        rest = &rest[at + 2..];
    }
    Some(name + rest)
}

impl Display for CallOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.functions
            .iter()
            .try_for_each(|(dylib, symbol)| writeln!(f, "{}\t{}", escaped(dylib), escaped(symbol)))
    }
}

/// A line of a text is not one of a [`CallOrder`].
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error(
    "line {line} is not the name of a dylib, a tab and a symbol: write the order again with `Session::call_order`"
)]
pub struct BadCallOrder {
    /// The line number, from 1.
    pub line: usize,
}

impl FromStr for CallOrder {
    type Err = BadCallOrder;

    fn from_str(text: &str) -> Result<CallOrder, BadCallOrder> {
        let function = |(at, line): (usize, &str)| {
            let parts = line.split_once('\t').filter(|(_, symbol)| !symbol.contains('\t'));
            let names = parts.and_then(|(dylib, symbol)| Some((unescaped(dylib)?, unescaped(symbol)?)));
            names.ok_or(BadCallOrder { line: at + 1 })
        };
        let functions = text.split_terminator('\n').enumerate().map(function).collect::<Result<_, _>>()?;
        Ok(CallOrder { functions })
    }
}

impl Session {
    /// The functions compiled so far because they were called, in the order of their first calls. Functions of closed dylibs are omitted.
    pub fn call_order(&self) -> CallOrder {
        let order = self.inner.shared.first_calls.order();
        let named = |(dylib, function): (DylibId, Arc<str>)| {
            Some((self.home(dylib)?.name().to_owned(), function.to_string()))
        };
        CallOrder { functions: order.into_iter().filter_map(named).collect() }
    }

    /// Starts to compile the listed functions that are defined in a dylib of the listed name, in this order, with the lowest priority and without waiting. Returns their number. Where only waiting threads
    /// compile ([`Workers::Caller`](super::Workers::Caller)), these functions are compiled while a thread waits for something else.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// use brolga::{Options, Session, Workers};
    /// const TEXTS: [&str; 2] = [
    ///     "function half(n::Int64)::Int64\n1 ─ %1 = Base.sdiv_int(n, 2)::Int64\n└── return %1\nend",
    ///     "function main()::Int64\n1 ─ %1 = invoke Main.half(8::Int64)::Int64\n└── return %1\nend",
    /// ];
    /// let run = |ahead: &str| -> Result<String, Box<dyn std::error::Error>> {
    ///     let session = Session::new(Options::new(), Workers::Caller)?;
    ///     let main = session.create_dylib("main")?;
    ///     for text in TEXTS {
    ///         main.define(main.read("program.jlir", text.as_bytes())?.lazy())?;
    ///     }
    ///     session.compile_ahead(&ahead.parse()?);
    ///     assert_eq!(main.func::<(), i64>("main")?.call(())?, 4);
    ///     Ok(session.call_order().to_string())
    /// };
    /// let first = run("")?;
    /// assert_eq!(first, "main\tmain()\nmain\thalf(Int64)\n");
    /// assert_eq!(run(&first)?, first);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile_ahead(&self, order: &CallOrder) -> usize {
        let (linking, mut started) = (self.linking(), 0);
        for (dylib, symbol) in order.functions() {
            let Some(dylib) = self.dylib(dylib) else { continue };
            let Some(body) = linking.names().find(symbol).map(|symbol| symbol.part(BODY)) else { continue };
            if !linking.is_defined(Label { dylib: dylib.linking.id(), symbol: body }) {
                continue;
            }
            dylib.compile_in_background([body], Priority::Idle);
            started += 1;
        }
        started
    }
}
