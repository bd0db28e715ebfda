//! Passes of the embedder, at named places among the steps of a pipeline.
//!
//! ```text
//!   steps of the level:   … cse, late inst-simplify, late dce          extra: `count-loads`, after `cse`, before `late dce`
//!   steps that run:       … cse, count-loads, late inst-simplify, late dce
//! ```
//!
//! Labels of [`stage`] determine the place: each names a step that runs before the pass, or after it. At a level of
//! optimisation without this step the condition does not count. The pass runs as early as its conditions allow: after the
//! last step that it follows; if it follows none, before the first step that follows it; without conditions, at the end.
//! Passes with one place run in the order of the list.
//!
//! **Trust.** What the pass leaves is verified, whether or not it reports a change. A function that breaks a rule or has
//! another signature is an error which names the pass. All facts are computed again.

use std::any::Any;
use std::sync::Arc;

use brolga_ir::Level;
use smallvec::SmallVec;

use crate::error::OptError;
use crate::options::{OptLevel, PlacedPass, sealed};
use crate::pass::Pass;
use crate::pipeline::{PASSES, stage};
use crate::scope::{Step, Visit};

/// A pass of the embedder, and where it runs.
#[derive(Clone, Copy, Debug)]
pub struct ExtraPass {
    /// The pass. No other one has its name.
    pub pass: &'static Pass,
    /// The functions that it is for: in high IR, as programs have them, or in low IR.
    pub ir: Level,
    /// The lowest level of optimisation at which it runs.
    pub from: OptLevel,
    /// The labels of steps that run before it.
    pub after: &'static [&'static str],
    /// The labels of steps that run after it.
    pub before: &'static [&'static str],
    /// Which version of the pass it is: code that was kept by another version is compiled again.
    pub version: u32,
}

impl ExtraPass {
    /// A pass at the end of the passes for one level of the IR, at each level of optimisation.
    pub const fn new(pass: &'static Pass, ir: Level) -> ExtraPass {
        ExtraPass { pass, ir, from: OptLevel::O0, after: &[], before: &[], version: 0 }
    }

    /// Where it runs among steps.
    fn place(&self, steps: &[Step]) -> Result<usize, OptError> {
        let known = || {
            let all = stage(OptLevel::O3, self.ir).into_iter();
            all.map(|step| step.label).collect::<Vec<_>>()
        };
        let unknown = |label: &&&str| !known().contains(*label);
        if let Some(label) = self.after.iter().chain(self.before).find(unknown) {
            return Err(OptError::UnknownStep {
                pass: self.pass.name,
                label: (*label).to_owned(),
                valid: known(),
            });
        }
        let at = |label: &&str| steps.iter().position(|step| step.label == *label);
        let last = self.after.iter().filter_map(at).max();
        let next = self.before.iter().filter_map(at).min();
        match (last, next) {
            (Some(last), Some(next)) if last > next => Err(OptError::NoPlace {
                pass: self.pass.name,
                after: steps[last].label,
                before: steps[next].label,
            }),
            // Extra passes that are there already keep their order.
            (Some(last), _) => {
                Ok(last + 1 + steps[last + 1..].iter().take_while(|step| step.is_extra).count())
            }
            (None, Some(next)) => Ok(next),
            (None, None) => Ok(steps.len()),
        }
    }
}

impl sealed::Sealed for ExtraPass {}

impl PlacedPass for ExtraPass {
    fn key(&self) -> String {
        let ExtraPass { pass, ir, from, after, before, version } = self;
        format!("{}:{version}:{ir}:{from}:{}<{}", pass.name, after.join(","), before.join(","))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The steps of a level of optimisation for functions of one level of the IR, with extra passes.
///
/// # Errors
/// A pass has the name of another one or takes no functions of the level that it is for; a label is not one of a step; no place meets its conditions.
pub fn steps(level: OptLevel, ir: Level, extra: &[Arc<dyn PlacedPass>]) -> Result<Vec<Step>, OptError> {
    let mut steps = stage(level, ir);
    // Nothing else is a placed pass.
    let extra = extra.iter().filter_map(|pass| pass.as_any().downcast_ref());
    let extra: SmallVec<[&ExtraPass; 2]> = extra.collect();
    for (number, one) in extra.iter().enumerate() {
        let name = one.pass.name;
        let is_taken = |other: &str| other == name;
        if PASSES.iter().any(|pass| is_taken(pass.name))
            || extra[..number].iter().any(|other| is_taken(other.pass.name))
        {
            return Err(OptError::PassExists { pass: name });
        }
        if !one.pass.level.takes(one.ir) {
            return Err(OptError::WrongLevel { pass: name, level: one.ir });
        }
        if one.ir == ir && one.from <= level {
            let at = one.place(&steps)?;
            steps.insert(at, Step { label: name, pass: one.pass, visit: Visit::Always, is_extra: true });
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::{Changed, PassLevel};

    static ONE: Pass = Pass::new("one", PassLevel::High, |_, _| Changed::No);
    static TWO: Pass = Pass::new("two", PassLevel::Both, |_, _| Changed::No);

    fn placed(extra: &[ExtraPass]) -> Vec<Arc<dyn PlacedPass>> {
        extra.iter().map(|&pass| Arc::new(pass) as Arc<dyn PlacedPass>).collect()
    }

    fn labels(level: OptLevel, ir: Level, extra: &[ExtraPass]) -> Vec<&'static str> {
        steps(level, ir, &placed(extra)).unwrap().into_iter().map(|step| step.label).collect()
    }

    #[test]
    fn extra_passes_come_as_early_as_they_may() {
        let at_end = ExtraPass::new(&ONE, Level::High);
        let after = ExtraPass { after: &["sroa", "cse"], ..ExtraPass::new(&TWO, Level::High) };
        let high = labels(OptLevel::O2, Level::High, &[at_end, after]);
        let cse = high.iter().position(|label| *label == "cse").unwrap();
        assert_eq!((high[cse + 1], high.last()), ("two", Some(&"one")));
        // A level without `cse` has one condition fewer.
        let high = labels(OptLevel::O1, Level::High, &[after]);
        let sroa = high.iter().position(|label| *label == "sroa").unwrap();
        assert_eq!(high[sroa + 1], "two");
        assert_eq!(labels(OptLevel::O0, Level::High, &[after]), ["early bounds-fold", "two"]);
        assert!(!labels(OptLevel::O2, Level::Low, &[at_end, after]).contains(&"one"));
        let before = ExtraPass { before: &["cse"], from: OptLevel::O2, ..at_end };
        let both = labels(
            OptLevel::O2,
            Level::High,
            &[before, ExtraPass { before: &["cse"], ..after }].map(|e| ExtraPass { after: &[], ..e }),
        );
        let cse = both.iter().position(|label| *label == "cse").unwrap();
        assert_eq!(both[cse - 2..cse], ["one", "two"]);
        assert!(!labels(OptLevel::O1, Level::High, &[before]).contains(&"one"));
        // Two with one place are in their order.
        let follow = |pass| ExtraPass { after: &["cse"], ..ExtraPass::new(pass, Level::High) };
        let both = labels(OptLevel::O2, Level::High, &[follow(&ONE), follow(&TWO)]);
        let cse = both.iter().position(|label| *label == "cse").unwrap();
        assert_eq!(both[cse + 1..cse + 3], ["one", "two"]);
    }

    #[test]
    fn places_that_are_not_there_are_errors() {
        let one = ExtraPass::new(&ONE, Level::High);
        let refused =
            |extra: &[ExtraPass]| steps(OptLevel::O2, Level::High, &placed(extra)).unwrap_err().to_string();
        let unknown = refused(&[ExtraPass { after: &["gvn"], ..one }]);
        assert!(
            unknown.starts_with(
                "`one` cannot be placed: there is no step `gvn`; the steps are `union-split`, `early infer`"
            ),
            "{unknown}"
        );
        let order = refused(&[ExtraPass { after: &["cse"], before: &["sroa"], ..one }]);
        assert_eq!(
            order,
            "`one` cannot be placed after `cse` and before `sroa`: they run the other way round"
        );
        assert_eq!(refused(&[one, one]), "there is a pass `one` already");
        static CSE: Pass = Pass::new("cse", PassLevel::High, |_, _| Changed::No);
        assert_eq!(refused(&[ExtraPass::new(&CSE, Level::High)]), "there is a pass `cse` already");
        let level = refused(&[ExtraPass { ir: Level::Low, ..one }]);
        assert_eq!(level, "pass `one` does not take functions in low IR");
    }
}
