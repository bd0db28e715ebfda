//! Runs with existing code: calls of a cached program, whose text is not read (`cached/run.rs`), and of an image, where only the called
//! methods of the program are read.

use std::collections::BTreeMap;

use brolga_ir::text::Call;
use brolga_jit::Globals;

use crate::cached::{FoundRun, facts_of_run, find_run};
use crate::engine::{Engine, Unit};
use crate::error::Error;
use crate::evaluate::Evaluator;
use crate::image::Image;
use crate::program::Program;

/// The code of a call, from a cache or an image.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// use std::sync::Arc;
/// use brolga::{Engine, Evaluator, Options, Program};
/// use brolga_cache::{Cache, CacheKey, DirectoryStore};
/// const HALF: &[u8] = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end".as_bytes();
///
/// # let folder = std::env::temp_dir().join(format!("brolga-run-{}", std::process::id()));
/// # let path = folder.as_path();
/// let cache = Arc::new(Cache::new(DirectoryStore::open(path, 1 << 20)?, &CacheKey::new([7; 32])));
/// let engine = Engine::new(Options::new().cache(Arc::clone(&cache)))?;
/// assert!(engine.kept_run("half.jlir", HALF, "half(8)").is_none());
/// let program = Program::read("half.jlir", HALF)?;
/// let mut evaluator = Evaluator::native(&program, &engine).keeping_run("half(8)");
/// assert_eq!(evaluator.call(&program.call("half(8)")?)?, "4");
///
/// let run = engine.kept_run("half.jlir", HALF, "half(8)").ok_or("it was kept")?;
/// assert_eq!(run.evaluator().call(run.call())?, "4");
/// # cache.flush();
/// # std::fs::remove_dir_all(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeptRun {
    engine: Engine,
    program: Program,
    call: Call,
    unit: Unit,
    globals: Globals,
}

impl std::fmt::Debug for KeptRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptRun").field("unit", &self.unit).finish_non_exhaustive()
    }
}

impl KeptRun {
    /// The call.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// An evaluator for the call. Other calls of the program may have no code.
    pub fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::of_unit(&self.program, &self.unit, &self.globals, &self.engine)
    }

    /// The declarations of functions with code, for messages.
    pub fn program(&self) -> &Program {
        &self.program
    }
}

impl Image {
    /// Returns the code of a call, such as `fib(30)`, for the engine that has opened the image. Reads the declarations of the methods with the
    /// callee's name, or the whole program if the call does not resolve among them.
    ///
    /// # Errors
    /// There is no such call; or as [`Image::program`].
    pub fn run(&self, engine: &Engine, call: &str) -> Result<KeptRun, Error> {
        let name = call.split('(').next().unwrap_or(call).trim();
        let methods = Program::of_verified(self.methods(name)?)?;
        let (program, call) = match methods.call(call) {
            Ok(call) => (methods, call),
            Err(_) => {
                let program = self.program()?;
                (program.clone(), program.call(call)?)
            }
        };
        let (engine, unit, globals) = (engine.clone(), self.unit().clone(), self.globals().clone());
        Ok(KeptRun { engine, program, call, unit, globals })
    }
}

impl Engine {
    /// Returns the code of a call of the program in this text, if the engine has a [cache](crate::Options::cache) and the run was [stored](Evaluator::keeping_run). The text is not read.
    ///
    /// If another process is compiling the same run, this one waits for it, for at most one second. If there is no code, other processes
    /// wait as long for the caller to compile it.
    pub fn kept_run(&self, name: &str, text: &[u8], call: &str) -> Option<KeptRun> {
        let cache = self.cache_of(name)?;
        let facts = facts_of_run(&cache, name, text, call);
        let FoundRun { module, methods, compiled } = find_run(&cache, &facts, text.len())?;
        let globals = Globals::new(self.runtime());
        for global in module.globals() {
            globals.describe(&module.cx, global);
        }
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (_, func) in module.funcs() {
            names.entry(func.spelled_name(&module.cx)).or_default().push(func.symbol(&module.cx));
        }
        let program = Program::of_verified(module).ok()?;
        let call = program.call(call).ok()?;
        // Code whose C symbols no longer exist cannot be linked; the following compilation reports them.
        let unit = self.link_kept(program.module(), &compiled, methods, &globals, cache)?;
        let unit = Unit::new(unit, names);
        Some(KeptRun { engine: self.clone(), program, call, unit, globals })
    }
}
