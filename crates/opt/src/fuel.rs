//! The counter that implements `--opt-limit=N`.
//!
//! Every rewrite of every pass calls [`Fuel::spend`] first and is skipped when that is false. All passes share one
//! counter, so the first N rewrites of a run are the same in every run: halving N finds the rewrite that breaks a
//! program in about twenty runs.
//!
//! One unit pays for the smallest change after which the function is still correct: one algebraic rule, one inlined
//! call, but also all unreachable blocks together, because some of them alone would leave jumps without targets.

/// The number of allowed rewrites, and of rewrites so far.
#[derive(Clone, Debug, Default)]
pub struct Fuel {
    limit: Option<u64>,
    spent: u64,
}

impl Fuel {
    /// Allows `limit` rewrites; `None` allows any number.
    pub fn new(limit: Option<u64>) -> Self {
        Self { limit, spent: 0 }
    }

    /// Takes one unit. `false` means that the rewrite must not happen.
    pub fn spend(&mut self) -> bool {
        if self.limit.is_some_and(|limit| self.spent >= limit) {
            return false;
        }
        self.spent += 1;
        true
    }

    /// How many units were taken.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_exact() {
        let mut fuel = Fuel::new(Some(2));
        assert_eq!([fuel.spend(), fuel.spend(), fuel.spend()], [true, true, false]);
        assert_eq!(fuel.spent(), 2);
        let mut endless = Fuel::new(None);
        assert!((0..1000).all(|_| endless.spend()));
    }
}
