//! Versions: one image for several targets, and the choice between them when it is opened.
//!
//! ```text
//!   targets      0 generic          1 x86-64-v3, base 0      2 x86-64-v4, base 1
//!   functions    f g h              f g                      f
//!   chosen: 2    h                  g                        f
//! ```
//!
//! Each target is a list of features, and has its own functions, or all of them (target 0). A function that a target lacks is that of its base. A base
//! precedes its target, so the chain ends at target 0.
//!
//! **References** are bound when the image is written: code of a version refers to the version of a function in its own target. No slot and
//! no word is needed, because the callers of a target's functions are among its functions, too (the builder ensures it).
//!
//! **Choice.** Of the targets whose features the processor has, the one with most features, and of several the last. If there is none, the error
//! lists the missing features of each target.
//!
//! In the file the targets are a text, one line each: base, name, features, between tabs.

use brolga_codegen::target::spoken;

use super::ImageError;

/// A target of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageTarget {
    /// Its name for people.
    pub name: String,
    /// The features that its code uses, by Cranelift's names, in order.
    pub features: Vec<String>,
    /// The target whose functions it has where it has none of its own: one in front, or 0.
    pub base: usize,
}

/// A target that does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// Its name.
    pub name: String,
    /// The features that the processor lacks.
    pub missing: Vec<String>,
}

/// Targets with their reasons, for messages.
pub(super) fn reasons(rejected: &[Rejected]) -> String {
    let reason = |target: &Rejected| format!("`{}` needs {}", target.name, spoken(&target.missing));
    rejected.iter().map(reason).collect::<Vec<_>>().join("; ")
}

/// The text of the targets.
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
                fault: "has a base that is not in front",
            });
        }
        text.push_str(&format!("{base}\t{name}\t{}\n", features.join(",")));
    }
    Ok(text)
}

/// The targets in a text; none if it is no such text.
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

/// The number of the best target for a processor with these features.
pub(super) fn choose(targets: &[ImageTarget], features: &[String]) -> Result<usize, ImageError> {
    let missing = |target: &ImageTarget| {
        target.features.iter().filter(|name| !features.contains(name)).cloned().collect::<Vec<_>>()
    };
    let fitting = targets.iter().enumerate().filter(|(_, target)| missing(target).is_empty());
    // Of equals the last one is taken.
    match fitting.max_by_key(|(_, target)| target.features.len()) {
        Some((index, _)) => Ok(index),
        None => {
            let rejected =
                |target: &ImageTarget| Rejected { name: target.name.clone(), missing: missing(target) };
            Err(ImageError::Targets { rejected: targets.iter().map(rejected).collect() })
        }
    }
}

/// A target, its base, and so on to target 0.
pub(super) fn chain(targets: &[ImageTarget], from: usize) -> Vec<usize> {
    let mut chain = vec![from];
    let mut at = from;
    while at > 0 {
        // A base is in front.
        at = targets.get(at).map_or(0, |target| target.base).min(at - 1);
        chain.push(at);
    }
    chain
}
