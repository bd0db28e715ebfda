//! Well-formed high-IR modules from a seed.
//!
//! ```text
//! palette   declares types, chooses the ones that the module uses
//! func      the state of a function under construction: block, available values, spent budget
//! value     an operand of a given type: available, constant, or newly computed
//! straight  statements without control flow: intrinsics, tuples, fields, calls
//! control   ifs, loops, forests of forward edges, splits of unions, throws, returns
//! memory    malloc, loads and stores in bounds, free
//! objects   mutable objects
//! dynamic   operators on values whose types are known only at run time
//! operators methods of operators for these
//! ranges    loops over ranges, arrays and tuples as Julia prints them
//! iterate   functions of Base that these loops call
//! walk      loops over memory and arrays
//! digest    a number computed from all unused values
//! handler   try and catch with ϒ and φᶜ
//! ```
//!
//! **Scopes.** Control flow is built from nested regions. The available values are a stack; a region's own
//! values are removed at its end, so that every available value dominates its uses. Values that survive the
//! region pass through φs at the join.
//!
//! **Termination.** Loops count to a constant; calls go to functions made before, or to the function itself
//! with an argument that decreases from at most three. Every function has an upper bound on the steps of a
//! call ([`Options::max_steps`]); code that would exceed it is not made.
//!
//! **A single meaning.** If the result of arithmetic is a NaN, its bits are unspecified. A float is *exact*
//! if its bits are certain even then; operations on bits (`bitcast` to an integer, `===`, the sign operand of
//! `copysign_float`) get exact floats only. Addresses are never inspected, memory is written before it is
//! read, and undefined elements are not read. `_fast` intrinsics and `muladd_float` may differ between
//! engines and are generated only on request.
//!
//! Not done: dynamic calls other than operators and `iterate`, arrays of mutable objects, objects as
//! arguments and results, assigned globals, vararg functions, static parameters, printing.

mod control;
mod digest;
mod dynamic;
mod func;
mod handler;
mod iterate;
mod memory;
mod objects;
mod operators;
mod palette;
mod ranges;
mod straight;
mod value;
mod walk;

use super::rng::Rng;
use super::values;
use brolga_ir::module::{Global, GlobalKind};
use brolga_ir::{Context, FuncId, Module, Name, Type};
use func::FuncGen;
use palette::Palette;

/// Options of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The number of functions.
    pub functions: usize,
    /// The approximate number of instructions per function.
    pub size: usize,
    /// The maximum number of instructions executed by a call.
    pub max_steps: u64,
    /// The features of the IR that are used.
    pub features: Features,
}

/// Features of the IR that can be disabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// Integers of 128 bits.
    pub wide_ints: bool,
    /// `Float32` and `Float64`.
    pub floats: bool,
    /// `Float16`; needs `floats`.
    pub half: bool,
    /// Tuples, named tuples and immutable structs.
    pub aggregates: bool,
    /// Small unions of bits types.
    pub unions: bool,
    /// Strings and symbols.
    pub texts: bool,
    /// `===` on strings that are not constants, which native code refuses.
    pub text_identity: bool,
    /// Raw memory from `malloc`: a door, which checked programs may not use.
    pub memory: bool,
    /// Vectors of numbers.
    pub arrays: bool,
    /// Mutable objects.
    pub objects: bool,
    /// Operators on values of type `Any`. Needs `throws`, because the heap holds these values and there may
    /// be no matching method.
    pub dynamic: bool,
    /// Loops over ranges, tuples, and (with `arrays`) vectors and memories.
    pub ranges: bool,
    /// Calls of other functions of the module and of the function itself.
    pub calls: bool,
    /// Statements that may throw.
    pub throws: bool,
    /// Exception handlers.
    pub handlers: bool,
    /// `_fast` intrinsics and `muladd_float`, whose results may differ between engines.
    pub inexact: bool,
    /// Statements that do not affect the result: marks, queries about the processor.
    pub marks: bool,
}

impl Features {
    /// All features.
    pub const ALL: Features = Features {
        wide_ints: true,
        floats: true,
        half: true,
        aggregates: true,
        unions: true,
        texts: true,
        text_identity: true,
        memory: true,
        arrays: true,
        objects: true,
        dynamic: true,
        ranges: true,
        calls: true,
        throws: true,
        handlers: true,
        inexact: true,
        marks: true,
    };

    /// Features that compile to native code and have the same result in every engine.
    pub const NATIVE: Features = Features { inexact: false, text_identity: false, ..Features::ALL };

    /// The same without heap objects, including exceptions, for the interpreter of low IR.
    pub const WITHOUT_OBJECTS: Features = Features {
        texts: false,
        throws: false,
        handlers: false,
        arrays: false,
        objects: false,
        dynamic: false,
        ..Features::NATIVE
    };

    /// Features of native code, without doors.
    pub const CHECKED: Features = Features { memory: false, ..Features::NATIVE };

    /// Only integers, branches and loops.
    pub const PLAIN: Features = Features {
        wide_ints: false,
        floats: false,
        half: false,
        aggregates: false,
        unions: false,
        texts: false,
        text_identity: false,
        memory: false,
        arrays: false,
        objects: false,
        dynamic: false,
        ranges: false,
        calls: false,
        throws: false,
        handlers: false,
        inexact: false,
        marks: false,
    };
}

impl Default for Options {
    fn default() -> Self {
        Options { functions: 5, size: 60, max_steps: 2000, features: Features::NATIVE }
    }
}

/// The facts about a function that callers need.
#[derive(Clone, Debug)]
struct Known {
    name: Name,
    params: Vec<Type>,
    result: Type,
    /// The maximum number of instructions executed by a call.
    steps: u64,
}

/// A module with its own context.
///
/// # Panics
///
/// If the generated module is refused, which is a bug in the generator.
pub fn generate(seed: u64, options: &Options) -> Module {
    let mut rng = Rng::new(seed);
    let cx = Context::new();
    let mut palette = Palette::new(&mut rng, &cx, &options.features);
    let mut module = Module::new(cx.clone());
    for index in 0..rng.below(4) {
        let (name, ty) = (cx.names.intern(&format!("global{index}")), palette.any(&mut rng));
        let Some(init) = values::literal(&mut rng, &cx, ty) else { continue };
        let kind = match init.is_shared(&cx.types) {
            false if index % 2 == 1 => GlobalKind::ThreadLocal,
            _ => GlobalKind::Variable,
        };
        module.add_global(Global { name, ty, init, kind }).expect("globals have distinct names");
        palette.globals.push((name, ty));
    }
    if options.features.dynamic && rng.chance(75) {
        operators::add_methods(&mut rng, &cx, palette.own, &mut module);
    }
    if options.features.ranges {
        iterate::add_functions(&cx, options.features.throws, &mut module);
    }
    let mut known = Vec::new();
    for index in 0..options.functions {
        let (func, fact) = FuncGen::generate(&mut rng, &cx, &palette, &known, options, index);
        let _: FuncId = module.add_func(func).expect("generated functions have distinct names");
        known.extend(fact);
    }
    module
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_ir::analysis::{Cfg, DomTree, InstOrder, Loops, Rpo};
    use brolga_ir::intrinsic::Intrinsic;
    use brolga_ir::{Func, Op};
    use std::collections::BTreeSet;

    fn modules(count: u64, features: Features) -> impl Iterator<Item = (u64, Module)> {
        let options = Options { features, ..Options::default() };
        (0..count).map(move |seed| (seed, generate(seed, &options)))
    }

    /// Blocks end in a terminator, φs are at heads with at most one edge per predecessor, definitions
    /// dominate uses, loops have one entry.
    fn check_structure(seed: u64, func: &Func) {
        let cfg = Cfg::compute(func);
        let tree = DomTree::compute(&cfg);
        let loops = Loops::compute(&cfg, &Rpo::compute(&cfg), &tree);
        assert_eq!(loops.irreducible_edges(), [], "seed {seed}");
        let mut order = InstOrder::new();
        for block in func.blocks() {
            assert!(tree.is_reachable(block), "seed {seed}: {block}");
            let mut at_head = true;
            for inst in func.block_insts(block) {
                let is_phi = func.op(inst) == Op::Phi;
                assert!(at_head || !is_phi, "seed {seed}: {inst}");
                at_head = is_phi;
                let is_last = func.next_inst(inst).is_none();
                assert_eq!(func.op(inst).is_terminator(), is_last, "seed {seed}: {block} {inst}");
                if is_phi {
                    let froms: BTreeSet<_> = func.inst_blocks(inst).iter().collect();
                    assert_eq!(froms.len(), func.args(inst).len(), "seed {seed}: {inst}");
                    for (from, value) in func.phi_edges(inst) {
                        assert!(cfg.preds(block).contains(&from), "seed {seed}: {inst}");
                        assert!(tree.value_dominates_end(func, value, from), "seed {seed}: {inst} {value}");
                    }
                } else if func.op(inst) != Op::PhiC {
                    for &value in func.args(inst) {
                        assert!(
                            tree.value_dominates(func, &mut order, value, inst),
                            "seed {seed}: {inst} {value}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn functions_are_well_formed() {
        for (seed, module) in modules(200, Features::ALL).chain(modules(100, Features::PLAIN)) {
            assert!(module.func_count() >= 5);
            module.funcs().for_each(|(_, func)| check_structure(seed, func));
        }
    }

    #[test]
    fn every_kind_of_statement_occurs() {
        let mut seen = BTreeSet::new();
        let mut blocks = 0;
        for (_, module) in modules(600, Features::ALL) {
            for (_, func) in module.funcs() {
                blocks = blocks.max(func.blocks().count());
                for block in func.blocks() {
                    for inst in func.block_insts(block) {
                        let text = format!("{:?}", func.op(inst));
                        let kind =
                            text.split_once('(').filter(|(kind, _)| !["Intrinsic", "Builtin"].contains(kind));
                        seen.insert(kind.map_or(text.clone(), |(kind, _)| kind.to_owned()));
                    }
                }
            }
        }
        for &op in Intrinsic::ALL.iter().filter(|op| op.is_pure() && **op != Intrinsic::HaveFma) {
            assert!(seen.contains(&format!("Intrinsic({op:?})")), "{op}");
        }
        for kind in [
            "Phi",
            "Copy",
            "ForeignCall",
            "Goto",
            "Branch",
            "Return",
            "Unreachable",
            "Invoke",
            "New",
            "Pi",
            "Upsilon",
            "PhiC",
            "Enter",
            "Leave",
            "TheException",
            "PopException",
            "ThrowUndefIfNot",
            "BoundsCheck",
            "LoopInfo",
            "CodeCoverage",
            "SplatNew",
            "Intrinsic(AtomicPointermodify)",
            "GetGlobal",
            "GcPreserveBegin",
            "Builtin(Typeassert)",
            "Call",
            "Builtin(Memoryrefget)",
            "Builtin(Arrayref)",
            "Builtin(Egal)",
            "Builtin(Isa)",
            "Builtin(Tuple)",
            "Builtin(Getfield)",
            "Builtin(Ifelse)",
            "Intrinsic(AtomicPointerref)",
            "Intrinsic(AtomicPointerreplace)",
            "Intrinsic(Pointerset)",
        ] {
            assert!(seen.contains(kind), "{kind}");
        }
        assert!(blocks > 30);
    }

    #[test]
    fn a_seed_makes_the_same_module_every_time() {
        let text = |seed| format!("{:?}", generate(seed, &Options::default()).funcs().collect::<Vec<_>>());
        assert_eq!(text(42), text(42));
        assert_ne!(text(42), text(43));
    }
}
