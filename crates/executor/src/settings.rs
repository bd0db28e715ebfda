//! What the controller decides about an executor's process: its run time and its limits.
//!
//! The limits of the process are the system's. A process that reaches one ends, or is refused a resource: both are reported as they happen.
//!
//! Not done: filters of system calls and of paths.

use std::sync::Arc;
use std::time::Duration;

use brolga_jit::{CodeMemoryOptions, JitOptions};
use brolga_runtime::heap::{Generations, HeapOptions, Stress};
use brolga_runtime::{Output, Runtime, RuntimeOptions, Traces};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Limits of an executor's process. By default there are those that it inherits, and no core dumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Address space, in bytes: heap, code, stacks, and the process itself.
    pub address_space: Option<u64>,
    /// Processor time, in seconds. Then the process ends by SIGXCPU.
    pub processor_seconds: Option<u64>,
    /// Open file descriptors.
    pub files: Option<u64>,
    /// Whether a crash may write a core dump.
    pub core_dumps: bool,
}

/// The settings of an executor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Limits of the process.
    pub limits: ProcessLimits,
    /// The run time.
    pub runtime: RuntimeSettings,
    /// The code memory.
    pub code: CodeSettings,
}

/// The settings of the run time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RuntimeSettings {
    /// Whether text that programs print is sent to the controller; otherwise it goes to the standard output of the executor.
    pub sends_output: bool,
    heap_limit: Option<u64>,
    heap_initial: u64,
    growth_percent: u32,
    /// Nanoseconds.
    pause: Option<u64>,
    generations: u8,
    /// 0: off; 1: at every safepoint; 2: paced; 3: after this number of allocations.
    stress: (u8, u32),
    poison: bool,
    verify: bool,
    canaries: bool,
    traces: u8,
}

/// The settings of the code memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CodeSettings {
    reserve: u64,
    limit: Option<u64>,
}

impl Default for RuntimeSettings {
    fn default() -> RuntimeSettings {
        RuntimeSettings::new(&HeapOptions::default(), Traces::default(), false)
    }
}

impl Default for CodeSettings {
    fn default() -> CodeSettings {
        CodeSettings::new(CodeMemoryOptions::default())
    }
}

const GENERATIONS: [Generations; 3] = [Generations::Off, Generations::On, Generations::Adaptive];
const TRACES: [Traces; 3] = [Traces::Off, Traces::Leaving, Traces::All];

fn position<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).unwrap_or(0) as u8
}

impl RuntimeSettings {
    /// The settings for these options.
    pub fn new(heap: &HeapOptions, traces: Traces, sends_output: bool) -> RuntimeSettings {
        let stress = match heap.stress {
            Stress::Off => (0, 0),
            Stress::EverySafepoint => (1, 0),
            Stress::Paced(work) => (2, work),
            Stress::Every(count) => (3, count),
        };
        RuntimeSettings {
            sends_output,
            heap_limit: heap.limit.map(|limit| limit as u64),
            heap_initial: heap.initial as u64,
            growth_percent: heap.growth_percent,
            pause: heap.pause.map(|pause| u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX)),
            generations: position(&GENERATIONS, &heap.generations),
            stress,
            poison: heap.poison,
            verify: heap.verify,
            canaries: heap.canaries,
            traces: position(&TRACES, &traces),
        }
    }

    fn options(&self, output: Output) -> Result<RuntimeOptions, String> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let stress = match self.stress {
            (0, _) => Stress::Off,
            (1, _) => Stress::EverySafepoint,
            (2, work) => Stress::Paced(work),
            (3, count) => Stress::Every(count),
            (other, _) => return Err(format!("there is no collector's stress {other}")),
        };
        let unknown = |what: &str| format!("a setting of the run time is unknown: {what}");
        let generations = GENERATIONS.get(usize::from(self.generations)).copied();
        let traces = TRACES.get(usize::from(self.traces)).copied();
        let heap = HeapOptions {
            limit: self.heap_limit.map(size),
            initial: size(self.heap_initial),
            growth_percent: self.growth_percent,
            pause: self.pause.map(Duration::from_nanos),
            generations: generations.ok_or_else(|| unknown("generations"))?,
            stress,
            poison: self.poison,
            verify: self.verify,
            canaries: self.canaries,
        };
        let traces = traces.ok_or_else(|| unknown("traces"))?;
        Ok(RuntimeOptions { output, output_limit: None, heap, traces })
    }

    /// A run time with these settings.
    ///
    /// # Errors
    /// A setting is not one of this version.
    pub fn runtime(&self, output: Output) -> Result<Arc<Runtime>, String> {
        Ok(Runtime::new(self.options(output)?))
    }
}

impl CodeSettings {
    /// The settings for these options.
    pub fn new(options: CodeMemoryOptions) -> CodeSettings {
        CodeSettings { reserve: options.reserve as u64, limit: options.limit.map(|limit| limit as u64) }
    }

    /// The options of a loader with these settings.
    pub fn options(&self) -> JitOptions {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let memory = CodeMemoryOptions {
            reserve: size(self.reserve),
            limit: self.limit.map(size),
            ..CodeMemoryOptions::default()
        };
        JitOptions { memory, ..JitOptions::default() }
    }
}

impl ProcessLimits {
    /// Sets the limits of this process.
    ///
    /// # Errors
    /// The system refuses one.
    pub fn set(&self) -> Result<(), String> {
        let limits = [
            (Resource::As, self.address_space, "address space"),
            (Resource::Cpu, self.processor_seconds, "processor time"),
            (Resource::Nofile, self.files, "open files"),
            (Resource::Core, (!self.core_dumps).then_some(0), "core dumps"),
        ];
        for (resource, limit, what) in limits {
            let Some(limit) = limit else { continue };
            let both = Rlimit { current: Some(limit), maximum: Some(limit) };
            setrlimit(resource, both)
                .map_err(|error| format!("the limit of {what} cannot be set to {limit}: {error}"))?;
        }
        Ok(())
    }
}
