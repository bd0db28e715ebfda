//! The environment of the prompt: names and their meanings.
//!
//! A function is a function of the IR. A variable is a global variable of a program of its own, with two functions to read and write it: global variables
//! belong to their programs, functions are seen by all.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The meaning of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Global {
    /// A function of the library.
    Library,
    /// A function, by the symbol of its method.
    Function(String),
    /// A variable, by its number.
    Variable(u64),
}

#[derive(Default)]
pub(crate) struct Globals {
    names: Mutex<BTreeMap<String, Global>>,
    numbers: Mutex<u64>,
}

impl Globals {
    pub(crate) fn get(&self, name: &str) -> Option<Global> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Says what a name stands for; nothing if it stands for none any more.
    pub(crate) fn set(&self, name: &str, global: Option<Global>) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match global {
            Some(global) => drop(names.insert(name.to_owned(), global)),
            None => drop(names.remove(name)),
        }
    }

    /// A number that is given once.
    pub(crate) fn number(&self) -> u64 {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        *numbers += 1;
        *numbers
    }
}

/// The name of a function in the IR. `@` keeps it apart from what calls of Base's names mean, and a dot would end the name of a module.
pub(crate) fn symbol(name: &str) -> String {
    format!("@{}", name.replace('.', "·"))
}

/// The name in the language of a function of the IR; none if it is none of the language's, such as a closure.
pub(crate) fn spelled(symbol: &str) -> Option<String> {
    symbol.strip_prefix('@').map(|name| name.replace('·', "."))
}

/// The function that reads a variable.
pub(crate) fn getter(number: u64) -> String {
    format!("get@{number}")
}

/// The function that writes a variable.
pub(crate) fn setter(number: u64) -> String {
    format!("set@{number}")
}

/// The program of a variable.
pub(crate) fn variable(number: u64) -> String {
    format!(
        "global cell{number}::Any = nothing
function var\"get@{number}\"()::Any
1 ─ %1 = Main.cell{number}::Any
└──      return %1
end
function var\"set@{number}\"(value::Any)::Any
1 ─      Core.setglobal!(Main, :cell{number}, value)::Any
└──      return value
end
"
    )
}
