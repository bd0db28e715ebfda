//! Targets: the processors that the code of an image is for, in Julia's syntax.
//!
//! ```text
//!   generic;x86-64-v3,-fma;x86-64-v4,clone_all,base(1)
//!   └─ 0 ─┘ └─── 1 ──────┘ └────────── 2 ────────────┘
//! ```
//!
//! | part | meaning |
//! |---|---|
//! | name | `native`, `generic`, or a processor or level of Cranelift |
//! | `+feature`, `-feature` | with this feature and all that it needs; without it and all that need it |
//! | `clone_all` | all functions are compiled for the target, not only the ones that profit |
//! | `base(n)` | functions that are not compiled for the target come from target *n*, which precedes it; 0 by default |
//! | `opt_size`, `min_size` | read and without effect: no pass makes code smaller on request |
//!
//! Features have the names of Julia and LLVM. Features without instructions in generated code (`rdrnd`, `xsaveopt`, …) are accepted
//! and ignored.
//!
//! A resolved target is a list of Cranelift's features, which an image records and a loader compares.
//!
//! Not done: vector widths beyond 128 bits, so no image is refused for its vector widths.

use std::fmt;

use brolga_ir::Arch;

use crate::isa::{IsaError, feature_settings, preset_features};

/// Names that are not processors.
const NATIVE: &str = "native";
const GENERIC: &str = "generic";

/// Each feature of x86-64 with its requirements, by Cranelift's names without `has_`.
const NEEDS: &[(&str, &[&str])] = &[
    ("ssse3", &["sse3"]),
    ("sse41", &["ssse3"]),
    ("sse42", &["sse41"]),
    ("avx", &["sse42"]),
    ("avx2", &["avx"]),
    ("fma", &["avx"]),
    ("avx_vnni", &["avx2"]),
    ("avx512f", &["avx2", "fma"]),
    ("avx512bitalg", &["avx512f"]),
    ("avx512dq", &["avx512f"]),
    ("avx512vl", &["avx512f"]),
    ("avx512vbmi", &["avx512f"]),
    ("avx512vnni", &["avx512f"]),
];

/// LLVM's names that differ from Cranelift's.
const RENAMED: &[(&str, &str)] = &[
    ("bmi", "bmi1"),
    ("cx16", "cmpxchg16b"),
    ("sse4.1", "sse41"),
    ("sse4.2", "sse42"),
    ("avxvnni", "avx_vnni"),
];

/// Features that no code here uses.
const UNUSED: &[&str] = &[
    "64bit",
    "adx",
    "aes",
    "avx512bf16",
    "avx512bw",
    "avx512cd",
    "avx512fp16",
    "avx512ifma",
    "avx512vbmi2",
    "avx512vp2intersect",
    "avx512vpopcntdq",
    "cldemote",
    "clflushopt",
    "clwb",
    "clzero",
    "f16c",
    "fsgsbase",
    "fxsr",
    "gfni",
    "invpcid",
    "movbe",
    "movdir64b",
    "movdiri",
    "mmx",
    "mwaitx",
    "pclmul",
    "pconfig",
    "pku",
    "prfchw",
    "ptwrite",
    "rdpid",
    "rdrnd",
    "rdseed",
    "rtm",
    "sahf",
    "serialize",
    "sgx",
    "sha",
    "shstk",
    "sse",
    "sse2",
    "sse4a",
    "tbm",
    "vaes",
    "vpclmulqdq",
    "waitpkg",
    "wbnoinvd",
    "xop",
    "fma4",
    "xsave",
    "xsavec",
    "xsaveopt",
    "xsaves",
];

/// A target as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The text that it was read from.
    pub text: String,
    /// The processor.
    pub name: String,
    /// Features with whether the target has them, in the order of the text, by Cranelift's names.
    pub features: Vec<(String, bool)>,
    /// Whether all functions are compiled for it.
    pub clone_all: bool,
    /// The target whose functions it has where it has none of its own.
    pub base: usize,
}

impl Target {
    /// This processor, with or without features, by Cranelift's names without `has_`.
    pub fn native(features: Vec<(String, bool)>) -> Target {
        Target { text: NATIVE.to_owned(), name: NATIVE.to_owned(), features, clone_all: false, base: 0 }
    }
}

/// Why a text names no targets.
#[derive(thiserror::Error, Debug)]
pub enum TargetError {
    /// There is no target in the text.
    #[error("no targets specified")]
    None,
    /// A target has no processor.
    #[error("invalid target option: empty CPU name in `{text}`")]
    Unnamed {
        /// The target.
        text: String,
    },
    /// There is no such processor.
    #[error("unknown cpu target `{name}`: `help` lists them")]
    Processor { name: String },
    /// There is no such feature or option.
    #[error("unknown feature or option `{option}` of target `{name}`: `help` lists them")]
    Option {
        /// The target.
        name: String,
        option: String,
    },
    /// A base is not the number of an earlier target.
    #[error("the base of target {index} (`{name}`) is not an earlier target: {base}")]
    Base {
        /// The number of the target.
        index: usize,
        name: String,
        /// The given base.
        base: String,
    },
    /// There is no code generator for the machine.
    #[error(transparent)]
    Isa(#[from] IsaError),
}

/// Reads a list of targets.
///
/// # Errors
/// The text is not of the form above, or names a processor or feature that is unknown.
pub fn parse(arch: Arch, text: &str) -> Result<Vec<Target>, TargetError> {
    let mut targets: Vec<Target> = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let target = parse_one(arch, part, targets.len())?;
        resolve(arch, &target)?;
        targets.push(target);
    }
    if targets.is_empty() { Err(TargetError::None) } else { Ok(targets) }
}

fn parse_one(arch: Arch, text: &str, index: usize) -> Result<Target, TargetError> {
    let mut parts = text.split(',').map(str::trim);
    let name = parts.next().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(TargetError::Unnamed { text: text.to_owned() });
    }
    let mut target = Target { text: text.to_owned(), name, features: Vec::new(), clone_all: false, base: 0 };
    for option in parts {
        let unknown = || TargetError::Option { name: target.name.clone(), option: option.to_owned() };
        match option {
            "clone_all" => target.clone_all = true,
            "opt_size" | "min_size" => {}
            _ if option.starts_with("base(") => {
                let number = option.strip_prefix("base(").and_then(|rest| rest.strip_suffix(')'));
                let base = number.and_then(|number| number.trim().parse::<usize>().ok());
                target.base = base.filter(|&base| base < index).ok_or_else(|| TargetError::Base {
                    index,
                    name: target.name.clone(),
                    base: option.to_owned(),
                })?;
            }
            _ => {
                let (is_on, feature) = match option.strip_prefix('-') {
                    Some(feature) => (false, feature),
                    None => (true, option.strip_prefix('+').ok_or_else(unknown)?),
                };
                if let Some(known) = known_feature(arch, feature)?.ok_or_else(unknown)? {
                    target.features.push((known, is_on));
                }
            }
        }
    }
    Ok(target)
}

/// Cranelift's name of a feature without `has_`; `Some(None)` for one that no code uses, `None` for one that is unknown.
fn known_feature(arch: Arch, name: &str) -> Result<Option<Option<String>>, IsaError> {
    let name = RENAMED.iter().find(|(known, _)| *known == name).map_or(name, |(_, ours)| ours);
    if feature_settings(arch)?.iter().any(|known| known.strip_prefix("has_") == Some(name)) {
        return Ok(Some(Some(name.to_owned())));
    }
    Ok(UNUSED.contains(&name).then_some(None))
}

/// The features of a target by Cranelift's names, in order.
///
/// # Errors
/// There is no such processor.
pub fn resolve(arch: Arch, target: &Target) -> Result<Vec<String>, TargetError> {
    let mut features: Vec<String> = match target.name.as_str() {
        GENERIC => Vec::new(),
        "x86-64" if arch == Arch::X86_64 => Vec::new(),
        NATIVE if arch == Arch::HOST => crate::isa::host_features()?,
        name => {
            preset_features(arch, name)?.ok_or_else(|| TargetError::Processor { name: name.to_owned() })?
        }
    };
    // Cranelift's list of a processor may have a feature without what that needs.
    for feature in features.clone() {
        add(&mut features, feature.strip_prefix("has_").unwrap_or(&feature));
    }
    for (feature, is_on) in &target.features {
        if *is_on {
            add(&mut features, feature);
        } else {
            remove(&mut features, feature);
        }
    }
    features.sort();
    features.dedup();
    Ok(features)
}

/// Whether all processors of a target multiply and add in one operation that rounds once.
///
/// # Errors
/// As [`resolve`].
pub fn has_fma(arch: Arch, target: &Target) -> Result<bool, TargetError> {
    Ok(crate::isa::has_fma(arch, &resolve(arch, target)?))
}

/// Whether a target's processors count the bits of several words at once.
///
/// # Errors
/// The target's features cannot be resolved.
pub fn counts_bits(arch: Arch, target: &Target) -> Result<bool, TargetError> {
    Ok(crate::isa::counts_bits(arch, &resolve(arch, target)?))
}

fn add(features: &mut Vec<String>, feature: &str) {
    features.push(format!("has_{feature}"));
    for needed in NEEDS.iter().filter(|(name, _)| *name == feature).flat_map(|(_, needs)| *needs) {
        add(features, needed);
    }
}

fn remove(features: &mut Vec<String>, feature: &str) {
    features.retain(|known| known.strip_prefix("has_") != Some(feature));
    for (needing, _) in NEEDS.iter().filter(|(_, needs)| needs.contains(&feature)) {
        remove(features, needing);
    }
}

/// The help text: all targets and features of an architecture that can be named.
///
/// # Errors
/// There is no code generator for the machine.
pub fn help(arch: Arch) -> Result<String, IsaError> {
    use fmt::Write as _;
    let native = if arch == Arch::HOST { "  native\n" } else { "" };
    let mut text = format!("Processors of {arch}:\n{native}  generic\n");
    for name in crate::isa::presets(arch)? {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name}");
    }
    text.push_str("Features, each with + or -:\n");
    for name in feature_settings(arch)? {
        let ours = name.strip_prefix("has_").unwrap_or(name);
        let shown = RENAMED.iter().find(|(_, known)| *known == ours).map_or(ours, |(llvm, _)| llvm);
        let _ = writeln!(text, "  {shown}");
    }
    text.push_str("Options:\n  clone_all\n  base(N)\n  opt_size\n  min_size\n");
    if arch == Arch::HOST {
        let _ = writeln!(text, "This processor has {}", spoken(&crate::isa::host_features()?));
    }
    Ok(text)
}

/// Features as people read them.
pub fn spoken(features: &[String]) -> String {
    let names: Vec<&str> = features.iter().map(|name| name.strip_prefix("has_").unwrap_or(name)).collect();
    names.join(", ")
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    fn features(text: &str) -> Vec<String> {
        resolve(Arch::HOST, &parse(Arch::HOST, text).unwrap()[0]).unwrap()
    }

    #[test]
    fn a_list_is_read() {
        let targets =
            parse(Arch::HOST, "generic; sandybridge,-xsaveopt,clone_all;haswell,-rdrnd,base(1);").unwrap();
        let read: Vec<_> = targets.iter().map(|t| (t.name.as_str(), t.clone_all, t.base)).collect();
        assert_eq!(read, [("generic", false, 0), ("sandybridge", true, 0), ("haswell", false, 1)]);
        assert!(targets.iter().all(|target| target.features.is_empty()), "no target uses these features");
    }

    #[test]
    fn features_go_with_what_they_need() {
        assert!(features("generic").is_empty());
        let avx2 = features("generic,+avx2");
        for name in ["has_avx2", "has_avx", "has_sse42", "has_sse3"] {
            assert!(avx2.iter().any(|known| known == name), "{name}");
        }
        let without = features("x86-64-v4,-avx2");
        assert!(without.iter().all(|name| !name.contains("avx2") && !name.contains("avx512")), "{without:?}");
        assert!(without.contains(&"has_avx".to_owned()) && without.contains(&"has_bmi2".to_owned()));
        assert!(features("x86-64-v3").contains(&"has_fma".to_owned()));
    }

    #[test]
    fn mistakes_have_names() {
        let message = |text: &str| parse(Arch::HOST, text).unwrap_err().to_string();
        assert_eq!(message(" ; "), "no targets specified");
        assert_eq!(message("generic;,+avx"), "invalid target option: empty CPU name in `,+avx`");
        assert_eq!(message("z80"), "unknown cpu target `z80`: `help` lists them");
        assert_eq!(message("sse3"), "unknown cpu target `sse3`: `help` lists them");
        assert!(message("generic,wings").starts_with("unknown feature or option `wings`"));
        assert!(message("generic,+wings").starts_with("unknown feature or option `+wings`"));
        assert!(message("generic;haswell,base(1)").starts_with("the base of target 1"));
        assert!(message("generic,base(x)").ends_with("base(x)"));
        assert!(help(Arch::HOST).unwrap().contains("haswell"));
    }
}
