//! Which code instances of a program are valid: the methods of a table, and what code believes of them.
//!
//! ```text
//!   table ── change ──► CodeEdges ── asks what may be concerned again ──► ended(instances, reasons)
//!                           ▲                                                 before any thread enters the new world
//!   compiler ── look_up ────┤
//!            ── add_instance
//! ```
//!
//! The bookkeeping is `brolga_instances::Edges`; here is what it does not know, the types. What a compiler asks for is a
//! signature: the types of the operands, as far as it knows them. It keeps the answer, and gives it back as an edge with the code that it
//! has made meanwhile; if another method has come between, the instance is refused, with the reason.
//!
//! Methods of the program's table count more than those behind it, whichever came first; so they have the greater numbers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use brolga_instances::{
    Answer, Chain, Edge, Edges, InstanceId, MethodNumber, NewMethod, Reason, Signatures, WorldRange,
};
use brolga_ir::Context;
use brolga_ir::types::{LayoutError, Type, TypeKind};

use crate::heap::TypeRef;
use crate::instance::Runtime;

use super::methods::{MethodChange, MethodNote, MethodObserver, MethodTable};

/// The types of the operands of calls, the callee first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallSignature {
    pub(crate) types: Vec<TypeRef>,
    /// The type of all further operands, if there may be any.
    pub(crate) rest: Option<TypeRef>,
}

impl CallSignature {
    /// The type of an operand, if there may be one in this place.
    fn get(&self, at: usize) -> Option<&TypeRef> {
        self.types.get(at).or(self.rest.as_ref())
    }
}

impl std::fmt::Display for CallSignature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut types = self.types.iter();
        f.write_str(types.next().map_or("", |callee| callee.name()))?;
        f.write_str("(")?;
        for (n, ty) in types.enumerate() {
            write!(f, "{}::{}", if n == 0 { "" } else { ", " }, ty.name())?;
        }
        if let Some(rest) = &self.rest {
            write!(f, "{}::{}...", if self.types.len() > 1 { ", " } else { "" }, rest.name())?;
        }
        f.write_str(")")
    }
}

/// What is known of types: everything, while the runtime is there.
struct Known(Weak<Runtime>);

impl Signatures for Known {
    type Signature = CallSignature;

    fn overlap(&self, a: &CallSignature, b: &CallSignature) -> bool {
        let Some(runtime) = self.0.upgrade() else { return true };
        let types = runtime.heap().types();
        (0..a.types.len().max(b.types.len())).all(|at| match (a.get(at), b.get(at)) {
            (Some(a), Some(b)) => types.overlap(a, b),
            _ => false,
        })
    }

    fn is_subtype(&self, a: &CallSignature, b: &CallSignature) -> bool {
        let Some(runtime) = self.0.upgrade() else { return false };
        let is_subtype = |a: &TypeRef, b: &TypeRef| runtime.heap().types().is_subtype(a, b);
        let rests = match (&a.rest, &b.rest) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(a), Some(b)) => is_subtype(a, b),
        };
        let fixed = a.types.iter().enumerate().all(|(at, a)| b.get(at).is_some_and(|b| is_subtype(a, b)));
        a.types.len() >= b.types.len() && rests && fixed
    }

    fn callee(&self, a: &CallSignature) -> Option<u64> {
        let callee = a.types.first()?;
        let (cx, ty) = (callee.context(), callee.ty()?);
        let is_one = matches!(cx.types.kind(ty), TypeKind::TypeOf(_)) || cx.types.is_concrete(ty);
        is_one.then(|| callee.tag())
    }

    fn show(&self, a: &CallSignature) -> String {
        a.to_string()
    }
}

/// A code instance that has come to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The instance.
    pub instance: InstanceId,
    /// Its last world.
    pub last_world: u64,
    /// Why.
    pub reason: Reason,
    /// Why, for people, from the instance to the change.
    pub chain: Chain,
}

/// What is told of instances that have ended, in the order in which they did. It must not change methods.
type OnEnd = dyn Fn(&[Ended]) + Send + Sync;

/// See the file's header.
pub struct CodeEdges {
    table: u64,
    types: Known,
    runtime: Weak<Runtime>,
    edges: Mutex<Edges<Known>>,
    on_end: Box<OnEnd>,
}

impl CodeEdges {
    /// The edges of a program's code. `on_end` is told of the instances that a change of methods ends, before any thread enters the
    /// world that it makes.
    pub fn new(
        runtime: &Arc<Runtime>,
        table: &MethodTable,
        on_end: impl Fn(&[Ended]) + Send + Sync + 'static,
    ) -> Arc<CodeEdges> {
        let runtime_handle = Arc::downgrade(runtime);
        let edges = Arc::new(CodeEdges {
            table: table.id(),
            types: Known(runtime_handle.clone()),
            runtime: runtime_handle,
            edges: Mutex::default(),
            on_end: Box::new(on_end),
        });
        let observer: Arc<dyn MethodObserver> = edges.clone();
        runtime.observe_methods(table, &observer);
        edges
    }

    /// A signature of types of a program.
    pub fn signature(
        &self,
        cx: &Arc<Context>,
        types: &[Type],
        rest: Option<Type>,
    ) -> Result<CallSignature, LayoutError> {
        let Some(runtime) = self.runtime.upgrade() else { return Err(LayoutError::NotConcrete(Type::ANY)) };
        let desc = |ty: Type| runtime.heap().type_object(cx, ty);
        let types = types.iter().copied().map(desc).collect::<Result<_, _>>()?;
        Ok(CallSignature { types, rest: rest.map(desc).transpose()? })
    }

    /// Where the calls of a signature may go now.
    pub fn look_up(&self, question: &CallSignature) -> Answer {
        self.lock().look_up(&self.types, question)
    }

    /// Takes a code instance; refused if something that it depends on is not so any more.
    pub fn add_instance(
        &self,
        name: impl Into<String>,
        edges: impl IntoIterator<Item = Edge<CallSignature>>,
    ) -> Result<InstanceId, Reason> {
        let edges: Vec<_> = edges.into_iter().collect();
        self.lock().add_instance(&self.types, name, edges)
    }

    /// Forgets a code instance whose code is gone.
    pub fn forget_instance(&self, instance: InstanceId) {
        self.lock().forget_instance(&self.types, instance);
    }

    /// The worlds that a code instance is valid for.
    pub fn worlds(&self, instance: InstanceId) -> WorldRange {
        self.lock().worlds(instance)
    }

    /// Why a code instance has ended.
    pub fn chain(&self, instance: InstanceId) -> Chain {
        self.lock().chain(instance)
    }

    /// The number of a method in answers and edges.
    pub fn number(&self, table: u64, note: &MethodNote) -> MethodNumber {
        note.id.0 | u64::from(table == self.table) << 63
    }

    fn lock(&self) -> MutexGuard<'_, Edges<Known>> {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MethodObserver for CodeEdges {
    fn changed(&self, change: &MethodChange<'_>) {
        let added = change.added.iter().map(|note| NewMethod {
            number: self.number(change.table, note),
            signature: note.signature.clone(),
            name: note.name.clone(),
        });
        let removed = change.removed.iter().map(|note| self.number(change.table, note));
        let mut edges = self.lock();
        let found = edges.change(&self.types, change.world, added, removed);
        let ended: Vec<Ended> = found
            .into_iter()
            .map(|end| Ended {
                instance: end.instance,
                last_world: end.last_world,
                chain: edges.chain(end.instance),
                reason: end.reason,
            })
            .collect();
        drop(edges);
        if !ended.is_empty() {
            (self.on_end)(&ended);
        }
    }
}
