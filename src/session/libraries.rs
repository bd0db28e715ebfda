//! C symbols of the process and of shared libraries, as definitions that are made when somebody asks.
//!
//! A `foreigncall` without a library names a C symbol; a dylib with one of these generators in what it sees has it, under the
//! rules of every definition: the first dylib in the order wins, so an embedder can put a symbol of its own in front.
//! Libraries are opened by the run time and stay open as long as it.

use std::sync::Arc;

use brolga_runtime::Runtime;
use brolga_session::{Generator, Request, SymbolFlags, absolute};

use super::target::Native;

/// Symbols that the run time finds: of one library, or of the process.
pub(crate) struct Library<F> {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) library: Option<String>,
    pub(crate) filter: F,
}

impl<F: Fn(&str) -> bool + Send + Sync> Generator<Native> for Library<F> {
    fn generate(&self, request: Request<Native>) {
        let names = request.session().names();
        let found = request.symbols().iter().filter_map(|&symbol| {
            let name = names.text(symbol);
            let address = (self.filter)(&name)
                .then(|| self.runtime.foreign().resolve(&name, self.library.as_deref()).ok())??;
            Some((symbol, SymbolFlags::EXPORTED | SymbolFlags::CALLABLE, address))
        });
        let found: Vec<_> = found.collect();
        let defined = if found.is_empty() { Ok(()) } else { request.define(vec![absolute(found)]) };
        match defined {
            Ok(()) => request.done(),
            Err(error) => request.fail(error),
        }
    }
}
