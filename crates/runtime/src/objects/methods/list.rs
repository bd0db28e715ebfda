//! The methods of one callee in one table, found by the type of the first argument.
//!
//! ```text
//!            first argument of type T ──► by_type[T] ─┐
//!   call ──┤                                          ├─ in the order of the list ──► candidates
//!            any                      ──► others ─────┘
//! ```
//!
//! A method whose first parameter is a concrete type applies only to calls whose first argument has exactly
//! that type, so a search considers the methods of that type and those whose first parameter is abstract, is
//! a `Type{T}`, or is missing. The first search makes the index; it makes the type objects of all signatures
//! anyway.
//!
//! A list does not own its methods: a method lives as long as its registration, or the retire list, holds it.
//! A dead one leaves an empty entry, and the list is rebuilt when half of its entries are empty. So removing
//! n methods one by one takes linear time.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | L1 | the count of dead methods | Relaxed | – | nothing: it is changed under the table's lock |
//! | L2 | the mark of a method: load | Relaxed | – | nothing: lists are made under the table's lock, as marks are; a search that finds a marked method runs in one of its worlds |
//!
//! Not done: an index of the further arguments, and of abstract types.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use rustc_hash::FxHashMap;

use crate::heap::{Heap, Object};

use super::Method;

/// Shorter lists are searched linearly.
const SHORT: usize = 8;

/// The methods of a callee. Immutable except for removal. Clones share them.
#[derive(Clone)]
pub(super) struct MethodList(Arc<Listed>);

struct Listed {
    methods: Box<[Weak<Method>]>,
    /// The number of removed methods.
    gone: AtomicUsize,
    index: OnceLock<Index>,
}

#[derive(Default)]
struct Index {
    /// Positions by the address of the type of the first argument. The address for a removed method may by
    /// now belong to another type.
    by_type: FxHashMap<u64, Vec<u32>>,
    others: Vec<u32>,
}

impl FromIterator<Arc<Method>> for MethodList {
    fn from_iter<I: IntoIterator<Item = Arc<Method>>>(methods: I) -> MethodList {
        let methods = methods.into_iter().map(|method| Arc::downgrade(&method)).collect();
        MethodList(Arc::new(Listed { methods, gone: AtomicUsize::new(0), index: OnceLock::new() }))
    }
}

impl MethodList {
    pub(super) fn iter(&self) -> impl Iterator<Item = Arc<Method>> {
        self.0
            .methods
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|method| !method.is_gone.load(Ordering::Relaxed)) // L2
    }

    /// Must be called, with the table's lock held, for each method that is removed and marked: returns the
    /// list to use from now on, if it changes. The inner `None` means that no method is left.
    pub(super) fn without_one(&self) -> Option<Option<MethodList>> {
        let gone = self.0.gone.fetch_add(1, Ordering::Relaxed) + 1; // L1
        let len = self.0.methods.len();
        if gone >= len {
            return Some(None);
        }
        (gone * 2 > len).then(|| Some(self.iter().collect()))
    }

    /// The methods that may apply to a call with this first argument, in list order.
    pub(super) fn candidates(&self, heap: &Heap, first: Option<&Object>) -> Vec<Arc<Method>> {
        let methods = &self.0.methods;
        let (Some(first), true) = (first, methods.len() > SHORT) else { return self.iter().collect() };
        let index = self.0.index.get_or_init(|| Index::new(heap, methods));
        let of_type = index.by_type.get(&first.desc().tag()).map_or(&[][..], Vec::as_slice);
        let mut positions: Vec<u32> = of_type.iter().chain(&index.others).copied().collect();
        positions.sort_unstable();
        positions.into_iter().filter_map(|position| methods[position as usize].upgrade()).collect()
    }
}

impl Index {
    fn new(heap: &Heap, methods: &[Weak<Method>]) -> Index {
        let mut index = Index::default();
        for (method, position) in methods.iter().zip(0..) {
            let Some(method) = method.upgrade() else { continue };
            let exact = method.first_type(heap).filter(|desc| desc.has_instances());
            match exact {
                Some(desc) => index.by_type.entry(desc.tag()).or_default().push(position),
                None => index.others.push(position),
            }
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use brolga_ir::Context;
    use brolga_ir::types::Type;

    use super::super::Origin;
    use super::*;
    use crate::objects::methods::{MethodEntry, MethodRow};
    use crate::{Runtime, RuntimeOptions};

    /// The candidates of calls with one argument, by name.
    #[test]
    fn a_search_looks_at_the_methods_of_the_first_argument_and_at_open_ones() {
        let runtime = Runtime::new(RuntimeOptions::default());
        let heap: &Heap = runtime.heap();
        let cx = Context::new();
        let function = cx.types.function_of("f");
        let entry = || MethodEntry::host(|scope, _| scope.nothing());
        let row = |ty: Type, name: &str| MethodRow::new(function, vec![ty], name, entry());
        let mut rows = vec![row(Type::ANY, "any"), row(Type::INT64, "int")];
        rows.extend((0..1000).map(|n| {
            let ty = cx.types.tuple(&[cx.types.function_of(&format!("g{n}"))]).unwrap();
            row(ty, &format!("tuple {n}"))
        }));
        rows.push(row(cx.types.type_of(Type::INT64).unwrap(), "type"));
        rows.push(row(Type::INT64, "int again"));
        rows.push(MethodRow { rest: Some(Type::INT64), ..MethodRow::new(function, vec![], "rest", entry()) });
        let methods: Vec<Arc<Method>> = rows
            .into_iter()
            .zip(1..)
            .map(|(row, n)| Arc::new(Method::new((Origin::Program, n), 2, cx.clone(), row)))
            .collect();
        let list: MethodList = methods.iter().cloned().collect();
        let entered = runtime.enter(|scope| {
            let names = |first: Option<&Object>| {
                let candidates = list.candidates(heap, first);
                candidates.into_iter().map(|method| method.name().to_owned()).collect::<Vec<_>>()
            };
            let int = scope.int(7).unwrap().get(scope).object;
            assert_eq!(names(Some(&int)), ["any", "int", "type", "int again", "rest"]);
            let text = scope.string(b"x").unwrap().get(scope).object;
            assert_eq!(names(Some(&text)), ["any", "type", "rest"]);
            assert_eq!(names(None).len(), 1005);
        });
        entered.expect("a thread outside of the heap");
    }
}
