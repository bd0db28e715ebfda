//! The instruction set that functions are compiled for: the processor's features and our settings.
//!
//! The processor is the host, a level of its architecture that more processors have ([`CpuTarget`]), or one of another architecture: code for
//! files may only use features of all processors that run it.
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
//! The baseline settings are for functions that the single pass leaves to Cranelift, and for other hosts than x86-64.
//!
//! An ISA object is immutable and shared by all compiling threads. A [`TargetIsa`] has one for the baseline and three for optimised code: the
//! usual one, one without the mid-end, and one with single-pass register allocation for functions that are too big for backtracking.
//!
//! Not done: hosts other than x86-64 and aarch64. Cranelift has no pinned register elsewhere.

use cranelift_codegen::isa::{Builder, CallConv, OwnedTargetIsa, lookup};
use cranelift_codegen::settings::{self, Configurable, SettingKind};
use target_lexicon::{Architecture, Triple};

use brolga_ir::Arch;

use crate::single_pass::Features;

/// How much effort a compile spends. [`Optimised`](Tier::Optimised) is Cranelift's best. All else has the shortest compile time: in one pass over
/// the IR (`single_pass/mod.rs`), or by Cranelift at its fastest; the code takes two to five times as long as the best.
pub use brolga_instances::Tier;

/// The processors that code runs on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CpuTarget {
    /// Processors with all features of this one.
    #[default]
    Native,
    /// All of the host's architecture.
    Generic,
    /// x86-64 with the features of the second level (SSE4.2, POPCNT).
    X86V2,
    /// x86-64 with the features of the third level (AVX2, BMI, FMA).
    X86V3,
    /// x86-64 with the features of the fourth level (AVX-512).
    X86V4,
}

/// Whether processors with these features multiply and add in one operation that rounds once: all of aarch64 do.
pub(crate) fn has_fma(arch: Arch, features: &[String]) -> bool {
    arch == Arch::Aarch64 || features.iter().any(|feature| feature == "has_fma")
}

/// The features of loops in 512 bits. Processors with `avx512bitalg` do not slow down for them, and all of them have `avx512bw`, `avx512cd` and `avx512vpopcntdq`, which
/// Cranelift has no names for.
const DOUBLE: [&str; 4] = ["has_avx512f", "has_avx512dq", "has_avx512vl", "has_avx512bitalg"];

/// Whether processors with these features count the bits of several words at once.
pub(crate) fn counts_bits(arch: Arch, features: &[String]) -> bool {
    arch == Arch::X86_64 && DOUBLE.iter().all(|&name| features.iter().any(|feature| feature == name))
}

impl CpuTarget {
    /// All of them.
    pub const ALL: [CpuTarget; 5] =
        [CpuTarget::Native, CpuTarget::Generic, CpuTarget::X86V2, CpuTarget::X86V3, CpuTarget::X86V4];

    /// Whether all processors of the target count the bits of several words at once.
    pub fn counts_bits(self) -> bool {
        match self {
            CpuTarget::Native => {
                static HOST: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
                    host_features().is_ok_and(|features| counts_bits(Arch::HOST, &features))
                });
                *HOST
            }
            CpuTarget::Generic | CpuTarget::X86V2 | CpuTarget::X86V3 | CpuTarget::X86V4 => false,
        }
    }

    /// Whether all processors of the target multiply and add in one operation that rounds once.
    pub fn has_fma(self) -> bool {
        match self {
            CpuTarget::Native => {
                static HOST: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
                    host_features().is_ok_and(|features| has_fma(Arch::HOST, &features))
                });
                *HOST
            }
            CpuTarget::Generic | CpuTarget::X86V2 => has_fma(Arch::HOST, &[]),
            CpuTarget::X86V3 | CpuTarget::X86V4 => true,
        }
    }

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            CpuTarget::Native => "native",
            CpuTarget::Generic => "generic",
            CpuTarget::X86V2 => "x86-64-v2",
            CpuTarget::X86V3 => "x86-64-v3",
            CpuTarget::X86V4 => "x86-64-v4",
        }
    }

    /// The target of that name.
    pub fn from_name(name: &str) -> Option<CpuTarget> {
        CpuTarget::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// Options of the instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IsaOptions {
    /// The architecture. Code that is linked into this process is for the host's.
    pub arch: Arch,
    /// The processors that the code is for. Code that is linked into this process may be for the host only.
    pub target: CpuTarget,
    /// Check the Cranelift IR of every function before compiling it.
    pub verify_clif: bool,
    /// Check every register allocation with a symbolic checker: slow, for tests.
    pub check_regalloc: bool,
}

impl Default for IsaOptions {
    fn default() -> Self {
        IsaOptions {
            arch: Arch::HOST,
            target: CpuTarget::Native,
            verify_clif: cfg!(debug_assertions),
            check_regalloc: false,
        }
    }
}

/// Why there is no code generator for this machine. The machine's fault.
#[derive(thiserror::Error, Debug)]
pub enum IsaError {
    /// Cranelift does not support the processor, or it lacks a feature that Cranelift needs.
    #[error("cannot generate code for this machine: {reason}")]
    Unsupported {
        /// The missing part.
        reason: String,
    },
}

/// The instruction set that code is made for, the host's or another machine's, once for each set of settings.
pub struct TargetIsa {
    baseline: OwnedTargetIsa,
    optimised: OwnedTargetIsa,
    /// As `optimised`, for functions that have passed the mid-end.
    behind_mid_end: OwnedTargetIsa,
    oversized: OwnedTargetIsa,
    /// Features for the single pass, if it compiles for this machine.
    single_pass: Option<Features>,
    position: Position,
    arch: Arch,
}

impl TargetIsa {
    /// The processor, for code that is linked into this process.
    pub fn new(options: IsaOptions) -> Result<Self, IsaError> {
        if options.arch != Arch::HOST {
            let reason = format!("code for {} runs in images only", options.arch);
            return Err(IsaError::Unsupported { reason });
        }
        let isa = Self::with_position(options, Position::Fixed)?;
        if options.target != CpuTarget::Native {
            let missing = missing_features(&isa.features())?;
            if !missing.is_empty() {
                let reason = format!("code for `{}` needs {}", options.target.name(), missing.join(", "));
                return Err(IsaError::Unsupported { reason });
            }
        }
        Ok(isa)
    }

    /// The processor, for code in an image: it is loaded anywhere, by a loader of ours.
    pub fn for_images(options: IsaOptions) -> Result<Self, IsaError> {
        Self::with_position(options, Position::Image)
    }

    /// Processors with these features, by Cranelift's names, for code in an image.
    pub fn for_features(options: IsaOptions, features: &[String]) -> Result<Self, IsaError> {
        Self::with(options, Position::Image, Some(features))
    }

    /// The processor, for code in object files, which the system links.
    pub fn position_independent(options: IsaOptions) -> Result<Self, IsaError> {
        Self::with_position(options, Position::Object)
    }

    fn with_position(options: IsaOptions, position: Position) -> Result<Self, IsaError> {
        Self::with(options, position, None)
    }

    fn with(options: IsaOptions, position: Position, features: Option<&[String]>) -> Result<Self, IsaError> {
        let build = |opt_level, regalloc| build(opt_level, regalloc, options, position, features);
        let baseline = build("none", "single_pass")?;
        Ok(TargetIsa {
            single_pass: Features::of(&*baseline),
            position,
            arch: options.arch,
            baseline,
            optimised: build("speed", "backtracking")?,
            behind_mid_end: build("none", "backtracking")?,
            oversized: build("speed", "single_pass")?,
        })
    }

    /// The instruction set for a tier.
    pub fn for_tier(&self, tier: Tier) -> &OwnedTargetIsa {
        match tier {
            Tier::Interpreted | Tier::Baseline => &self.baseline,
            Tier::Optimised => &self.optimised,
        }
    }

    /// The instruction set for the second half of an optimised compilation: everything after Cranelift's mid-end.
    pub(crate) fn behind_mid_end(&self) -> &OwnedTargetIsa {
        &self.behind_mid_end
    }

    /// The instruction set for optimised functions that are too big for backtracking register allocation.
    pub fn for_oversized(&self) -> &OwnedTargetIsa {
        &self.oversized
    }

    /// Features for the single pass in the baseline tier, if it compiles for this host.
    pub(crate) fn single_pass(&self) -> Option<Features> {
        self.single_pass
    }

    /// The architecture.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Whether one instruction chooses between lanes of 64 bits by their highest bits.
    pub(crate) fn blends_words(&self) -> bool {
        let flags = || self.optimised.isa_flags();
        self.arch == Arch::X86_64
            && flags().iter().any(|f| f.name == "has_sse41" && f.as_bool() == Some(true))
    }

    /// The features for loops in 256 or 512 bits, if the processor has such registers.
    pub(crate) fn wide(&self) -> Option<crate::wide::Features> {
        let flags = self.optimised.isa_flags();
        let has = |name| flags.iter().any(|flag| flag.name == name && flag.as_bool() == Some(true));
        let avx512 = DOUBLE.into_iter().all(has);
        let features = crate::wide::Features { fma: has("has_fma"), avx512 };
        (self.arch == Arch::X86_64 && has("has_avx2")).then_some(features)
    }

    /// The convention of `extern "C"` functions.
    pub fn host_call_conv(&self) -> CallConv {
        self.baseline.default_call_conv()
    }

    /// Whether the code is for object files: then the system's linker resolves C functions, and no loader fills in the
    /// addresses of labels.
    pub fn is_for_objects(&self) -> bool {
        self.position == Position::Object
    }

    /// The settings that a `FunctionBuilder` needs when it is finished.
    pub fn frontend_config(&self) -> cranelift_codegen::isa::TargetFrontendConfig {
        self.baseline.frontend_config()
    }

    /// The features of the processor that code may use, by Cranelift's names, in order.
    pub fn features(&self) -> Vec<String> {
        let flags = self.optimised.isa_flags();
        let enabled = flags.iter().filter(|flag| flag.as_bool() == Some(true));
        let mut features: Vec<String> = enabled.map(|flag| flag.name.to_owned()).collect();
        features.sort();
        features
    }

    /// The target and all settings of a tier in one line: code compiled under different texts must not be mixed.
    pub fn describe(&self, tier: Tier) -> String {
        let isa = self.for_tier(tier);
        let mut features: Vec<String> =
            isa.isa_flags().iter().map(|f| f.to_string()).filter(|f| !f.ends_with("= false")).collect();
        features.sort();
        format!("{} tier {tier} {}", isa.triple(), features.join(" "))
    }
}

/// The features in the list that the processor of this process lacks.
pub fn missing_features(needed: &[String]) -> Result<Vec<String>, IsaError> {
    let own = host_features()?;
    Ok(needed.iter().filter(|name| !own.contains(name)).cloned().collect())
}

/// The features of the processor of this process, by Cranelift's names, in order.
pub fn host_features() -> Result<Vec<String>, IsaError> {
    let flags = build("none", "single_pass", IsaOptions::default(), Position::Fixed, None)?.isa_flags();
    let enabled = flags.iter().filter(|flag| flag.as_bool() == Some(true));
    let mut features: Vec<String> = enabled.map(|flag| flag.name.to_owned()).collect();
    features.sort();
    Ok(features)
}

/// A builder for an architecture without features: on this system, or on Linux where the architecture is not the host's.
fn bare(arch: Arch) -> Result<Builder, IsaError> {
    let unsupported = |reason: String| IsaError::Unsupported { reason };
    let triple = if arch == Arch::HOST {
        let native = cranelift_native::builder().map_err(|reason| unsupported(reason.to_string()))?;
        native.triple().clone()
    } else {
        let triple: Result<Triple, _> = format!("{arch}-unknown-linux-gnu").parse();
        triple.map_err(|error| unsupported(error.to_string()))?
    };
    lookup(triple).map_err(|error| unsupported(error.to_string()))
}

/// The names of all features that code may use, by Cranelift's names.
pub(crate) fn feature_settings(arch: Arch) -> Result<Vec<&'static str>, IsaError> {
    let settings = bare(arch)?;
    let all = settings.iter();
    // The other flags are settings of code generation, not features of the processor.
    let is_feature = |name: &str| name.starts_with("has_");
    Ok(all
        .filter(|setting| setting.kind == SettingKind::Bool && is_feature(setting.name))
        .map(|setting| setting.name)
        .collect())
}

/// The names of the processors and levels.
pub(crate) fn presets(arch: Arch) -> Result<Vec<&'static str>, IsaError> {
    // A feature is a preset, too: itself and the features that it requires.
    let features = feature_settings(arch)?;
    let is_feature = |name: &str| features.iter().any(|known| known.strip_prefix("has_") == Some(name));
    let settings = bare(arch)?;
    let all = settings.iter().filter(|setting| setting.kind == SettingKind::Preset);
    Ok(all.map(|setting| setting.name).filter(|name| !is_feature(name) && *name != "baseline").collect())
}

/// The features of a processor or level; `None` if there is no such processor.
pub(crate) fn preset_features(arch: Arch, name: &str) -> Result<Option<Vec<String>>, IsaError> {
    if !presets(arch)?.contains(&name) {
        return Ok(None);
    }
    let unsupported = |reason: String| IsaError::Unsupported { reason };
    let mut builder = bare(arch)?;
    builder.enable(name).map_err(|error| unsupported(error.to_string()))?;
    let isa = builder.finish(settings::Flags::new(settings::builder()));
    let flags = isa.map_err(|error| unsupported(error.to_string()))?.isa_flags();
    let enabled = flags.iter().filter(|flag| flag.as_bool() == Some(true));
    Ok(Some(enabled.map(|flag| flag.name.to_owned()).collect()))
}

/// Where code will be placed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// In this process.
    Fixed,
    /// Anywhere, by the system's linker and loader.
    Object,
    /// Anywhere, by our loader.
    Image,
}

fn build(
    opt_level: &str,
    regalloc: &str,
    options: IsaOptions,
    position: Position,
    features: Option<&[String]>,
) -> Result<OwnedTargetIsa, IsaError> {
    let unsupported = |reason: String| IsaError::Unsupported { reason };
    let native = || cranelift_native::builder().map_err(|reason| unsupported(reason.to_string()));
    let builder = match (features, options.target) {
        (Some(features), _) => {
            let mut builder = bare(options.arch)?;
            for feature in features {
                builder.enable(feature).map_err(|e| unsupported(format!("`{feature}`: {e}")))?;
            }
            builder
        }
        (None, CpuTarget::Native) if options.arch == Arch::HOST => native()?,
        (None, level) => {
            let mut builder = bare(options.arch)?;
            let is_x86 = builder.triple().architecture == Architecture::X86_64;
            match level {
                CpuTarget::Native | CpuTarget::Generic => {}
                _ if !is_x86 => {
                    return Err(unsupported(format!(
                        "`{}` is not a level of {}",
                        level.name(),
                        builder.triple().architecture
                    )));
                }
                _ => builder
                    .enable(level.name())
                    .map_err(|e| unsupported(format!("`{}`: {e}", level.name())))?,
            }
            builder
        }
    };
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
        ("is_pic", as_text(position != Position::Fixed)),
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
        let isa = TargetIsa::new(IsaOptions::default()).unwrap();
        let (low, high) = (isa.for_tier(Tier::Baseline).flags(), isa.for_tier(Tier::Optimised).flags());
        assert_ne!(low.opt_level(), high.opt_level());
        for flags in [low, high, isa.for_oversized().flags()] {
            assert!(flags.enable_pinned_reg());
            assert!(flags.preserve_frame_pointers());
            assert!(!flags.is_pic());
        }
        let isa = TargetIsa::position_independent(IsaOptions::default()).unwrap();
        for flags in [isa.for_tier(Tier::Baseline).flags(), isa.for_tier(Tier::Optimised).flags()] {
            assert!(flags.is_pic());
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_level_has_the_features_of_those_below_it_and_no_others() {
        let of = |target| {
            let options = IsaOptions { target, ..IsaOptions::default() };
            TargetIsa::position_independent(options).unwrap().features()
        };
        assert_eq!(of(CpuTarget::Generic), Vec::<String>::new());
        let levels = [CpuTarget::X86V2, CpuTarget::X86V3, CpuTarget::X86V4].map(of);
        assert!(levels[0].contains(&"has_sse42".to_owned()) && !levels[0].contains(&"has_avx2".to_owned()));
        for pair in levels.windows(2) {
            assert!(pair[0].iter().all(|feature| pair[1].contains(feature)));
        }
        assert!(missing_features(&of(CpuTarget::Native)).unwrap().is_empty());
        assert_eq!(missing_features(&["no_such".to_owned()]).unwrap(), ["no_such"]);
    }
}
