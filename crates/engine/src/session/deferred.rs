//! Deferred recompilation, for functions of other dylibs that have inlined a replaced body and cannot be recompiled at once.
//!
//! ```text
//!   redefine base ── top, elsewhere, is being compiled, which waits for the redefinition ──► its cell calls a stub again
//!                                                                     next call of top ── recompiled ──► its new body
//! ```
//!
//! The redefinition is in force before its dependants are processed, so it cannot be undone; waiting for such a function would be
//! a deadlock. So its cell gets a version with a source that recompiles the function at its next call, from the state
//! at that time. A compilation in progress is not published: that version does not accept its code. If the function cannot be
//! recompiled, the call throws the reason, and the next call tries again.
//!
//! A function for which the new definition has another type is not recompiled: it keeps its code and its entries in the tables, and
//! [`Redefined`] names it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use brolga_jit::{Body as CellBody, Elsewhere, Materialize, Target};
use brolga_linking::Name;

use super::cells::supersede;
use super::dylib::{Dylib, WeakDylib};
use super::error::SessionError;
use super::invalidation::Hit;
use super::lazy::{Body, elsewhere};

/// The outcome for functions that have inlined a redefined one. All functions not listed have new versions; the next call of each compiles
/// it from the definitions at that time ([`Session::take_invalidations`](super::Session::take_invalidations)).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Redefined {
    /// Functions of other dylibs that could not be evicted in the same step, because their compilation waits for the thread that
    /// redefines. Calls no longer enter their old code; the next call recompiles them.
    pub later: Vec<Name>,
    /// Functions that keep what they have inlined: the new definitions do not fit, because their types differ; or the functions could not be
    /// evicted and have not been looked up yet.
    pub kept: Vec<Name>,
    /// Functions whose new definitions have another result type.
    pub retyped: Vec<Retyped>,
}

/// A function whose result type a redefinition changed. Callers that were compiled, or only declared, for the old type are among
/// [`Redefined::kept`] or call the old definition, until they are defined again.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Retyped {
    /// The function.
    pub function: Name,
    /// The type of its result before.
    pub before: String,
    /// The type of its result now.
    pub now: String,
}

impl fmt::Display for Retyped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Retyped { function, before, now } = self;
        write!(
            f,
            "{function} returns `{now}` now, and returned `{before}` before: define callers that rely on it again"
        )
    }
}

/// Recompiles a function when it is called.
struct Deferred {
    dylib: WeakDylib,
    hit: Hit,
    body: Arc<Body>,
}

impl Materialize for Deferred {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        let mut kept = Vec::new();
        self.dylib.upgrade()?.recompile(std::slice::from_ref(&self.hit), &mut kept)?;
        match kept.pop() {
            // [`Redefined::later`] guarantees that the old code is not entered.
            Some(name) => Err(SessionError::Unfit { function: name.to_string() }.into()),
            // The slot has another source by now and requests that one, also if another thread has defined or recompiled the function.
            None => self.body.materialize(),
        }
    }

    fn elsewhere(&self) -> Elsewhere {
        elsewhere()
    }
}

/// Makes the next call of each function, from the next world on, recompile it. Records these functions, and the ones without a slot: making
/// a slot would have to wait.
pub(super) fn defer(dylib: &Dylib, hits: Vec<Hit>, redefined: &mut Redefined) {
    let session = &dylib.session;
    let (linking, shared) = (session.linking(), &session.inner.shared);
    let (hits, _) = session.inner.edges.still(&hits);
    for hit in hits {
        let (label, name) = (hit.label, linking.name(hit.label));
        let Some(owner) = dylib.cell(label.symbol) else {
            redefined.kept.push(name);
            continue;
        };
        let body = Body::new(shared, linking, label, None, None);
        redefined.later.push(name);
        let source = Arc::new(Deferred { dylib: dylib.downgrade(), hit, body });
        supersede(shared.jit.runtime(), [(owner, CellBody::Once(source))]);
    }
}
