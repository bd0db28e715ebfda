//! The attack targets, from the product's own tables.

use brolga_ir::base_fn::BaseFn;
use brolga_ir::builtin::Builtin;
use brolga_ir::doors::{ALLOWED, RUNTIME, Standing, standing_of_builtin, standing_of_intrinsic};
use brolga_ir::intrinsic::Intrinsic;

use super::Without;
use crate::rng::Rng;

/// An operation that a checked program may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Target {
    Builtin(Builtin),
    Intrinsic(Intrinsic),
    /// A routine of Julia's run time.
    Routine(&'static str),
    /// A C function on floats: its index in the list of allowed functions.
    C(usize),
    /// A bodiless function of Base.
    Base(BaseFn),
    /// A function of Base with a body in the library.
    Library(&'static str),
    /// `%new`.
    New,
    /// `%splatnew`.
    SplatNew,
}

impl Target {
    /// Every target.
    pub fn all() -> impl Iterator<Item = Target> {
        builtins()
            .map(Target::Builtin)
            .chain(intrinsics().map(Target::Intrinsic))
            .chain(RUNTIME.iter().map(|&name| Target::Routine(name)))
            .chain((0..ALLOWED.len()).map(Target::C))
            .chain(BaseFn::ALL.iter().map(|&function| Target::Base(function)))
            .chain([Target::New, Target::SplatNew])
    }

    /// The name that excludes it.
    pub fn name(self) -> String {
        match self {
            Target::Builtin(builtin) => builtin.name().to_owned(),
            Target::Intrinsic(intrinsic) => intrinsic.name().to_owned(),
            Target::Routine(name) => name.to_owned(),
            Target::C(number) => ALLOWED[number].0.to_owned(),
            Target::Base(function) => function.to_string(),
            Target::Library(name) => format!("Base.{name}"),
            Target::New => "%new".to_owned(),
            Target::SplatNew => "%splatnew".to_owned(),
        }
    }

    /// Whether it can be a value.
    pub fn is_value(self) -> bool {
        matches!(
            self,
            Target::Builtin(_) | Target::Intrinsic(_) | Target::Base(_) | Target::Library(_) | Target::New
        )
    }

    /// Whether it is a builtin on global variables.
    pub(super) fn is_global(self) -> bool {
        matches!(self, Target::Builtin(builtin) if builtin.name().contains("global"))
    }

    /// A target that is not excluded. Those that access objects are more frequent.
    pub(super) fn pick(rng: &mut Rng, without: &Without, library: bool) -> Target {
        for _ in 0..100 {
            let picked = match rng.below(100) {
                0..45 => touching(rng),
                45..55 => one(rng, RUNTIME.to_vec()).map(Target::Routine),
                55..65 => one(rng, builtins().collect()).map(Target::Builtin),
                65..78 => one(rng, intrinsics().collect()).map(Target::Intrinsic),
                78..82 => Some(Target::C(rng.below(ALLOWED.len()))),
                82..90 if library => {
                    one(rng, brolga_engine::library_functions().collect()).map(Target::Library)
                }
                82..90 => one(rng, BaseFn::ALL.to_vec()).map(Target::Base),
                90..97 => Some(Target::New),
                _ => Some(Target::SplatNew),
            };
            if let Some(target) = picked.filter(|target| without.allows(&target.name())) {
                return target;
            }
        }
        Target::New
    }
}

fn one<T: Copy>(rng: &mut Rng, all: Vec<T>) -> Option<T> {
    rng.pick(&all).copied()
}

/// A builtin that reads or writes objects, or makes a reference for others that do.
fn touching(rng: &mut Rng) -> Option<Target> {
    let makes_places =
        |builtin: Builtin| builtin.name().starts_with("memory") || builtin.name().starts_with("array");
    let touches = |builtin: &Builtin| !builtin.calls() && (!builtin.is_pure() || makes_places(*builtin));
    one(rng, builtins().filter(touches).collect()).map(Target::Builtin)
}

fn builtins() -> impl Iterator<Item = Builtin> {
    Builtin::ALL.iter().copied().filter(|&builtin| standing_of_builtin(builtin) != Standing::Refused)
}

fn intrinsics() -> impl Iterator<Item = Intrinsic> {
    Intrinsic::ALL.iter().copied().filter(|&intrinsic| standing_of_intrinsic(intrinsic) == Standing::Safe)
}
