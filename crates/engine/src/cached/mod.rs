//! Code that outlives the process: units are looked up in a cache before they are compiled, and stored there afterwards.
//!
//! ```text
//!   functions as read ── keys.rs ──┐
//!   compiler, target, heap ────────┼─► Fingerprint ──► Cache::find ──► brolga_aot::unit ──► Compiled ──► linked like fresh code
//!   level, options, kind of unit ──┘                        └─ miss: compile, Cache::keep
//! ```
//!
//! | cached | by |
//! |---|---|
//! | functions of an engine's program, one by one | `program.rs` |
//! | units of a session: a function, or a cycle of eager functions; in each tier | `units.rs` |
//! | continuations of first-tier loops | `units.rs` |
//! | boxed entries | `boxed.rs` of the crate |
//! | everything that a call of a program reaches, by the text of the program | `run.rs` |
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
//! Cost: computing the keys of a program once, by writing each function in binary form and hashing it; then a look-up for each unit.

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

use brolga_jit::abi::abi_of;

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
        CodeCache { cache, packages: Arc::new(packages), settings, facts: facts.finish() }
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
        let cache = self.cache.as_ref()?;
        let found = cache.find(facts)?;
        let made = made(&found.payload);
        if made.is_none() {
            cache.refuse(&found);
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
        if let Some(bytes) = unit::write(cx, &compiled.code(), types, words) {
            self.keep_bytes(facts, &bytes, cost);
        }
    }

    /// Stores bytes under these facts.
    pub(crate) fn keep_bytes(&self, facts: &Fingerprint, bytes: &[u8], cost: Duration) {
        self.packages.collect(facts.as_bytes(), bytes);
        if let Some(cache) = &self.cache {
            cache.keep(facts, bytes, cost);
        }
    }
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
