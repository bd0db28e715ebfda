//! Code that outlives the process: units are looked up in a cache before they are compiled, and stored there afterwards.
//!
//! ```text
//!   functions as read ── keys.rs ──┐
//!   compiler, target, heap ────────┼─► Fingerprint ──► Cache::find ──► brolga_aot::unit ──► Compiled ──► linked as if compiled here
//!   level, options, kind of unit ──┘                        └─ nothing: compile, Cache::keep
//! ```
//!
//! | kept | by |
//! |---|---|
//! | functions of an engine's program, one by one | `program.rs` |
//! | units of a session: a function, or eager functions that call each other in a cycle; in each tier | `units.rs` |
//! | functions in which loops of the first tier continue | `units.rs` |
//! | boxed entries | `boxed.rs` of the crate |
//! | everything that a call of a program reaches, by the text of the program | `run.rs` |
//!
//! Units of packages are looked up by the same keys, before those of a cache (`packages.rs`).
//!
//! An entry is a single function wherever functions are compiled separately, so a changed function only costs the compilation of those that have seen it.
//!
//! **The key** of an entry has all inputs of its bytes, so an entry is never out of date, and needs no validation: the forms of the functions and
//! everything that their optimisation may have seen (`keys.rs`), level and options of passes, the processor's features, the ABI id, and the compiler
//! itself: the versions of this crate and of Cranelift, and in a working tree the sources.
//!
//! **Profiles are not in the key.** They advise the second tier, and code is correct with any profile; so a process finds the code that another one has
//! made with another profile.
//!
//! **Trust.** Cached code is run. The cache returns only entries that were written with its key ([`brolga_cache::CacheKey`]).
//!
//! **Failures.** An entry of another form than its name promises is refused and compiled again. A failure of the cache never fails a compilation.
//!
//! Cost: the keys of a program, once: each function is written in binary form and hashed. Then a look-up for each unit.

mod keys;
mod packages;
mod program;
mod run;
mod units;

use std::sync::Arc;
use std::time::Duration;

use brolga_aot::unit::{self, StoredUnit, UNIT_VERSION};
use brolga_cache::{Cache, Digest, Fingerprint};
use brolga_codegen::CRANELIFT_VERSION;
use brolga_codegen::compile::Limits;
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::FunctionType;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::{Context, Type};
use brolga_jit::{Compiled, Jit, JitOptions};
use brolga_opt::OptLevel;

use crate::abi::abi_of;

pub(crate) use keys::{Keys, alone};
pub(crate) use packages::{Collected, Packages};
pub use packages::{Reason, Recompiled};
pub(crate) use program::{How, compile_program};
pub(crate) use run::{FoundRun, facts_of_run, find_run, keep_run};
pub(crate) use units::{Continuation, KeptLoop};

/// A cache and packages, with the facts that all code of an engine or session depends on.
#[derive(Clone, Debug)]
pub(crate) struct CodeCache {
    cache: Option<Arc<Cache>>,
    packages: Arc<Packages>,
    settings: Arc<[(String, String)]>,
    facts: Fingerprint,
}

impl CodeCache {
    /// The cache, if there is one, for code that is compiled with these settings, which has prices or not.
    pub(crate) fn new(
        cache: Option<Arc<Cache>>,
        packages: Packages,
        (jit, options): (&Jit, &JitOptions),
        (level, opt, roots): (OptLevel, &brolga_opt::Options, Roots),
        is_priced: bool,
    ) -> CodeCache {
        let version = format!(
            "{} {} {CRANELIFT_VERSION} {UNIT_VERSION}",
            env!("CARGO_PKG_VERSION"),
            env!("BROLGA_SOURCES")
        );
        let Limits { instructions, blocks, frame_bytes, memory: _ } = options.limits;
        let mut settings = vec![
            ("the compiler", version),
            ("the ABI", format!("{:016x}", abi_of(jit.runtime().heap().abi()))),
            ("the level", level.to_string()),
            ("the roots", roots.name().to_owned()),
            ("prices", is_priced.to_string()),
            ("the passes", opt.key()),
            ("the limits", format!("{instructions} {blocks} {frame_bytes}")),
        ];
        for (name, tier) in [("the first tier", Tier::Baseline), ("the processor", Tier::Optimised)] {
            settings.push((name, jit.isa().describe(tier)));
        }
        let settings: Arc<[(String, String)]> =
            settings.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        let mut facts = Digest::new("code");
        for (name, text) in settings.iter() {
            facts.text(name);
            facts.text(text);
        }
        CodeCache { cache, packages: Arc::new(packages), settings, facts: facts.finish() }
    }

    /// Whether code with the types of a context is looked for, or kept, anywhere. Kept code names types by their names and what they are, which may be so of several.
    pub(crate) fn is_used(&self, cx: &Context) -> bool {
        (self.cache.is_some() || self.packages.are_used()) && cx.types.have_unique_names()
    }

    /// The packages.
    pub(crate) fn packages(&self) -> &Packages {
        &self.packages
    }

    /// Name and text of all that every unit depends on.
    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// The facts of one kind of unit, to which its own are added.
    pub(crate) fn facts(&self, kind: &str) -> Digest {
        let mut facts = Digest::new(kind);
        facts.facts(&self.facts);
        facts
    }

    /// The unit that depends on these facts, with the names and types of `cx`. `types` says which of its functions can be looked up; a unit of which it says nothing is refused.
    pub(crate) fn find(
        &self,
        facts: &Fingerprint,
        cx: &Arc<Context>,
        types: impl FnOnce(&StoredUnit) -> Option<Vec<Arc<FunctionType>>>,
    ) -> Option<Kept> {
        self.found(facts, |payload| Kept::read(payload, cx, types))
    }

    /// The result of `made` for the bytes that were kept under these facts. Bytes for which it has no result are refused.
    pub(crate) fn found<T>(&self, facts: &Fingerprint, made: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let key = facts.as_bytes();
        // A package is whole, so a unit of another form than its key promises was made so, and the cache has no better one.
        if let Some(package) = self.packages.find(key) {
            return made(package.unit(key)?);
        }
        let cache = self.cache.as_ref()?;
        let found = cache.find(facts)?;
        let made = made(&found.payload);
        if made.is_none() {
            cache.refuse(&found);
        }
        made
    }

    /// Keeps a unit, with types of `cx` and words that are wanted again when it is found.
    pub(crate) fn keep(
        &self,
        facts: &Fingerprint,
        cx: &Arc<Context>,
        compiled: &Compiled,
        (types, words): (&[Type], &[u32]),
        cost: Duration,
    ) {
        if let Some(bytes) = unit::write(cx, &compiled.code(), types, words) {
            self.keep_bytes(facts, &bytes, cost);
        }
    }

    /// Keeps bytes under these facts.
    pub(crate) fn keep_bytes(&self, facts: &Fingerprint, bytes: &[u8], cost: Duration) {
        self.packages.collect(facts.as_bytes(), bytes);
        if let Some(cache) = &self.cache {
            cache.keep(facts, bytes, cost);
        }
    }
}

/// A unit that was found.
pub(crate) struct Kept {
    pub(crate) compiled: Compiled,
    pub(crate) types: Vec<Type>,
    pub(crate) words: Vec<u32>,
}

impl Kept {
    /// The unit in these bytes, as [`CodeCache::find`] gives it.
    fn read(
        payload: &[u8],
        cx: &Arc<Context>,
        types: impl FnOnce(&StoredUnit) -> Option<Vec<Arc<FunctionType>>>,
    ) -> Option<Kept> {
        let stored = unit::read(payload, cx).ok()?;
        let types = types(&stored)?;
        let StoredUnit { code, types: own, words } = stored;
        let compiled = Compiled::of_code(cx, code, types).ok()?;
        Some(Kept { compiled, types: own, words })
    }
}
