//! The engines that run attacks.

use std::sync::Arc;

use brolga_engine::{Engine, Error, Options};
use brolga_gcroots::Lowering as Roots;
use brolga_opt::{CpuFeatures, OptLevel};
use brolga_runtime::heap::{HeapOptions, Stress};
use brolga_runtime::{Output, Runtime};

use super::HEAP;

/// One input in this many is run with a collection at every safepoint.
const STRESSED: u64 = 16;
/// The number of objects and frames that collections under stress visit before they become less frequent.
const STRESS_WORK: u32 = 256;

/// An engine and its name in reports.
pub(super) type Named = (String, Engine);

/// Engines with closed doors, on heaps with canaries: one for each level and kind of roots, with and without
/// collections at safepoints.
pub struct Arena {
    usual: Ring,
    stressed: Ring,
}

/// The engines of one run time.
struct Ring {
    runtime: Arc<Runtime>,
    engines: Vec<Named>,
}

impl Arena {
    /// The engines of this process.
    ///
    /// # Errors
    /// The processor has no code generator, or there is no memory for code.
    pub fn new() -> Result<Arena, Error> {
        Ok(Arena { usual: Ring::new(Stress::Off)?, stressed: Ring::new(Stress::Paced(STRESS_WORK))? })
    }

    /// The two engines for a seed.
    pub(super) fn of(&self, seed: u64) -> (&Arc<Runtime>, [&Named; 2]) {
        let Ring { runtime, engines } = if seed % STRESSED == 3 { &self.stressed } else { &self.usual };
        // Mostly O0 and O2, sometimes O1 and O3; the kinds of roots alternate.
        let [low, high] = if seed % 8 == 5 { [1, 3] } else { [0, 2] };
        let kind = (seed / 2 % 2) as usize;
        (runtime, [&engines[2 * low + kind], &engines[2 * high + 1 - kind]])
    }
}

impl Ring {
    fn new(stress: Stress) -> Result<Ring, Error> {
        let stressed = if stress == Stress::Off { "" } else { ", collections at safepoints" };
        let options = |level, roots| {
            let limit = Some(HEAP);
            let heap = HeapOptions {
                limit,
                stress,
                poison: true,
                verify: true,
                canaries: true,
                ..Default::default()
            };
            // Like the interpreter, on every machine.
            let options = Options::new().cpu_features(CpuFeatures::default());
            options.opt_level(level).roots(roots).heap(heap).output(Output::Capture)
        };
        let first = Engine::new(options(OptLevel::O0, Roots::Linked))?;
        let runtime = first.runtime().clone();
        let mut engines = Vec::new();
        for level in OptLevel::ALL {
            for roots in [Roots::Linked, Roots::Maps] {
                let name = format!("native code at {level:?} with {roots:?} roots{stressed}");
                engines.push((name, Engine::on(&runtime, options(level, roots))?));
            }
        }
        Ok(Ring { runtime, engines })
    }
}
