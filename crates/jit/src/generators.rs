//! Generators that no thread is using.
//!
//! A generator holds the scratch memory of all stages, some hundred kilobytes. Making one for each unit, or moving one,
//! costs more than compiling a small function, so they stay in place, and threads use them one after the other.
//!
//! There are as many as threads have ever compiled at once. One is dropped if its use ends in a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

use brolga_codegen::compile::Limits;
use brolga_codegen::generate::Generator;

/// See the file's header.
pub(crate) struct Generators {
    limits: Limits,
    /// Boxed: a generator is too large to be moved in and out.
    idle: Mutex<Vec<Box<Generator>>>,
}

impl Generators {
    /// No generators yet; new ones refuse functions above the limits.
    pub(crate) fn new(limits: Limits) -> Self {
        Generators { limits, idle: Mutex::default() }
    }

    /// Lends a generator.
    pub(crate) fn with<R>(&self, generate: impl FnOnce(&mut Generator) -> R) -> R {
        let idle = self.lock().pop();
        let mut generator = idle.unwrap_or_else(|| Box::new(Generator::new(self.limits)));
        let result = generate(&mut generator);
        self.lock().push(generator);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<Generator>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
