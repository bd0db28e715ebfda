//! Options of a run of passes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use brolga_ir::{Arch, Func};

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

impl fmt::Display for OptLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "O{}", *self as u8)
    }
}

/// Whether bounds are checked: Julia's `--check-bounds`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CheckBounds {
    /// As the program requests.
    #[default]
    Auto,
    /// Everywhere, `@inbounds` or not.
    Yes,
    /// Nowhere. A wrong index is then undefined behaviour.
    No,
}

impl CheckBounds {
    /// Julia's word for it.
    pub fn name(self) -> &'static str {
        match self {
            CheckBounds::Auto => "auto",
            CheckBounds::Yes => "yes",
            CheckBounds::No => "no",
        }
    }

    /// Whether bounds are checked, given the program's request.
    pub(crate) fn settled(self, asked: bool) -> bool {
        match self {
            CheckBounds::Auto => asked,
            CheckBounds::Yes => true,
            CheckBounds::No => false,
        }
    }
}

/// A set of passes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PassFilter {
    /// No pass.
    #[default]
    None,
    /// All passes.
    All,
    /// The passes with these names.
    Named(Vec<&'static str>),
}

impl PassFilter {
    /// Whether the set contains the pass with this name.
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
    /// It counts the bits of several words at once. No result depends on it.
    pub bit_counts: bool,
}

/// Julia's parameters of inlining, and parameters for recursion, which Julia does not inline.
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

/// A pass of the embedder with its place: an [`ExtraPass`](crate::ExtraPass), which is in a layer above.
pub trait PlacedPass: sealed::Sealed + fmt::Debug + Send + Sync {
    /// Everything that code depends on, as one line.
    fn key(&self) -> String;

    /// The [`ExtraPass`](crate::ExtraPass).
    fn as_any(&self) -> &dyn Any;
}

pub(crate) mod sealed {
    /// Nothing outside of the crate is a placed pass.
    pub trait Sealed {}
}

/// The choices of a run. Every field may be changed on its own.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether bounds are checked.
    pub check_bounds: CheckBounds,
    /// Whether the program has no doors ([`brolga_ir::doors`]): then all bounds are checked, and the parts of an array are
    /// never set in place, whatever the optimiser derives about its type.
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
    /// Passes of the embedder. [`steps`](crate::steps) checks them.
    pub extra: Vec<Arc<dyn PlacedPass>>,
    /// The most statements that a function may have before, between and after passes.
    pub max_statements: Option<usize>,
    /// The most bytes that compiling a function may take, by the [estimate](memory_of); `None` is [`COMPILE_MEMORY`].
    pub compile_memory: Option<usize>,
}

/// The most bytes that compiling a function may take, unless the options say otherwise.
pub const COMPILE_MEMORY: usize = 2 << 30;

/// An estimate of the memory that passes need for a function: the function itself, a copy of it, and the tables of analyses
/// over its values, instructions and blocks. Removed ones count as well, because the tables still have them.
pub fn memory_of(func: &Func) -> usize {
    const VALUE: usize = 96;
    const INST: usize = 224;
    const BLOCK: usize = 416;
    VALUE * func.value_count() + INST * func.inst_count() + BLOCK * func.block_count()
}

impl Options {
    /// Whether bounds are checked: everywhere in a program without doors.
    pub fn bounds(&self) -> CheckBounds {
        if self.checked { CheckBounds::Yes } else { self.check_bounds }
    }

    /// All choices that a compiled function depends on, as one line. Caches compare these lines, so they do not depend on
    /// the representation of the choices. Verifying, printing and the limit of memory change no function.
    pub fn key(&self) -> String {
        let Options {
            check_bounds,
            checked,
            arch,
            cpu: CpuFeatures { fma, bit_counts },
            inline,
            verify_each: _,
            print_before: _,
            print_after: _,
            skip,
            extra,
            max_statements,
            compile_memory: _,
        } = self;
        let InlineLimits {
            threshold,
            cold_threshold,
            nonleaf_penalty,
            tuple_return_bonus,
            max_methods,
            recursion_threshold,
            recursion_depth,
            recursion_growth,
        } = inline;
        let (bounds, skip) = (check_bounds.name(), skip.join(","));
        let extra: Vec<String> = extra.iter().map(|pass| pass.key()).collect();
        let most = max_statements.map_or(String::from("any"), |most| most.to_string());
        format!(
            "bounds={bounds} checked={checked} arch={arch} fma={fma} bits={bit_counts} inline={threshold},{cold_threshold},{nonleaf_penalty},\
             {tuple_return_bonus},{max_methods} recursion={recursion_threshold},{recursion_depth},{recursion_growth} \
             skip={skip} extra={} statements={most}",
            extra.join(";")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct NoPass;

    impl sealed::Sealed for NoPass {}

    impl PlacedPass for NoPass {
        fn key(&self) -> String {
            "none".to_owned()
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    #[test]
    fn a_key_shows_each_choice_that_changes_code() {
        let base = Options { arch: Arch::X86_64, ..Options::default() };
        assert_eq!(
            base.key(),
            "bounds=auto checked=false arch=x86_64 fma=false bits=false inline=100,20,1000,250,4 recursion=100,8,300 skip= extra= statements=any"
        );
        let inline = InlineLimits { recursion_growth: 1, ..InlineLimits::default() };
        let changed = [
            Options { check_bounds: CheckBounds::No, ..base.clone() },
            Options { checked: true, ..base.clone() },
            Options { arch: Arch::Aarch64, ..base.clone() },
            Options { cpu: CpuFeatures { fma: true, ..CpuFeatures::default() }, ..base.clone() },
            Options { cpu: CpuFeatures { bit_counts: true, ..CpuFeatures::default() }, ..base.clone() },
            Options { inline, ..base.clone() },
            Options { skip: vec!["gvn"], ..base.clone() },
            Options { extra: vec![Arc::new(NoPass)], ..base.clone() },
            Options { max_statements: Some(9), ..base.clone() },
        ];
        assert!(changed.iter().all(|options| options.key() != base.key()));
        assert_eq!(Options { verify_each: true, compile_memory: Some(9), ..base.clone() }.key(), base.key());
    }
}
