//! Code that outlives the process: units are looked for in a cache before they are compiled, and kept there afterwards.
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
//! | units of a session: a function, or eager functions that call each other in a circle; in each tier | `units.rs` |
//! | functions in which loops of the first tier continue | `units.rs` |
//! | boxed entries | `boxed.rs` of the crate |
//!
//! An entry is a function wherever functions are compiled apart, so that a changed function costs the compilation of what has seen it and no more.
//!
//! **The facts.** An entry is found by all that its bytes depend on, so it is never out of date, and nothing is validated when it is found: the forms of the functions and all that their optimisation may
//! have seen (`keys.rs`), level and options of passes, the processor's features, the ABI id, and the compiler itself: the versions of this crate and of Cranelift, and in a working
//! tree the sources.
//!
//! **Profiles are no facts.** They advise the second tier, and code is right whatever they hold; so a process finds the code that another one has made with its own profile, instead of nothing.
//!
//! **Trust.** What is found is run. The cache gives what was kept by somebody with its key, and nothing else ([`brolga_cache::CacheKey`]).
//!
//! **Failures.** An entry that is not of the form that its name promises is refused and compiled again. No failure of the cache is one of the compilation.
//!
//! Cost: the facts of a program, once: each function written in binary form and hashed. Then a look-up for each unit.

mod keys;
mod program;
mod units;

use std::sync::Arc;
use std::time::Duration;

use brolga_aot::unit::{self, StoredUnit, UNIT_VERSION};
use brolga_cache::{Cache, Digest, Fingerprint};
use brolga_codegen::CRANELIFT_VERSION;
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::FunctionType;
use brolga_gcroots::Lowering as Roots;
use brolga_ir::{Context, Type};
use brolga_jit::{Compiled, Jit, JitOptions};
use brolga_opt::{OptLevel, PassFilter};

use crate::abi::abi_of;

pub(crate) use keys::{Keys, alone};
pub(crate) use program::{How, compile_program};
pub(crate) use units::{Continuation, KeptLoop};

/// A cache, with the facts that all code of an engine or session depends on.
#[derive(Clone, Debug)]
pub(crate) struct CodeCache {
    cache: Arc<Cache>,
    facts: Fingerprint,
}

impl CodeCache {
    /// The cache for code that is compiled with these settings.
    pub(crate) fn new(
        cache: Arc<Cache>,
        jit: &Jit,
        options: &JitOptions,
        level: OptLevel,
        opt: &brolga_opt::Options,
        roots: Roots,
    ) -> CodeCache {
        let mut facts = Digest::new("code");
        for version in [env!("CARGO_PKG_VERSION"), env!("BROLGA_SOURCES"), CRANELIFT_VERSION] {
            facts.text(version);
        }
        facts.word(UNIT_VERSION);
        facts.word(abi_of(jit.runtime().heap().abi()));
        for tier in [Tier::Baseline, Tier::Optimised] {
            facts.text(&jit.isa().describe(tier));
        }
        facts.text(&format!("{:?}", options.limits));
        // Looking at functions changes none.
        let opt = brolga_opt::Options {
            verify_each: false,
            print_before: PassFilter::default(),
            print_after: PassFilter::default(),
            ..opt.clone()
        };
        facts.text(&format!("{level:?} {opt:?} {roots:?}"));
        CodeCache { cache, facts: facts.finish() }
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
        let found = self.cache.find(facts)?;
        let stored = unit::read(&found.payload, cx).ok().and_then(|stored| {
            let types = types(&stored)?;
            let StoredUnit { code, types: own, words } = stored;
            let compiled = Compiled::of_code(cx, code, types).ok()?;
            Some(Kept { compiled, types: own, words })
        });
        if stored.is_none() {
            self.cache.refuse(&found);
        }
        stored
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
            self.cache.keep(facts, &bytes, cost);
        }
    }
}

/// A unit that was found.
pub(crate) struct Kept {
    pub(crate) compiled: Compiled,
    pub(crate) types: Vec<Type>,
    pub(crate) words: Vec<u32>,
}
