//! Runs: the functions that a call of a program reaches, found by the program's text without reading it.
//!
//! ```text
//!   name, text, call ──► Fingerprint ──► run: the facts of what it reaches ──► declarations of the functions, and the facts of their units ──► the units
//!                           └─ miss: the program is read and compiled, function by function from the cache, and the run is stored
//! ```
//!
//! With the functions of a program in a cache, most of the time before a call is spent reading and verifying its text. The key of a run covers the bytes of
//! the text, so a compiler built from the same sources has read and verified the same text before; the seal of the entry shows that it is unchanged since.
//!
//! All of it is in the group of the program. A run is 32 bytes, and what it reaches is stored under the hash of its contents, so calls that differ in their arguments
//! share it, and all share the units.
//!
//! A run has no bodies: everything that the call may reach has code, and boxed entries, which are compiled at their first dynamic call, need only
//! declarations. So a run serves only one call, and its program is not public.
//!
//! **Misses.** A call that cannot be read (`kept_run.rs` of the crate) with these declarations, such as one that names a type of the program that no
//! function with code names, is a miss; then the program is read. So is one of whose units is missing. Functions that the call does not reach are missing, but the call still resolves to the
//! same method: it is present, and was the most specific among more methods.
//!
//! Cost of a hit: reading the units, and linking them as one.

use std::sync::Arc;
use std::time::Duration;

use brolga_cache::Fingerprint;
use brolga_ir::{Context, FuncId, Module, binary};
use brolga_jit::Compiled;

use super::{CodeCache, time_of_text};
use brolga_codegen::native_type::type_of;

/// The bytes of a hash.
const HASH: usize = 32;
/// The hash of a unit, and whether the function may be called by dispatch.
const ROW: usize = HASH + 1;

/// The stored form of a run.
pub(crate) struct FoundRun {
    /// The functions with code, without their bodies.
    pub(crate) module: Module,
    /// The possible targets of dynamic calls.
    pub(crate) methods: Vec<FuncId>,
    pub(crate) compiled: Compiled,
}

/// The code of a run of a text of this length. If another process compiles it, its units are waited for.
pub(crate) fn find_run(cache: &CodeCache, facts: &Fingerprint, text: usize) -> Option<FoundRun> {
    if !cache.wants(facts, time_of_text(text)) {
        return None;
    }
    let reached = cache.found(facts, hash)?;
    let (module, rows) = cache.found(&reached, read)?;
    let (mut methods, mut units) = (Vec::new(), Vec::with_capacity(rows.len()));
    for ((id, _), (facts, is_method)) in module.funcs().zip(rows) {
        let types = || Some(vec![Arc::new(type_of(&module, id)?)]);
        units.push(cache.find(&facts, &module.cx, |_| types())?.compiled);
        methods.extend(is_method.then_some(id));
    }
    let compiled = Compiled::joined(&module.cx, units);
    Some(FoundRun { module, methods, compiled })
}

/// The facts of a run.
pub(crate) fn facts_of_run(cache: &CodeCache, name: &str, text: &[u8], call: &str) -> Fingerprint {
    let mut facts = cache.facts("run");
    facts.text(name);
    facts.bytes(text);
    facts.text(call);
    facts.finish()
}

/// Stores which functions of a module a call reaches, and the facts of their units.
pub(crate) fn keep_run(
    cache: &CodeCache,
    facts: &Fingerprint,
    module: &Module,
    (ids, units): (&[FuncId], &[Fingerprint]),
) {
    if !cache.is_writable() {
        return;
    }
    let mut declared = module.without_functions();
    let mut rows = Vec::with_capacity(ids.len() * ROW);
    for (&id, unit) in ids.iter().zip(units) {
        // A function whose type is determined only by its low form is not stored, as in other entries.
        if type_of(module, id).is_none() {
            return;
        }
        let func = &module[id];
        rows.extend_from_slice(unit.as_bytes());
        rows.push(u8::from(func.entry().is_some()));
        // The functions of a module have distinct symbols.
        let _ = declared.add_func(func.unreachable());
    }
    let module = binary::write(&declared);
    let mut reached = cache.facts("functions of a run");
    reached.bytes(&module);
    reached.bytes(&rows);
    let reached = reached.finish();
    if !cache.has(&reached) {
        // The units have cost the time.
        cache.keep_bytes(&reached, Duration::ZERO, || {
            let mut bytes = u32::try_from(module.len()).ok()?.to_le_bytes().to_vec();
            bytes.extend_from_slice(&module);
            bytes.extend_from_slice(&rows);
            Some(bytes)
        });
    }
    cache.keep_bytes(facts, Duration::ZERO, || Some(reached.as_bytes().to_vec()));
}

fn hash(bytes: &[u8]) -> Option<Fingerprint> {
    Some(Fingerprint::of_bytes(bytes.try_into().ok()?))
}

/// The declarations, and for each function its unit and whether it is a method.
fn read(payload: &[u8]) -> Option<(Module, Vec<(Fingerprint, bool)>)> {
    let (length, rest) = payload.split_first_chunk()?;
    let (module, rows) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let module = binary::read(module, Context::new()).ok()?;
    let row = |row: &[u8]| Some((hash(row.get(..HASH)?)?, *row.last()? != 0));
    let rows = rows.chunks(ROW).map(row).collect::<Option<Vec<_>>>()?;
    (rows.len() == module.func_count()).then_some((module, rows))
}
