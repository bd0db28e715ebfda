//! The instruction set that functions are compiled for: the host's features and our settings.
//!
//! | setting                      | value                | why                                                              |
//! |------------------------------|----------------------|------------------------------------------------------------------|
//! | `opt_level`                  | none / speed         | per tier                                                         |
//! | `regalloc_algorithm`         | single_pass / backtracking | per tier; backtracking is quadratic in live values         |
//! | `preserve_frame_pointers`    | true                 | `tail` calls need it; profilers and handler records use it       |
//! | `enable_pinned_reg`          | true                 | the thread structure lives there (15 % on calls as an argument)  |
//! | `enable_probestack`, inline  | true                 | a large frame touches its pages in order, so it cannot jump over the guard page |
//! | `is_pic`                     | by use               | code linked in process is relocated with absolute addresses; code in files is not |
//! | `use_colocated_libcalls`     | false                | library routines may be further away than ±2 GiB                 |
//! | `enable_llvm_abi_extensions` | true                 | without it an `i128` argument is a panic in Cranelift            |
//! | `enable_verifier`            | an option            | doubles compile time at baseline; on in debug builds             |
//!
//! The baseline settings are for what the single pass leaves to Cranelift, and for other hosts than x86-64.
//!
//! An ISA object is immutable and shared by all compiling threads. There are three, because a function that is too big
//! for backtracking register allocation is compiled optimised with single-pass allocation.
//!
//! Not done: hosts other than x86-64 and aarch64. Cranelift has no pinned register elsewhere.

use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use target_lexicon::Architecture;

use crate::single_pass::Features;

/// How much effort a compile spends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tier {
    /// What is there soonest: in one pass over the IR (`single_pass/mod.rs`), or by Cranelift at its fastest. The code takes two to five times as
    /// long as the best.
    Baseline,
    /// Cranelift's best.
    Optimised,
}

/// What can be chosen about the instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IsaOptions {
    /// Check the Cranelift IR of every function before compiling it.
    pub verify_clif: bool,
    /// Check every register allocation with a symbolic checker: slow, for tests.
    pub check_regalloc: bool,
}

impl Default for IsaOptions {
    fn default() -> Self {
        IsaOptions { verify_clif: cfg!(debug_assertions), check_regalloc: false }
    }
}

/// Why there is no code generator for this machine. The machine's fault.
#[derive(thiserror::Error, Debug)]
pub enum IsaError {
    /// Cranelift does not know the processor, or it lacks a feature that Cranelift needs.
    #[error("cannot generate code for this machine: {reason}")]
    Unsupported {
        /// What is missing.
        reason: String,
    },
}

/// The host's instruction set, once for each way of compiling.
pub struct HostIsa {
    baseline: OwnedTargetIsa,
    optimised: OwnedTargetIsa,
    oversized: OwnedTargetIsa,
    /// What the single pass may use, if it makes code for this host.
    single_pass: Option<Features>,
}

impl HostIsa {
    /// The processor, for code that is linked into this process.
    pub fn new(options: IsaOptions) -> Result<Self, IsaError> {
        Self::with_position(options, Position::Fixed)
    }

    /// The processor, for code that is written to a file and loaded anywhere.
    pub fn position_independent(options: IsaOptions) -> Result<Self, IsaError> {
        Self::with_position(options, Position::Independent)
    }

    fn with_position(options: IsaOptions, position: Position) -> Result<Self, IsaError> {
        let baseline = build("none", "single_pass", options, position)?;
        Ok(HostIsa {
            single_pass: Features::of(&*baseline),
            baseline,
            optimised: build("speed", "backtracking", options, position)?,
            oversized: build("speed", "single_pass", options, position)?,
        })
    }

    /// The instruction set for a tier.
    pub fn for_tier(&self, tier: Tier) -> &OwnedTargetIsa {
        match tier {
            Tier::Baseline => &self.baseline,
            Tier::Optimised => &self.optimised,
        }
    }

    /// The instruction set for optimised functions that are too big for backtracking register allocation.
    pub fn for_oversized(&self) -> &OwnedTargetIsa {
        &self.oversized
    }

    /// What the single pass may use for functions of the baseline tier, if it makes code for this host.
    pub(crate) fn single_pass(&self) -> Option<Features> {
        self.single_pass
    }

    /// The convention of `extern "C"` functions on this host.
    pub fn host_call_conv(&self) -> CallConv {
        self.baseline.default_call_conv()
    }

    /// Whether the code is for files.
    pub fn is_position_independent(&self) -> bool {
        self.baseline.flags().is_pic()
    }

    /// What a `FunctionBuilder` asks for when it is finished.
    pub fn frontend_config(&self) -> cranelift_codegen::isa::TargetFrontendConfig {
        self.baseline.frontend_config()
    }

    /// The target and all settings of a tier in one line: code compiled under different texts must not be mixed.
    pub fn describe(&self, tier: Tier) -> String {
        let isa = self.for_tier(tier);
        let mut features: Vec<String> =
            isa.isa_flags().iter().map(|f| f.to_string()).filter(|f| !f.ends_with("= false")).collect();
        features.sort();
        format!("{} {tier:?} {}", isa.triple(), features.join(" "))
    }
}

/// Whether code knows where it will lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Fixed,
    Independent,
}

fn build(
    opt_level: &str,
    regalloc: &str,
    options: IsaOptions,
    position: Position,
) -> Result<OwnedTargetIsa, IsaError> {
    let unsupported = |reason: String| IsaError::Unsupported { reason };
    let builder = cranelift_native::builder().map_err(|reason| unsupported(reason.to_string()))?;
    match builder.triple().architecture {
        Architecture::X86_64 | Architecture::Aarch64(_) => {}
        other => return Err(unsupported(format!("{other} has no pinned register"))),
    }
    let mut flags = settings::builder();
    let as_text = |on: bool| if on { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", opt_level),
        ("regalloc_algorithm", regalloc),
        ("preserve_frame_pointers", "true"),
        ("enable_pinned_reg", "true"),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("is_pic", as_text(position == Position::Independent)),
        ("use_colocated_libcalls", "false"),
        ("enable_llvm_abi_extensions", "true"),
        ("enable_verifier", as_text(options.verify_clif)),
        ("regalloc_checker", as_text(options.check_regalloc)),
    ] {
        flags.set(name, value).map_err(|e| unsupported(format!("setting `{name}`: {e}")))?;
    }
    let isa = builder.finish(settings::Flags::new(flags)).map_err(|e| unsupported(e.to_string()))?;
    debug_assert_eq!(isa.pointer_bits(), 64);
    Ok(isa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_differ_in_effort_and_agree_on_everything_that_calls_depend_on() {
        let isa = HostIsa::new(IsaOptions::default()).unwrap();
        let (low, high) = (isa.for_tier(Tier::Baseline).flags(), isa.for_tier(Tier::Optimised).flags());
        assert_ne!(low.opt_level(), high.opt_level());
        for flags in [low, high, isa.for_oversized().flags()] {
            assert!(flags.enable_pinned_reg());
            assert!(flags.preserve_frame_pointers());
            assert!(!flags.is_pic());
        }
        let isa = HostIsa::position_independent(IsaOptions::default()).unwrap();
        for flags in [isa.for_tier(Tier::Baseline).flags(), isa.for_tier(Tier::Optimised).flags()] {
            assert!(flags.is_pic());
        }
    }
}
