//! Versions: one image for several targets, and the selection of one when it is opened.
//!
//! ```text
//!   targets      0 generic          1 x86-64-v3, base 0      2 x86-64-v4, base 1
//!   functions    f g h              f g                      f
//!   selected: 2  h                  g                        f
//! ```
//!
//! Each target is a list of features, and has its own version of some functions, or of all (target 0). If a
//! target has no version of a function, its base's version is used. A base precedes its target, so the chain
//! ends at target 0.
//!
//! **References** are bound when the image is written: code of a target refers to that target's version of a
//! function. Neither slots nor words are needed, because the callers of a target's functions are also among
//! its functions (the builder ensures this).
//!
//! **Selection.** Among the targets whose features the processor has, the one with the most features; among
//! equals, the last. If there is none, the error lists the missing features of each target.
//!
//! In the file, the targets are a text with one line each: base, name, features, separated by tabs.

use brolga_codegen::target::spoken;

use super::ImageError;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageTarget {
    /// Its name for people.
    pub name: String,
    /// The features that its code uses, by Cranelift's names, sorted.
    pub features: Vec<String>,
    /// The target whose versions are used for functions that this one lacks: an earlier target, or 0.
    pub base: usize,
}

/// A target that the processor cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    pub name: String,
    /// The features that the processor lacks.
    pub missing: Vec<String>,
}

/// A message part: the targets with their missing features.
pub(super) fn reasons(rejected: &[Rejected]) -> String {
    let reason = |target: &Rejected| format!("`{}` needs {}", target.name, spoken(&target.missing));
    rejected.iter().map(reason).collect::<Vec<_>>().join("; ")
}

/// The targets as text.
pub(super) fn write(targets: &[ImageTarget]) -> Result<String, ImageError> {
    let mut text = String::new();
    for (index, ImageTarget { name, features, base }) in targets.iter().enumerate() {
        let is_bad = |text: &str| text.contains(['\t', '\n', ',']);
        if features.iter().any(|feature| is_bad(feature)) || name.contains(['\t', '\n']) {
            return Err(ImageError::Malformed { name: name.clone(), fault: "has a name that no target has" });
        }
        if *base >= index.max(1) {
            return Err(ImageError::Malformed {
                name: name.clone(),
                fault: "has a base that does not precede it",
            });
        }
        text.push_str(&format!("{base}\t{name}\t{}\n", features.join(",")));
    }
    Ok(text)
}

/// Parses the text of the targets; `None` if it is malformed.
pub(super) fn read(text: &[u8]) -> Option<Vec<ImageTarget>> {
    let text = std::str::from_utf8(text).ok()?;
    let target = |(index, line): (usize, &str)| {
        let mut parts = line.split('\t');
        let (base, name, features) = (parts.next()?.parse::<usize>().ok()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || base >= index.max(1) {
            return None;
        }
        let features = features.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
        Some(ImageTarget { name: name.to_owned(), features: features.collect(), base })
    };
    let targets: Vec<ImageTarget> = text.lines().enumerate().map(target).collect::<Option<_>>()?;
    (!targets.is_empty()).then_some(targets)
}

/// The index of the best target for a processor with these features.
pub(super) fn choose(targets: &[ImageTarget], features: &[String]) -> Result<usize, ImageError> {
    let missing = |target: &ImageTarget| {
        target.features.iter().filter(|name| !features.contains(name)).cloned().collect::<Vec<_>>()
    };
    let fitting = targets.iter().enumerate().filter(|(_, target)| missing(target).is_empty());
    // The last one among equals.
    match fitting.max_by_key(|(_, target)| target.features.len()) {
        Some((index, _)) => Ok(index),
        None => {
            let rejected =
                |target: &ImageTarget| Rejected { name: target.name.clone(), missing: missing(target) };
            Err(ImageError::Targets { rejected: targets.iter().map(rejected).collect() })
        }
    }
}

/// A target, its base, and so on down to target 0.
pub(super) fn chain(targets: &[ImageTarget], from: usize) -> Vec<usize> {
    let mut chain = vec![from];
    let mut at = from;
    while at > 0 {
        // A base precedes its target.
        at = targets.get(at).map_or(0, |target| target.base).min(at - 1);
        chain.push(at);
    }
    chain
}
