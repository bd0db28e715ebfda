//! Facts from dominating type tests about the types of a statement's operands.
//!
//! ```text
//! 1: %2 = (%1 isa Node)           %1 is any object here
//!    goto 3 if not %2
//! 2: %4 = π (%1, Node)            reached only if the test is true: %1 is a Node, and the asserted type needs no test of its own
//! 3: …                            %1 is not a Node
//! ```
//!
//! The type of a row may be narrower than its operation's: an *asserted type*. `lower` tests it unless it is proven, and
//! an unproven one may throw `TypeError`, which counts in a function's [summary](crate::summary). Both use this file, so they agree.
//!
//! | test, if it was true | fact about x |
//! |---|---|
//! | `x isa T`, `typeof(x) <: T` | it is a `T`; if false: none of the members of its union that are below `T` |
//! | `x === y` | it is of y's type; if false and y's type has one value only: it is another member |
//! | `typeof(x) === T` | it is a `T`, if `T` is concrete |
//! | `!t`, `t & u`, `t \| u` | the facts of the parts, where they are decided |
//!
//! A test of a value also counts for the π and copies that pass it on.
//!
//! Cost: a visit to each block once, if there are asserted types; for each query at most `MAX_TESTS` tests up the dominator tree. Not done:
//! facts from an earlier `typeassert`; tests through a φ.

use brolga_ir::analysis::{Cfg, DomTree};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Const;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Func, Inst, Op, Type, TypeKind, Types, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use crate::rules::field_position;

/// The most tests examined for one query.
const MAX_TESTS: usize = 32;

/// The most blocks up the dominator tree examined for one query.
const MAX_BLOCKS: usize = 128;

/// The most copies and π through which a value is traced.
const MAX_STEPS: usize = 16;

/// The facts of the edge into a block.
#[derive(Clone, Copy, Debug, Default)]
struct WayIn {
    /// The nearest block above with a condition.
    above: PackedOption<Block>,
    /// The condition of the branch whose edge is the only one into the block.
    condition: PackedOption<Value>,
    truth: bool,
}

/// The tests of a function, by the targets of their branches.
pub(crate) struct Tests {
    ways: SecondaryMap<Block, WayIn>,
}

impl Tests {
    /// No facts about any edge.
    pub(crate) fn none() -> Tests {
        Tests { ways: SecondaryMap::new() }
    }

    /// The tests of a function, if a π in it needs them.
    pub(crate) fn compute(func: &Func, types: &Types, cfg: &Cfg) -> Tests {
        let narrows = |inst: Inst| {
            let (Op::Pi, &[of], Some(result)) = (func.op(inst), func.args(inst), func.result(inst)) else {
                return false;
            };
            !types.is_subtype(func.ty(of), func.ty(result))
        };
        if !func.blocks().flat_map(|b| func.block_insts(b)).any(narrows) {
            return Tests::none();
        }
        let doms = DomTree::compute(cfg);
        let mut ways: SecondaryMap<Block, WayIn> = SecondaryMap::new();
        for &block in doms.preorder() {
            let above = doms.idom(block).map(|up| match ways[up].condition.is_some() {
                true => up.into(),
                false => ways[up].above,
            });
            let mut way = WayIn { above: above.unwrap_or_default(), ..WayIn::default() };
            if let Some(end) = cfg.single_pred(block).and_then(|pred| func.terminator(pred))
                && let (Op::Branch, &[condition, ..], &[yes, no]) =
                    (func.op(end), func.args(end), func.inst_blocks(end))
                && yes != no
            {
                (way.condition, way.truth) = (condition.into(), block == yes);
            }
            ways[block] = way;
        }
        Tests { ways }
    }

    /// The type of a value in a block, where it is known to be of the type `known` anyway.
    pub(crate) fn narrowed(
        &self,
        func: &Func,
        types: &Types,
        value: Value,
        block: Block,
        known: Type,
    ) -> Type {
        let value = origin(func, value);
        let mut ty = known;
        let mut at: Option<Block> = Some(block);
        let mut tests = MAX_TESTS;
        for _ in 0..MAX_BLOCKS {
            let Some(WayIn { above, condition, truth }) = at.map(|block| self.ways[block]) else { break };
            if let Some(condition) = condition.expand() {
                let mut work = vec![(condition, truth)];
                while let Some((condition, truth)) = work.pop() {
                    if tests == 0 {
                        return ty;
                    }
                    tests -= 1;
                    ty = Fact { func, types, value }.narrow(ty, condition, truth, &mut work);
                }
            }
            at = above.expand();
        }
        ty
    }
}

/// The value that a value passes on.
fn origin(func: &Func, mut value: Value) -> Value {
    for _ in 0..MAX_STEPS {
        match func.def_inst(value).map(|def| (func.op(def), func.args(def))) {
            Some((Op::Copy | Op::Pi, &[of])) => value = of,
            _ => break,
        }
    }
    value
}

struct Fact<'a> {
    func: &'a Func,
    types: &'a Types,
    /// The value of the query.
    value: Value,
}

impl Fact<'_> {
    /// The part of a type that remains after a condition; its parts go to `work`.
    fn narrow(&self, ty: Type, condition: Value, truth: bool, work: &mut Vec<(Value, bool)>) -> Type {
        let func = self.func;
        let Some(def) = func.def_inst(condition) else { return ty };
        match (func.op(def), func.args(def), truth) {
            (Op::Copy, &[of], _) => work.push((of, truth)),
            (Op::Intrinsic(Intrinsic::NotInt), &[of], _) => work.push((of, !truth)),
            (Op::Intrinsic(Intrinsic::AndInt), &[a, b], true)
            | (Op::Intrinsic(Intrinsic::OrInt), &[a, b], false) => work.extend([(a, truth), (b, truth)]),
            (Op::Builtin(Builtin::Isa), &[of, asked], _) if self.is_it(of) => {
                return self.type_constant(asked).map_or(ty, |asked| self.decided(ty, asked, truth));
            }
            (Op::Builtin(Builtin::Subtype), &[of, asked], _) if self.is_its_type(of) => {
                return self.type_constant(asked).map_or(ty, |asked| self.decided(ty, asked, truth));
            }
            (Op::Builtin(Builtin::Egal), &[a, b], _) => {
                for (one, other) in [(a, b), (b, a)] {
                    if self.is_its_type(one) {
                        let exact = self.type_constant(other).filter(|&exact| self.is_exact(exact));
                        return exact.map_or(ty, |exact| self.decided(ty, exact, truth));
                    }
                    let given = func.ty(other);
                    if self.is_it(one) && (truth || self.is_exact(given) && self.types.is_singleton(given)) {
                        return self.decided(ty, given, truth);
                    }
                }
            }
            _ => {}
        }
        ty
    }

    fn is_it(&self, value: Value) -> bool {
        origin(self.func, value) == self.value
    }

    /// Whether a value is the exact type of the value of the query.
    fn is_its_type(&self, value: Value) -> bool {
        let def = self.func.def_inst(origin(self.func, value));
        def.is_some_and(|def| match (self.func.op(def), self.func.args(def)) {
            (Op::Builtin(Builtin::Typeof), &[of]) => self.is_it(of),
            _ => false,
        })
    }

    fn type_constant(&self, value: Value) -> Option<Type> {
        match self.func.as_const(value)? {
            Const::Type { of, .. } => Some(*of),
            _ => None,
        }
    }

    /// Whether all values of a type have it as their exact type. A type as a value is a `DataType`.
    fn is_exact(&self, ty: Type) -> bool {
        self.types.is_concrete(ty) && !matches!(self.types.kind(ty), TypeKind::TypeOf(_))
    }

    /// The part of a type that remains if its values are of another, or are not.
    fn decided(&self, ty: Type, asked: Type, truth: bool) -> Type {
        let types = self.types;
        if truth && types.is_subtype(asked, ty) {
            return asked;
        }
        let members = types.members(&ty).iter().copied();
        let left: Vec<Type> = match truth {
            true => members
                .filter(|&m| !types.is_disjoint(m, asked))
                .map(|m| if types.is_subtype(asked, m) { asked } else { m })
                .collect(),
            false => members.filter(|&m| !types.is_subtype(m, asked)).collect(),
        };
        types.union(&left).unwrap_or(ty)
    }
}

/// Whether a row may assert a type narrower than its operation's result, as far as types and earlier tests show. Dynamic
/// calls may throw anyway and are not examined.
pub(crate) fn may_fail(func: &Func, types: &Types, tests: &Tests, inst: Inst) -> bool {
    let Some(asserted) = func.result(inst).map(|result| func.ty(result)) else { return false };
    if matches!(asserted, Type::ANY | Type::BOTTOM) {
        return asserted == Type::BOTTOM;
    }
    let arg_type = |n: usize| func.args(inst).get(n).map_or(Type::ANY, |&v| func.ty(v));
    let given = match func.op(inst) {
        Op::Pi => {
            let (Some(&of), Some(block)) = (func.args(inst).first(), func.inst_block(inst)) else {
                return true;
            };
            tests.narrowed(func, types, of, block, func.ty(of))
        }
        Op::GetGlobal(_) => Type::ANY,
        Op::Builtin(builtin) => match builtin {
            Builtin::Getfield => match func.args(inst) {
                &[object, field, ..] => field_type(func, types, func.ty(object), field),
                _ => Type::ANY,
            },
            Builtin::Memoryrefget => types.memory_ref_element(arg_type(0)).unwrap_or(Type::ANY),
            Builtin::Arrayref => types.array_parts(arg_type(1)).map_or(Type::ANY, |(elem, _)| elem),
            Builtin::Setfield => arg_type(2),
            Builtin::Memoryrefset => arg_type(1),
            Builtin::Arrayset => arg_type(1),
            Builtin::Egal | Builtin::Isa | Builtin::Subtype | Builtin::Isdefined => Type::BOOL,
            Builtin::MemoryrefIsassigned | Builtin::Isdefinedglobal | Builtin::Setfieldonce => Type::BOOL,
            Builtin::Sizeof | Builtin::Nfields | Builtin::Arraylen | Builtin::Arraysize => Type::INT64,
            Builtin::Memoryrefoffset => Type::INT64,
            Builtin::Donotdelete => Type::NOTHING,
            // The type of a type may be another.
            Builtin::Typeof if types.is_disjoint(arg_type(0), types.supertype(Type::DATATYPE)) => {
                Type::DATATYPE
            }
            Builtin::Tuple => {
                let elems: Vec<Type> = func.args(inst).iter().map(|&v| func.ty(v)).collect();
                types.tuple_of_values(&elems).unwrap_or(Type::ANY)
            }
            // Their rows hold their operands.
            Builtin::Ifelse | Builtin::Compilerbarrier | Builtin::Blackbox => return false,
            Builtin::Memorynew => match func.args(inst).first().and_then(|&v| func.as_const(v)) {
                Some(Const::Type { of, .. }) => *of,
                _ => Type::ANY,
            },
            Builtin::Memoryrefnew => types
                .memory_element(arg_type(0))
                .or(types.memory_ref_element(arg_type(0)))
                .and_then(|elem| types.memory_ref(elem).ok())
                .unwrap_or(Type::ANY),
            _ => Type::ANY,
        },
        _ => return false,
    };
    !types.is_subtype(given, asserted)
}

/// The type of a field's value.
fn field_type(func: &Func, types: &Types, object: Type, field: Value) -> Type {
    if let Some(n) = field_position(func, types, object, field) {
        return types.field_type(object, n).unwrap_or(Type::ANY);
    }
    // The fields of types that the run time lays out have concrete types, which the verifier looks up by name.
    let laid_out = types.array_parts(object).is_some()
        || types.memory_element(object).is_some()
        || types.memory_ref_element(object).is_some();
    match func.as_const(field) {
        Some(Const::Symbol(_)) if laid_out => Type::BOTTOM,
        _ => Type::ANY,
    }
}
