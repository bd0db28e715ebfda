//! Units of a session: the data that the cache stores for them in addition to the code.
//!
//! A unit of the first tier lists the loops that may continue in better code. A loop is stored as the signatures of the continuation and of the check, and
//! a *mark*: the values that are live at its head. The continuation itself is made on demand, from the optimised function, as without a cache; the mark
//! shows whether the code was compiled from that function. The continuation's code is stored under the key of the unit and the number of the loop, and found
//! without optimising anything.

use std::sync::Arc;
use std::time::Duration;

use brolga_cache::Fingerprint;
use brolga_codegen::sig::FunctionType;
use brolga_ir::func::Param;
use brolga_ir::{Module, Signature, Type};
use brolga_jit::Compiled;
use brolga_opt::osr::Exit;

use super::{CodeCache, Kept};

/// The continuation of a loop.
#[derive(Clone)]
pub(crate) enum Continuation {
    /// The exit found when the loop's function was optimised.
    Found(Arc<Exit>),
    /// The loop's code comes from a cache: the exit with this mark.
    Marked(Box<[u32]>),
}

impl Continuation {
    /// The mark of the loop's function after optimisation.
    pub(crate) fn mark(&self) -> Vec<u32> {
        match self {
            Continuation::Found(exit) => exit.mark(),
            Continuation::Marked(mark) => mark.to_vec(),
        }
    }
}

/// The stored form of a loop of a unit.
pub(crate) struct KeptLoop {
    /// The index of its function in the unit.
    pub(crate) func: usize,
    /// The signature of the continuation.
    pub(crate) entry: Signature,
    /// The signature of the OSR check.
    pub(crate) check: Signature,
    pub(crate) mark: Vec<u32>,
}

impl CodeCache {
    /// The facts of the continuation of a unit's loop.
    pub(crate) fn facts_of_loop(&self, unit: &Fingerprint, entry: &str, mark: &[u32]) -> Fingerprint {
        let mut facts = self.facts("continuation of a loop");
        facts.facts(unit);
        facts.text(entry);
        mark.iter().for_each(|&word| facts.word(u64::from(word)));
        facts.finish()
    }

    /// Stores a unit with its loops.
    pub(crate) fn keep_unit(
        &self,
        facts: &Fingerprint,
        module: &Module,
        compiled: &Compiled,
        loops: &[KeptLoop],
        cost: Duration,
    ) {
        let (mut types, mut words) = (Vec::new(), Vec::new());
        for kept in loops {
            words.push(kept.func as u32);
            for sig in [&kept.entry, &kept.check] {
                words.extend([sig.params.len() as u32, sig.results.len() as u32]);
                types.extend(sig.params.iter().map(|param| param.ty).chain(sig.results.iter().copied()));
            }
            words.push(kept.mark.len() as u32);
            words.extend_from_slice(&kept.mark);
        }
        self.keep(facts, &module.cx, compiled, (&types, &words), cost);
    }

    /// A unit of functions of the given types, with its loops.
    pub(crate) fn find_unit(
        &self,
        facts: &Fingerprint,
        module: &Module,
        types: Option<Vec<Arc<FunctionType>>>,
    ) -> Option<(Compiled, Vec<KeptLoop>)> {
        let Kept { compiled, types, words } = self.find(facts, &module.cx, |_| types)?;
        let (mut types, mut words, mut loops) = (types.as_slice(), words.as_slice(), Vec::new());
        while let Some((&func, rest)) = words.split_first() {
            words = rest;
            let (entry, check) = (signature(&mut types, &mut words)?, signature(&mut types, &mut words)?);
            let (&length, rest) = words.split_first()?;
            let (mark, rest) = rest.split_at_checked(length as usize)?;
            words = rest;
            loops.push(KeptLoop { func: func as usize, entry, check, mark: mark.to_vec() });
        }
        Some((compiled, loops))
    }
}

/// The signature of a function without a body, whose first parameter is its object.
fn signature(types: &mut &[Type], words: &mut &[u32]) -> Option<Signature> {
    let (&[params, results], rest) = words.split_first_chunk()?;
    let (own, others) = types.split_at_checked((params as usize).checked_add(results as usize)?)?;
    (*words, *types) = (rest, others);
    let (params, results) = own.split_at(params as usize);
    let params = params.iter().map(|&ty| Param { name: None, ty }).collect();
    Some(Signature { params, results: results.to_vec(), ..Signature::default() })
}
