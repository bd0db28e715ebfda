//! The code of a cell: the source that makes it, and its place in a unit.

use std::any::Any;
use std::error::Error;
use std::sync::Arc;

use brolga_codegen::sig::FunctionType;

use crate::unit::Unit;

/// Runs work that another thread waits for.
pub type Elsewhere = Box<dyn FnOnce(&mut dyn FnMut()) + Send>;

/// Makes the code of a function when it is called first.
pub trait Materialize: Send + Sync {
    /// The code. Called on a thread that calls the function, or one that compiles ahead; on several at a time when they
    /// come together, and again after an error, or when the code was evicted (`CellOwner::discard`).
    fn materialize(&self) -> Result<Target, Box<dyn Error + Send + Sync>>;

    /// Whether a request that failed with this error may succeed later. A call requests again in any case; a hot function or
    /// a loop requests again after twice as many calls or iterations, if it may.
    fn may_pass(&self, error: &(dyn Error + Send + Sync + 'static)) -> bool {
        let _ = error;
        false
    }

    /// Whether code that was made from this without a request equals the code that it would make (`CellOwner::provide`).
    fn accepts(&self, made_from: &dyn Any) -> bool {
        let _ = made_from;
        false
    }

    /// A wrapper around a call of [`Materialize::materialize`] on another thread, for which this one waits: it runs its
    /// argument, once.
    fn elsewhere(&self) -> Elsewhere {
        Box::new(|work| work())
    }
}

/// Code that a cell can lead to. It keeps its unit.
#[derive(Clone, Debug)]
pub struct Target {
    address: usize,
    ty: Arc<FunctionType>,
    unit: Unit,
}

impl Target {
    /// The unit that the code is in.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// The type that the code was compiled with.
    pub(crate) fn ty(&self) -> &FunctionType {
        &self.ty
    }
}

impl Unit {
    /// The function of that name, for a cell to lead to.
    pub fn target(&self, name: &str) -> Option<Target> {
        let ty = self.ty(name).ok().flatten()?;
        let address = self.loaded().function(&ty.symbol)?;
        Some(Target { address, ty, unit: self.clone() })
    }
}
