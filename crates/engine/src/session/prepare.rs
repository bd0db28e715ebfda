//! Prepares a program for a batch of definitions.
//!
//! ```text
//!   module ──► types, facts ──► bodies, in units, one for each tier ──► cells ──► notes with the dependences of functions
//! ```
//!
//! | part of a function | made of | in the batch |
//! |---|---|---|
//! | cell | the function's type | a unit that promises the symbol of the function; functions without a native type have no cell |
//! | body, second tier | compilation inputs, which several functions share | units that promise parts of the symbol |
//! | methods | the function's signature | a row for dynamic calls |
//! | note | the function as it was read | the record for recompiling it when a function that it has inlined changes |
//!
//! Callers inline bodies as they were read, before any pass. Functions that may be replaced while their callers run (`replaceable`) have an input each, with only
//! the declarations of the others; all other functions share one input.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_codegen::sig::FunctionType;
use brolga_ir::{FuncId, Module};
use brolga_linking::{Symbol, SymbolFlags, SymbolPart};

use super::batch::Batch;
use super::definitions::Manner;
use super::dylib::Dylib;
use super::error::SessionError;
use super::input::{BodySource, CompilationInput, Counting, Kept, ProgramFacts};
use super::invalidation::{Dependences, Kind};
use super::lazy::{BODY, SECOND, SecondTier};
use super::method_table::NewRows;
use super::names_in::Bindings;
use super::scope::part;
use super::tiering::interpreted::InterpretedBody;
use super::tiering::policy::Limits;
use super::tiering::profile::Profile;
use super::unit::CodegenUnit;
use super::variables::DeclaredVariables;
use brolga_codegen::native_type::type_of;

/// A prepared program of the dylib that defines it.
pub(super) struct Prepared<'p> {
    dylib: &'p Dylib,
    module: &'p mut Module,
    /// The number of the program's functions, which come first in the module.
    count: usize,
    /// The functions that are defined.
    own: Vec<FuncId>,
    manner: Manner,
    lazy: BTreeSet<FuncId>,
    /// The limits after which the second tier is compiled, if there are two.
    limits: Option<Limits>,
    /// The types of functions that have cells.
    types: BTreeMap<FuncId, Arc<FunctionType>>,
    facts: Arc<ProgramFacts>,
    /// The sources of bodies.
    sources: BTreeMap<FuncId, BodySource>,
    /// The symbols of its functions.
    symbols: BTreeMap<FuncId, Symbol>,
}

impl<'p> Prepared<'p> {
    /// The program of a verified module; `own` are the defined functions among its first `count`.
    pub(super) fn new(
        dylib: &'p Dylib,
        module: &'p mut Module,
        (count, own): (usize, Vec<FuncId>),
        manner: Manner,
        (kept, bindings): (Option<Kept>, Arc<Bindings>),
        new: &mut Batch<'_>,
    ) -> Result<Prepared<'p>, SessionError> {
        let lazy = dylib.lazy_among(module, &own, manner.is_lazy, new.replaces());
        if dylib.is_shared(module) {
            new.offers.offer(module, &own, manner.is_inlinable, &bindings);
        } else {
            new.offers.offer_names(module, &own, dylib.session.context());
        }
        let types: BTreeMap<FuncId, Arc<FunctionType>> =
            own.iter().filter_map(|&id| Some((id, type_of(module, id)?.into()))).collect();
        new.basis.variables = DeclaredVariables::of(dylib, module)?;
        let facts = ProgramFacts::new(
            dylib.session.runtime(),
            module,
            (kept, bindings),
            lazy.is_empty(),
            types.keys().map(|&id| module.symbol_of(id)).collect(),
            manner.callees,
            |global| new.basis.variables.shared(global).cloned(),
        )?;
        new.add_variables(module, &facts.globals);
        new.is_replaceable = manner.is_replaceable;
        new.methods = NewRows::new(manner.is_library);
        let limits = manner.policy.limits().filter(|_| lazy.len() == own.len());
        let symbols = own.iter().map(|&id| (id, new.names.intern(&module.symbol_of(id)))).collect();
        let (facts, sources) = (Arc::new(facts), BTreeMap::new());
        Ok(Prepared { dylib, module, count, own, manner, lazy, limits, types, facts, sources, symbols })
    }

    /// The flags of functions.
    fn flags(&self) -> SymbolFlags {
        let exported = if self.manner.is_hidden { SymbolFlags::NONE } else { SymbolFlags::EXPORTED };
        exported | self.part_flags()
    }

    /// The flags of bodies.
    fn part_flags(&self) -> SymbolFlags {
        if self.manner.is_weak { SymbolFlags::WEAK } else { SymbolFlags::NONE }
    }

    /// Adds the cells and methods of all functions. Called after the units are added.
    pub(super) fn add_cells(&self, new: &mut Batch<'_>) {
        for &id in &self.own {
            let name = self.module.symbol_of(id);
            if self.manner.is_hidden {
                new.offers.set_hidden([name.clone()]);
            }
            if let Some(ty) = self.types.get(&id) {
                let (source, calls) = (self.sources.get(&id), self.manner.policy.interpreted);
                let alone = self.manner.is_replaceable;
                let interpreted =
                    |source| InterpretedBody::new(self.module, &self.own, id, alone, calls, source);
                let second =
                    |Limits { calls, .. }| SecondTier { calls, interpreted: source.and_then(interpreted) };
                let tiers = (source.cloned(), self.limits.map(second));
                new.stub(&name, self.flags(), ty.clone(), tiers, !self.lazy.contains(&id));
            }
            new.add_method(self.module, id);
        }
    }

    /// The symbol of a function's code in a tier; `None` if it has none there. Code without a cell is the function itself.
    fn body(&self, id: FuncId, tier: SymbolPart) -> Option<(Symbol, SymbolFlags)> {
        let symbol = self.symbols.get(&id)?;
        match self.types.contains_key(&id) {
            true => Some((symbol.part(tier), self.part_flags())),
            false => (tier == BODY).then(|| (*symbol, self.flags())),
        }
    }

    /// Adds the units of all bodies, in each tier.
    pub(super) fn add_units(&mut self, new: &mut Batch<'_>) {
        let runtime = self.dylib.session.runtime();
        let counts = self.limits.is_some() && self.manner.policy.is_profiled;
        let profile = counts.then(|| Profile::number(runtime, self.module)).flatten();
        let counting = self.limits.map(|Limits { iterations, .. }| Counting { iterations });
        self.add_tier(new, BODY, counting, profile.as_ref());
        if self.limits.is_some() {
            self.add_tier(new, SECOND, None, profile.as_ref());
        }
    }

    fn add_tier(
        &mut self,
        new: &mut Batch<'_>,
        tier: SymbolPart,
        counting: Option<Counting>,
        profile: Option<&Arc<Profile>>,
    ) {
        let (shared, facts) = (self.dylib.session.inner.shared.clone(), self.facts.clone());
        let input = |module: Module, own: &[FuncId]| {
            shared.input(module, own, facts.clone(), counting, profile.cloned())
        };
        if self.manner.is_replaceable {
            for id in self.own.clone() {
                let Some((part, only)) = part(self.module, self.count, id) else { continue };
                let input = Arc::new(input(part, &[only]).with_types(self.types.get(&id)));
                self.add_unit(new, tier, &input, vec![only], &[id]);
            }
            return;
        }
        let input = Arc::new(input(self.module.clone(), &self.own).with_types(self.types.values()));
        for ids in if self.manner.is_whole { vec![self.own.clone()] } else { input.units() } {
            self.add_unit(new, tier, &input, ids.clone(), &ids);
        }
    }

    /// Adds a unit with the functions `ids` of an input, which are `sources` in the program.
    fn add_unit(
        &mut self,
        new: &mut Batch<'_>,
        tier: SymbolPart,
        input: &Arc<CompilationInput>,
        ids: Vec<FuncId>,
        sources: &[FuncId],
    ) {
        // A superseded version is compiled from its first tier.
        for (&id, source) in ids.iter().zip(sources) {
            self.sources.entry(*source).or_insert_with(|| BodySource { input: input.clone(), id });
        }
        let symbols: Vec<_> = sources.iter().filter_map(|&id| self.body(id, tier)).collect();
        if !symbols.is_empty() {
            let (shared, input) = (self.dylib.session.inner.shared.clone(), input.clone());
            new.add(Box::new(CodegenUnit { shared, input, ids, symbols }));
        }
    }

    /// Adds the notes that find functions when one of their dependences changes.
    pub(super) fn add_notes(&self, new: &mut Batch<'_>) {
        let (module, is_shared) = (&*self.module, self.dylib.is_shared(self.module));
        let (mut program, mut all) = (None, Dependences::new(module, self.count));
        for &id in &self.own {
            let label = self.dylib.linking.label(self.symbols[&id]);
            let kind = match self.limits {
                Some(limits) => Kind::Tiered(limits),
                None if self.lazy.contains(&id) => Kind::Lazy,
                None => Kind::Eager,
            };
            if !self.types.contains_key(&id) {
                new.notes.add_nothing(label);
            } else if !self.manner.is_replaceable {
                new.notes.add(label, is_shared, (&mut all, id), &self.facts, kind, &mut program);
            } else if let Some((part, only)) = part(module, self.count, id) {
                // A function that relies only on the types of others has not inlined bodies of other programs.
                let mut alone = Dependences::new(&part, 1);
                new.notes.add(label, is_shared, (&mut alone, only), &self.facts, kind, &mut None);
            } else {
                new.notes.add_nothing(label);
            }
        }
    }

    /// The symbols of the functions, and of the bodies of eager functions, which are compiled when they are looked up.
    pub(super) fn symbols(&self) -> Vec<Symbol> {
        let bodies = self.types.keys().filter_map(|&id| self.body(id, BODY));
        self.symbols.values().copied().chain(bodies.map(|(symbol, _)| symbol)).collect()
    }
}
