//! What a caller may choose about a run of passes.

use crate::passes::inline::InlineLimits;

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub enum OptLevel {
    /// Only what lowering needs: linear and nearly free.
    O0,
    /// What is cheap and safe.
    O1,
    /// The default.
    #[default]
    O2,
    /// Also what makes code larger.
    O3,
}

impl OptLevel {
    /// All levels, lowest first.
    pub const ALL: [OptLevel; 4] = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];

    /// The level with this number.
    pub fn from_number(number: u8) -> Option<OptLevel> {
        OptLevel::ALL.get(usize::from(number)).copied()
    }
}

/// Whether bounds are checked: Julia's `--check-bounds`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CheckBounds {
    /// As the program says.
    #[default]
    Auto,
    /// Everywhere, `@inbounds` or not.
    Yes,
    /// Nowhere. A wrong index is then undefined behaviour.
    No,
}

/// Which passes something is done for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PassFilter {
    /// For none.
    #[default]
    None,
    /// For all.
    All,
    /// For the passes with these names.
    Named(Vec<&'static str>),
}

impl PassFilter {
    /// Whether the pass with this name is meant.
    pub fn has(&self, pass: &str) -> bool {
        match self {
            PassFilter::None => false,
            PassFilter::All => true,
            PassFilter::Named(names) => names.contains(&pass),
        }
    }
}

/// What the processor can do that the code is for. Nothing is taken for granted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpuFeatures {
    /// It multiplies and adds in one operation that rounds once.
    pub fma: bool,
}

/// The choices of a run. Every field may be changed on its own.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether bounds are checked.
    pub check_bounds: CheckBounds,
    /// The processor.
    pub cpu: CpuFeatures,
    /// When calls are inlined.
    pub inline: InlineLimits,
    /// Whether the function is verified before the first pass and after each.
    pub verify_each: bool,
    /// Before which passes the function is given to the sink of the [`Cx`](crate::Cx).
    pub print_before: PassFilter,
    /// After which passes the function is given to the sink of the [`Cx`](crate::Cx).
    pub print_after: PassFilter,
    /// The passes that do not run, by name. A required pass runs all the same.
    pub skip: Vec<&'static str>,
}
