//! Code that outlives the process: units are looked up in a cache before they are compiled, and stored there afterwards.
//!
//! ```text
//!   functions as read ── keys.rs ──┐
//!   compiler, target, heap ────────┼─► Fingerprint ──► Group::find ──► brolga_aot::unit ──► Compiled ──► linked like fresh code
//!   level, options, kind of unit ──┘                        └─ miss: compile, Group::keep
//! ```
//!
//! **Groups.** The units of a program are one entry of the store, which one request brings: of an engine's program by its name, of a session's by the symbols that
//! it defines. A group is only a place: a unit in it is found by its key.
//!
//! | cached | by |
//! |---|---|
//! | functions of an engine's program, one by one | `program.rs` |
//! | units of a session: a function, or a cycle of eager functions; in each tier | `units.rs` |
//! | continuations of first-tier loops | `units.rs` |
//! | boxed entries | `boxed.rs` of the crate |
//! | what a call of a program reaches, by the text of the program | `run.rs` |
//!
//! Units of packages are looked up by the same keys, before the cache (`packages.rs`).
//!
//! An entry is a single function wherever functions are compiled separately, so a changed function costs only the compilation of the functions that depend on it.
//!
//! **The key** of an entry covers all inputs of its bytes, so an entry is never stale and needs no validation: the forms of the functions and
//! everything that their optimisation may have used (`keys.rs`), level and options of passes, the processor's features, the ABI id, and the compiler
//! itself: the versions of this crate and of Cranelift, and in a working tree the sources.
//!
//! **Profiles are not in the key.** They guide the second tier, and code is correct with any profile, so a process finds code that another one
//! compiled with another profile.
//!
//! **Trust.** Cached code is run. The cache returns only entries written with its key ([`brolga_cache::CacheKey`]).
//!
//! **Failures.** A malformed entry is refused and compiled again. A failure of the cache never fails a compilation.
//!
//! **One compilation.** Before it compiles, an engine asks whether another process of the machine or the fleet compiles the same run, or the same functions, and
//! then waits for its units ([`brolga_cache::Group::want`]). Sessions do not: nobody can tell when a function of a session is compiled.
//!
//! Cost: computing the keys of a program once, by writing each function in binary form and hashing it; then a look-up in memory for each unit.

mod keys;
mod packages;
mod program;
mod run;
mod units;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use brolga_aot::unit::{self, StoredUnit, UNIT_VERSION};
use brolga_cache::{Cache, Digest, Fingerprint, Group};
use brolga_codegen::CRANELIFT_VERSION;
use brolga_codegen::compile::Limits;
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::FunctionType;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::{Context, Type};
use brolga_jit::{Compiled, Jit, JitOptions};
use brolga_opt::OptLevel;

use brolga_jit::abi::abi_of;

use crate::sync::lock;

pub(crate) use keys::{Keys, alone};
pub(crate) use packages::{Collected, Packages};
pub use packages::{Reason, Recompiled};
pub(crate) use program::{FromCache, How, compile_program};
pub(crate) use run::{FoundRun, facts_of_run, find_run, keep_run};
pub(crate) use units::{Continuation, KeptLoop};

/// A cache and packages, with the facts that all code of an engine or session depends on.
#[derive(Clone, Debug)]
pub(crate) struct CodeCache {
    cache: Option<Arc<Cache>>,
    /// The units of the program at hand.
    group: Option<Group>,
    /// The group of the last program, so that what was fetched for a look at its runs serves its functions.
    last: Arc<Mutex<Option<Group>>>,
    packages: Arc<Packages>,
    settings: Arc<[(String, String)]>,
    facts: Fingerprint,
}

impl CodeCache {
    /// The cache, if there is one, for code that is compiled with these settings, priced or not.
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
        let (packages, last) = (Arc::new(packages), Arc::default());
        CodeCache { cache, group: None, last, packages, settings, facts: facts.finish() }
    }

    /// The same cache for the units of the program with this name; they are fetched from now on.
    pub(crate) fn of_program(&self, kind: &str, name: &[u8]) -> CodeCache {
        let mut facts = self.facts("group");
        facts.text(kind);
        facts.bytes(name);
        let group = self.cache.as_ref().map(|cache| cache.group(&facts.finish()));
        lock(&self.last).clone_from(&group);
        CodeCache { group, ..self.clone() }
    }

    /// Waits for the group, for a tenth of the time that compiling this number of functions takes.
    pub(crate) fn wait(&self, functions: usize) {
        if let Some(group) = &self.group {
            group.wait(time_of_functions(functions) / 10);
        }
    }

    /// Whether something that takes `cost` to make is there; otherwise other processes wait until this one publishes it.
    pub(crate) fn wants(&self, facts: &Fingerprint, cost: Duration) -> bool {
        self.group.as_ref().is_some_and(|group| group.want(facts, cost))
    }

    /// Whether a unit is there, as far as is known without waiting.
    pub(crate) fn has(&self, facts: &Fingerprint) -> bool {
        self.group.as_ref().is_some_and(|group| group.has(facts))
    }

    /// Whether it makes sense to keep anything.
    pub(crate) fn is_writable(&self) -> bool {
        self.group.as_ref().is_some_and(Group::is_writable)
    }

    /// Makes what was kept known to others, who stop waiting for more.
    pub(crate) fn publish(&self) {
        self.group.iter().for_each(Group::publish);
    }

    /// Whether code with the types of a context can be looked up or stored. Stored code identifies types by name and declaration, which may be ambiguous.
    pub(crate) fn is_used(&self, cx: &Context) -> bool {
        (self.cache.is_some() || self.packages.are_used()) && cx.types.have_unique_names()
    }

    pub(crate) fn packages(&self) -> &Packages {
        &self.packages
    }

    /// The name and text of all settings that every unit depends on.
    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// The common facts of one kind of unit, to which its own facts are added.
    pub(crate) fn facts(&self, kind: &str) -> Digest {
        let mut facts = Digest::new(kind);
        facts.facts(&self.facts);
        facts
    }

    /// The unit that depends on these facts, with the names and types of `cx`. `types` returns the types of its functions for look-ups; a unit for which it returns `None` is refused.
    pub(crate) fn find(
        &self,
        facts: &Fingerprint,
        cx: &Arc<Context>,
        types: impl FnOnce(&StoredUnit) -> Option<Vec<Arc<FunctionType>>>,
    ) -> Option<Kept> {
        self.found(facts, |payload| Kept::read(payload, cx, types))
    }

    /// The result of `made` for the bytes stored under these facts. Bytes for which it returns `None` are refused.
    pub(crate) fn found<T>(&self, facts: &Fingerprint, made: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let key = facts.as_bytes();
        // A package is intact, so a malformed unit was built malformed, and the cache has no better one.
        if let Some(package) = self.packages.find(key) {
            return made(package.unit(key)?);
        }
        let group = self.group.as_ref()?;
        let found = group.find(facts)?;
        let made = made(&found.payload);
        if made.is_none() {
            group.refuse(&found);
        }
        made
    }

    /// Stores a unit, with types of `cx` and words that are returned when it is found.
    pub(crate) fn keep(
        &self,
        facts: &Fingerprint,
        cx: &Arc<Context>,
        compiled: &Compiled,
        (types, words): (&[Type], &[u32]),
        cost: Duration,
    ) {
        self.keep_bytes(facts, cost, || unit::write(cx, &compiled.code(), types, words));
    }

    /// Stores bytes under these facts. They are not made if nobody takes them.
    pub(crate) fn keep_bytes(
        &self,
        facts: &Fingerprint,
        cost: Duration,
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) {
        let make = || {
            let bytes = make()?;
            self.packages.collect(facts.as_bytes(), &bytes);
            Some(bytes)
        };
        match &self.group {
            // A package is made without a cache.
            Some(group) => group.keep(facts, cost, make),
            None => drop(make()),
        }
    }
}

/// About the time that reading a program's text and compiling it takes.
pub(crate) fn time_of_text(bytes: usize) -> Duration {
    Duration::from_nanos(400 * bytes as u64)
}

/// About the time that compiling functions takes.
pub(crate) fn time_of_functions(functions: usize) -> Duration {
    Duration::from_micros(150 * functions as u64)
}

/// A unit found in a cache or package.
pub(crate) struct Kept {
    pub(crate) compiled: Compiled,
    pub(crate) types: Vec<Type>,
    pub(crate) words: Vec<u32>,
}

impl Kept {
    /// Decodes the unit in these bytes, for [`CodeCache::find`].
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
