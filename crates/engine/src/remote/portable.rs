//! Programs for an executor: machine code, with everything that the executor cannot make.
//!
//! The code is the engine's own (`Engine::code_of`), so a function has the same code in process and there. In process boxed entries are compiled
//! when a dynamic call reaches them; the executor has no compiler, so they are compiled here. They are needed where code handles
//! objects, because only there is anything dispatched.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_cache::CacheKey;
use brolga_codegen::linkage::CallKind;
use brolga_codegen::sig::FunctionType;
use brolga_executor::Sealing;
use brolga_ir::types::Repr;
use brolga_ir::{FuncId, Level, Module, Type};

use super::error::RemoteError;
use crate::boxed::Declared;
use crate::engine::{Engine, Published, with_bodies};
use crate::program::Program;
use brolga_codegen::native_type::type_of;

/// A program for an executor, with the facts that callers need.
pub(super) struct Portable {
    pub(super) sealed: Vec<u8>,
    /// Its functions, by symbol.
    pub(super) functions: BTreeMap<String, Function>,
    /// The symbols of its functions by their bare names.
    pub(super) names: BTreeMap<String, Vec<String>>,
    /// Its types and global variables.
    pub(super) declared: Module,
}

/// A function of a program.
pub(super) struct Function {
    pub(super) ty: Arc<FunctionType>,
    /// The type of the function object, if that is the only value of its type; `None` for closures and low functions.
    pub(super) callee: Option<Type>,
}

impl Portable {
    pub(super) fn new(
        engine: &Engine,
        program: &Program,
        roots: impl IntoIterator<Item = FuncId>,
        key: &CacheKey,
    ) -> Result<Portable, RemoteError> {
        let cache = engine.cache_of(program.source().name());
        let _published = Published(cache.as_ref());
        let code = engine.code_of(program, roots, cache.as_ref())?;
        let module = code.module(program);
        let mut boxed = Vec::new();
        if code.compiled.needs_heap() {
            let recipe = engine.recipe(cache.clone());
            for id in with_bodies(module, &code.ids) {
                let Some(declared) = Declared::new(module, id) else { continue };
                // As in process, a method without an entry fails the calls that reach it.
                if let Ok((entry, symbol)) = declared.compile(engine.jit(), &recipe, CallKind::Far) {
                    boxed.push((id, symbol, entry));
                }
            }
        }
        let sealing = Sealing {
            module,
            functions: &code.ids,
            compiled: &code.compiled,
            boxed: &boxed,
            takes_fuel: program.takes_fuel() || engine.prices(),
        };
        let sealed = sealing.seal(key)?;
        let functions = code.ids.iter().filter_map(|&id| {
            let (ty, func) = (type_of(module, id)?, &module[id]);
            let object = func.sig.params.first().filter(|_| func.level == Level::High);
            let callee = object.map(|object| object.ty).filter(|&ty| module.cx.types.repr(ty) == Repr::Ghost);
            Some((ty.symbol.clone(), Function { ty: Arc::new(ty), callee }))
        });
        let functions = functions.collect();
        let (names, declared) = (code.names(program), module.without_functions());
        Ok(Portable { sealed, functions, names, declared })
    }
}
