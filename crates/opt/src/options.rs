//! Options of a run of passes.

use brolga_ir::Arch;

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub enum OptLevel {
    /// Only what lowering needs: linear and nearly free.
    O0,
    /// Cheap and safe passes.
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

/// The features of the target processor. None is assumed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpuFeatures {
    /// It multiplies and adds in one operation that rounds once.
    pub fma: bool,
}

/// Julia's parameters of inlining, and those of recursion, which Julia leaves alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlineLimits {
    /// The cost up to which a body is inlined (`inline_cost_threshold`).
    pub threshold: u32,
    /// The cost up to which a body is inlined where it is hardly ever called: at such a place only its size counts.
    pub cold_threshold: u32,
    /// The cost of an array access whose element type is unknown (`inline_nonleaf_penalty`).
    pub nonleaf_penalty: u32,
    /// How much more a body may cost that returns a tuple of unknown types (`inline_tupleret_bonus`).
    pub tuple_return_bonus: u32,
    /// How many methods a call that dispatches at run time is split into. Four, as many as Julia splits a union into: a test is two
    /// instructions, and a call that is found at run time costs forty.
    pub max_methods: usize,
    /// The cost up to which a function that calls itself is copied into itself.
    pub recursion_threshold: u32,
    /// How many levels of a recursion become one.
    pub recursion_depth: u32,
    /// How many instructions the copies of a recursive function may have in all.
    pub recursion_growth: usize,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self {
            threshold: 100,
            cold_threshold: 20,
            nonleaf_penalty: 1000,
            tuple_return_bonus: 250,
            max_methods: 4,
            recursion_threshold: 100,
            recursion_depth: 8,
            recursion_growth: 300,
        }
    }
}

/// The choices of a run. Every field may be changed on its own.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether bounds are checked.
    pub check_bounds: CheckBounds,
    /// Whether the program has no doors ([`brolga_ir::doors`]): then the parts of an array are never set in place, whatever the optimiser finds out
    /// of its type.
    pub checked: bool,
    /// The architecture that the code is for.
    pub arch: Arch,
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
    /// The most statements that a function may have before, between and behind passes.
    pub max_statements: Option<usize>,
}
