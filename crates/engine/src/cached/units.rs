//! Units of a session: what is kept of them, beside the code, and how it comes back.
//!
//! A unit of the first tier knows the loops that may be left for better code. A loop is kept as the declarations of the function that continues and of the question, and a *mark*: the values that are live at
//! its head. The function itself is made when somebody wants it, from the optimised function, as without a cache; the mark says whether that is the one that the code was made from. So is its code kept: under
//! the facts of the unit and the number of the loop, and found without optimising anything.

use std::sync::Arc;
use std::time::Duration;

use brolga_cache::Fingerprint;
use brolga_codegen::sig::FunctionType;
use brolga_ir::{Func, Module};
use brolga_jit::Compiled;
use brolga_opt::osr::Exit;

use super::{CodeCache, Kept};

/// The function in which a loop continues.
#[derive(Clone)]
pub(crate) enum Continuation {
    /// It was found when the loop's function was optimised.
    Found(Arc<Exit>),
    /// The loop's code comes from a cache: the exit with this mark.
    Marked(Box<[u32]>),
}

impl Continuation {
    /// What tells the loop's function as it was optimised from others.
    pub(crate) fn mark(&self) -> Vec<u32> {
        match self {
            Continuation::Found(exit) => exit.mark(),
            Continuation::Marked(mark) => mark.to_vec(),
        }
    }
}

/// A loop of a unit, as it is kept.
pub(crate) struct KeptLoop {
    /// The place of its function in the unit.
    pub(crate) func: usize,
    /// The declaration of the function that continues.
    pub(crate) entry: Func,
    /// That of the question.
    pub(crate) question: Func,
    pub(crate) mark: Vec<u32>,
}

impl CodeCache {
    /// The facts of the code in which a loop of a unit continues.
    pub(crate) fn facts_of_loop(&self, unit: &Fingerprint, entry: &str, mark: &[u32]) -> Fingerprint {
        let mut facts = self.facts("continuation of a loop");
        facts.facts(unit);
        facts.text(entry);
        mark.iter().for_each(|&word| facts.word(u64::from(word)));
        facts.finish()
    }

    /// Keeps a unit with its loops.
    pub(crate) fn keep_unit(
        &self,
        facts: &Fingerprint,
        module: &Module,
        compiled: &Compiled,
        loops: &[KeptLoop],
        cost: Duration,
    ) {
        let mut declared = Module::new(module.cx.clone());
        let mut words = Vec::new();
        for kept in loops {
            for func in [&kept.entry, &kept.question] {
                if declared.add_func(func.clone()).is_err() {
                    return;
                }
            }
            words.extend([kept.func as u32, kept.mark.len() as u32]);
            words.extend_from_slice(&kept.mark);
        }
        self.keep(facts, compiled, (&declared, &words), cost);
    }

    /// A unit of functions of these types, with its loops.
    pub(crate) fn find_unit(
        &self,
        facts: &Fingerprint,
        module: &Module,
        types: Option<Vec<Arc<FunctionType>>>,
    ) -> Option<(Compiled, Vec<KeptLoop>)> {
        let Kept { compiled, declared, words } = self.find(facts, &module.cx, |_| types)?;
        let funcs = declared.iter().flat_map(|declared| declared.funcs());
        let funcs: Vec<Func> = funcs.map(|(_, func)| func.clone()).collect();
        let (mut loops, mut rest) = (Vec::new(), words.as_slice());
        for pair in funcs.chunks_exact(2) {
            let [entry, question] = pair else { return None };
            let (&[func, length], more) = rest.split_first_chunk()?;
            let (mark, more) = more.split_at_checked(length as usize)?;
            rest = more;
            let (entry, question) = (entry.clone(), question.clone());
            loops.push(KeptLoop { func: func as usize, entry, question, mark: mark.to_vec() });
        }
        Some((compiled, loops))
    }
}
