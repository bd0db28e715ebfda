//! The methods of a function that a dylib offers, with an index by the first parameter.
//!
//! ```text
//!   h(::T1), h(::T2), …, h(::Any)        by the type of the first parameter, if it is a leaf; all others in one set
//!   h(x::T1)  ──►  h(::T1), h(::Any)     so a call visits few of many methods
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::module::FuncRef;
use brolga_ir::{Context, Func, FuncId, Module, Type};

use super::names_in::{Bindings, uses_variable};
use super::reach::first_parameter;

/// A declaration, and the view that holds its names and types.
#[derive(Clone)]
pub(crate) struct Offer {
    pub(super) cx: Arc<Context>,
    pub(super) func: FuncRef,
    /// The bindings of its static calls.
    pub(super) bindings: Arc<Bindings>,
}

impl Offer {
    /// A declaration without a body.
    pub(super) fn declaration(cx: &Arc<Context>, func: &Func) -> Offer {
        Offer { cx: cx.clone(), func: func.declaration().into(), bindings: Arc::default() }
    }

    /// Offers a function of a module, with its body if that may be imported by other programs.
    pub(super) fn of(module: &Module, id: FuncId, is_inlinable: bool, bindings: &Arc<Bindings>) -> Offer {
        let shared = module.shared(id).filter(|func| is_inlinable && !uses_variable(module, func));
        let Some(func) = shared else { return Offer::declaration(&module.cx, &module[id]) };
        Offer { cx: module.cx.clone(), func, bindings: bindings.clone() }
    }
}

/// The methods of a function, by symbol.
#[derive(Default)]
pub(super) struct MethodSet {
    declared: BTreeMap<Arc<str>, Offer>,
    /// Methods whose types belong to another context, each with a view that holds the type of the function here. They cannot be inlined; a declaration of the same symbol
    /// belongs to the method that they have replaced.
    foreign: BTreeMap<Arc<str>, Arc<Context>>,
    by_first: BTreeMap<Type, BTreeSet<Arc<str>>>,
    others: BTreeSet<Arc<str>>,
}

impl MethodSet {
    /// Adds a method, replacing an existing one of its symbol.
    pub(super) fn insert(&mut self, symbol: Arc<str>, offer: Offer) {
        self.foreign.remove(&symbol);
        self.place(&offer).insert(symbol.clone());
        self.declared.insert(symbol, offer);
    }

    /// Adds a method of another context.
    pub(super) fn insert_foreign(&mut self, symbol: Arc<str>, cx: Arc<Context>) {
        if let Some(before) = self.declared.get_mut(&symbol) {
            *before = Offer::declaration(&before.cx, &before.func);
        }
        self.foreign.insert(symbol, cx);
    }

    fn place(&mut self, offer: &Offer) -> &mut BTreeSet<Arc<str>> {
        match first_parameter(&offer.cx.types, &offer.func) {
            Some(first) => self.by_first.entry(first).or_default(),
            None => &mut self.others,
        }
    }

    /// Adds the methods of another set.
    pub(super) fn take_over(&mut self, other: MethodSet) {
        other.declared.into_iter().for_each(|(symbol, offer)| self.insert(symbol, offer));
        other.foreign.into_iter().for_each(|(symbol, cx)| self.insert_foreign(symbol, cx));
    }

    /// Removes methods. The result must be dropped without a lock.
    pub(super) fn remove(&mut self, gone: &BTreeSet<Arc<str>>) -> Vec<Offer> {
        let symbols: Vec<Arc<str>> =
            self.declared.keys().filter(|symbol| gone.contains(*symbol)).cloned().collect();
        let mut offers = Vec::with_capacity(symbols.len());
        for symbol in symbols {
            let Some(offer) = self.declared.remove(&symbol) else { continue };
            self.place(&offer).remove(&symbol);
            offers.push(offer);
        }
        self.by_first.retain(|_, symbols| !symbols.is_empty());
        self.foreign.retain(|symbol, _| !gone.contains(symbol));
        offers
    }

    pub(super) fn is_empty(&self) -> bool {
        self.declared.is_empty() && self.foreign.is_empty()
    }

    /// The methods with declarations.
    pub(super) fn declared(&self) -> &BTreeMap<Arc<str>, Offer> {
        &self.declared
    }

    /// Whether the method of this symbol is of another context.
    pub(super) fn is_foreign(&self, symbol: &str) -> bool {
        self.foreign.contains_key(symbol)
    }

    /// The symbols of the methods of other contexts.
    pub(super) fn foreign(&self) -> impl Iterator<Item = &Arc<str>> {
        self.foreign.keys()
    }

    /// The methods that a call may reach if its first argument has this type; all, if that is not known.
    pub(super) fn reached(&self, first: Option<Type>) -> impl Iterator<Item = (&Arc<str>, &Offer)> {
        let all = first.is_none().then_some(&self.declared).into_iter().flatten();
        let only = first.map(|first| self.by_first.get(&first).into_iter().flatten().chain(&self.others));
        let only = only.into_iter().flatten().filter_map(|symbol| self.declared.get_key_value(symbol));
        all.chain(only)
    }
}
