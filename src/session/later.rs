//! What a redefinition could not do at once: functions of other dylibs that have taken in what was replaced, and cannot be made anew.
//!
//! ```text
//!   redefine base ── top, elsewhere, is being compiled, and that waits for whoever redefines ──► its slot leads to a stub again
//!                                                                     next call of top ── made anew ──► its new body
//! ```
//!
//! What is redefined is in force before anybody else is looked at, so there is no way back; and to wait for such a function would be to
//! wait for oneself. So its slot is closed instead, with a source that makes the function anew when it is called next, from what is true
//! then. What is being compiled meanwhile is not published: the slot does not want it any more. If the function cannot be made anew, the
//! call throws the reason, and the next one asks again.
//!
//! A function for which the new definition has another type is no concern of this: it keeps what it has, in code and in the tables, and
//! [`Redefined`] names it.

use std::error::Error;
use std::sync::Arc;

use brolga_jit::{Elsewhere, Materialize, Target};
use brolga_session::{Name, Until, required};

use super::dylib::{Dylib, WeakDylib};
use super::inlined::Hit;
use super::lazy::{BODY, Body, elsewhere};

/// What became of lazy functions that have taken in what was redefined. All others have been given up, and the next call of each compiles
/// what is true then ([`Session::take_invalidations`](super::Session::take_invalidations)).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Redefined {
    /// Functions of other dylibs that could not be given up in the same step, because they are being compiled and that waits for whoever
    /// redefines. Nobody enters their old code any more; the next call makes them anew.
    pub later: Vec<Name>,
    /// Functions that the new definitions do not fit, because their types are others. They keep what they have taken in.
    pub kept: Vec<Name>,
}

/// Makes a function anew when it is called.
struct Later {
    dylib: WeakDylib,
    hit: Hit,
    body: Arc<Body>,
}

impl Materialize for Later {
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>> {
        // The slot has another source then, and asks that one.
        self.dylib.upgrade()?.make_anew(std::slice::from_ref(&self.hit), None)?;
        self.body.materialize()
    }

    fn elsewhere(&self) -> Elsewhere {
        elsewhere()
    }
}

/// Lets the next call of each function make it anew. Says which they are.
pub(super) fn put_off(dylib: &Dylib, hits: Vec<Hit>) -> Vec<Name> {
    let session = &dylib.session;
    let (linking, shared) = (session.linking(), &session.inner.shared);
    let mut names = Vec::with_capacity(hits.len());
    for hit in hits {
        let label = hit.label;
        // A slot that nobody has looked up is made now, as in `Batch::make_anew`.
        let looked_up =
            linking.lookup(vec![dylib.linking.all()], required([label.symbol]), Until::Ready).wait();
        let Some(owner) = shared.slots.owner(label).filter(|_| looked_up.is_ok()) else { continue };
        let body = linking.intern(&format!("{}{BODY}", hit.caller.symbol));
        let body = Body::new(shared, linking, label.dylib, body, None);
        names.push(linking.name(label));
        owner.reset(Arc::new(Later { dylib: dylib.downgrade(), hit, body }));
    }
    names
}
