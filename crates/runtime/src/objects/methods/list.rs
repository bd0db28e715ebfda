//! The methods of one callee in one table, found by the type of the first argument.
//!
//! ```text
//!            first argument of type T ──► by_type[T] ─┐
//!   call ──┤                                          ├─ in the order of the list ──► candidates
//!            any                      ──► others ─────┘
//! ```
//!
//! A method whose first parameter is a type with instances fits only calls whose first argument has exactly that type, so a search looks at the
//! methods of that type and at those whose first parameter is abstract, is a `Type{T}`, or is not there. A list never changes; its index is made by the
//! first search, which makes the type objects of all signatures anyway.
//!
//! Not done: an index of the further arguments, and of abstract types.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::heap::{Heap, Object};

use super::Method;

/// Shorter lists are gone through.
const SHORT: usize = 8;

/// The methods of a callee, which never change once they are given out. Clones share them.
#[derive(Clone)]
pub(super) struct MethodList(Arc<Listed>);

struct Listed {
    methods: Box<[Arc<Method>]>,
    index: OnceLock<Index>,
}

#[derive(Default)]
struct Index {
    /// Positions by the address of the type of the first argument, which the methods keep alive.
    by_type: FxHashMap<u64, Vec<u32>>,
    others: Vec<u32>,
}

impl FromIterator<Arc<Method>> for MethodList {
    fn from_iter<I: IntoIterator<Item = Arc<Method>>>(methods: I) -> MethodList {
        MethodList(Arc::new(Listed { methods: methods.into_iter().collect(), index: OnceLock::new() }))
    }
}

impl MethodList {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Method>> {
        self.0.methods.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.methods.is_empty()
    }

    /// The methods that a call with this first argument may fit, in the order of the list.
    pub(super) fn candidates(&self, heap: &Heap, first: Option<&Object>) -> Vec<&Arc<Method>> {
        let methods = &self.0.methods;
        let (Some(first), true) = (first, methods.len() > SHORT) else { return methods.iter().collect() };
        let index = self.0.index.get_or_init(|| Index::new(heap, methods));
        let of_type = index.by_type.get(&first.desc().tag()).map_or(&[][..], Vec::as_slice);
        let mut positions: Vec<u32> = of_type.iter().chain(&index.others).copied().collect();
        positions.sort_unstable();
        positions.into_iter().map(|position| &methods[position as usize]).collect()
    }
}

impl Index {
    fn new(heap: &Heap, methods: &[Arc<Method>]) -> Index {
        let mut index = Index::default();
        for (method, position) in methods.iter().zip(0..) {
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
        let list: MethodList = rows
            .into_iter()
            .zip(1..)
            .map(|(row, n)| Arc::new(Method::new((true, n), 2, cx.clone(), row)))
            .collect();
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
