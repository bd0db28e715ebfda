//! Why a function is recompiled: the chain of functions from its direct dependency to the function that was defined.

use std::sync::Arc;

use brolga_linking::Name;

/// A function whose code was evicted because a dependency was defined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalidated {
    /// The function.
    pub function: Name,
    /// The chain of dependencies, from its direct dependency to the function that was defined.
    pub because: Vec<Arc<str>>,
}

impl std::fmt::Display for Invalidated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.function)?;
        for (n, next) in self.because.iter().enumerate() {
            write!(f, "{} depends on `{next}`", if n == 0 { "" } else { ", which" })?;
        }
        f.write_str(", which was defined")
    }
}

impl From<(Name, Because)> for Invalidated {
    fn from((function, because): (Name, Because)) -> Invalidated {
        Invalidated { function, because: because.chain() }
    }
}

/// A reached function and its predecessor in the chain; `None` at the start.
pub(super) struct Step {
    pub(super) symbol: Arc<str>,
    pub(super) from: Option<usize>,
}

/// The chain that reaches a function. All functions reached by one change share the steps.
#[derive(Clone)]
pub(crate) struct Because {
    pub(super) steps: Arc<[Step]>,
    /// The last step.
    pub(super) from: usize,
}

impl Because {
    fn chain(&self) -> Vec<Arc<str>> {
        let step = |at: usize| self.steps.get(at);
        std::iter::successors(step(self.from), |last| step(last.from?))
            .map(|step| step.symbol.clone())
            .collect()
    }
}
