//! What everything that is compiled together shares: names and types.

use crate::names::Names;
use crate::types::Types;
use std::sync::Arc;

/// The names and types of one embedder's world. Modules that call each other share one context; it only grows, and
/// any number of threads may use it at the same time.
#[derive(Debug)]
pub struct Context {
    /// Interned texts.
    pub names: Arc<Names>,
    /// Interned types.
    pub types: Types,
}

impl Context {
    /// A context that knows the builtin types.
    pub fn new() -> Arc<Context> {
        let names = Arc::new(Names::default());
        Arc::new(Context { types: Types::new(names.clone()), names })
    }
}
