//! Bases: the object that keeps each pointer's memory alive, and a number for every value that may need a root.
//!
//! ```text
//!   %1 = alloc(…)::tracked                 own root r0
//!   %2 = add_ptr(%1, 16)::derived          base r0
//!   %3 = φ (#1 => %2, #2 => %9)::derived   a different base on each edge: a φ of the bases is added
//!   %4 = gc_loaded(%1, %0)::loaded         base r0
//!   %5 = bitcast(type_addr(T))::tracked    permanent
//! ```
//!
//! A *root* is a tracked value defined by an instruction: an argument, a load, a call, an allocation, a φ, an
//! `ifelse`. Copies and casts are aliases of their operand. A pointer of another class has the base of the
//! pointer it was derived from.
//!
//! **Lifting.** A φ or `ifelse` of derived or loaded pointers has no base of its own. If all its operands
//! have the same base, as with an induction pointer, that is its base. Otherwise a tracked φ (or `ifelse`) of
//! the operands' bases is added. All of them are solved together, optimistically: a state goes from unknown
//! to one base to "lifted", so it changes at most twice.
//!
//! **Roots are numbered** so that a definition precedes the definitions that it dominates.
//!
//! Afterwards no tracked value is undefined: `undef` becomes null, and a missing φ edge supplies null.
//! Otherwise a value that is used on some paths only would store the garbage of a register into a slot.
//!
//! Departure from Julia: a raw pointer cast to tracked is permanent only if it is the address of a permanent object; any other
//! is rooted like a loaded one, because its owner is unknown.
//!
//! Cost: linear.

use crate::class::is_managed;
use crate::stack::StackObjects;
use brolga_ir::analysis::{Cfg, DomTree, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::cursor::Cursor;
use brolga_ir::func::ValueDef;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Const, Context, Func, Inst, Op, PtrClass, Type, Value};
use cranelift_entity::{EntityRef, SecondaryMap};

/// A value that may need a root, by its number.
pub(crate) type Root = u32;

/// The base that keeps the pointed-to memory alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Base {
    /// Not an object, or one that need not be kept alive by this function.
    #[default]
    None,
    /// A permanent object, or null.
    Permanent,
    Root(Root),
}

/// The bases of all values.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    of: SecondaryMap<Value, Base>,
    /// The value of each root and the block that defines it.
    pub(crate) roots: Vec<(Value, Block)>,
    /// The number of added φ and `ifelse` of bases.
    pub(crate) lifted: usize,
}

/// Facts about a value before the φ are solved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Key {
    #[default]
    None,
    Permanent,
    /// Memory in the function's own frame: nothing has to keep it alive, and it keeps nothing else alive,
    /// because its slot may be reused.
    Frame,
    Own(Value),
    /// The base of this φ or `ifelse`, not yet computed.
    Node(Value),
}

/// Facts about a φ or `ifelse` of bases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unknown,
    One(Key),
    Lifted,
}

impl Bases {
    pub(crate) fn of(&self, value: Value) -> Base {
        self.of[value]
    }

    /// The number of a value's base.
    pub(crate) fn root(&self, value: Value) -> Option<Root> {
        match self.of[value] {
            Base::Root(root) => Some(root),
            _ => None,
        }
    }

    /// Finds all bases; adds φ where a base is missing, and null where a tracked value is undefined.
    pub(crate) fn compute(
        func: &mut Func,
        cx: &Context,
        cfg: &Cfg,
        rpo: &Rpo,
        tree: &DomTree,
        objects: &StackObjects,
    ) -> Bases {
        define_undefined(func, cx);
        let (keys, nodes) = keys(func, rpo, objects);
        let states = solve(func, tree, &keys, &nodes);
        let lifts = lift(func, cx, &keys, &nodes, &states);
        complete_edges(func, cx, cfg, rpo);
        let mut bases = Bases { lifted: lifts.len(), ..Bases::default() };
        // Numbers the roots in reverse postorder, which includes the lifted ones now.
        let mut numbers: SecondaryMap<Value, Option<Root>> = SecondaryMap::new();
        let is_lift: SecondaryMap<Value, bool> =
            lifts.iter().fold(SecondaryMap::new(), |mut all, &(_, v)| {
                all[v] = true;
                all
            });
        let entry = rpo.blocks().first().copied();
        let params = func.params().iter().map(|&v| (v, entry));
        let results = rpo.blocks().iter().flat_map(|&b| {
            let func = &*func;
            func.block_insts(b).flat_map(move |i| func.results(i)).map(move |v| (v, Some(b)))
        });
        for (value, block) in params.chain(results) {
            let is_root = is_lift[value] || keys[value] == Key::Own(value);
            if let (true, Some(block)) = (is_root, block) {
                numbers[value] = Some(bases.roots.len() as Root);
                bases.roots.push((value, block));
            }
        }
        let mut lifted: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
        for &(node, value) in &lifts {
            lifted[node] = Some(value);
            bases.of[value] = numbers[value].map_or(Base::None, Base::Root);
        }
        let base_of = |key: Key| match resolved(key, &states, &lifted) {
            Key::Own(value) => numbers[value].map_or(Base::None, Base::Root),
            Key::Permanent => Base::Permanent,
            Key::None | Key::Frame | Key::Node(_) => Base::None,
        };
        for index in 0..func.value_count() {
            let value = Value::new(index);
            if !is_lift[value] {
                bases.of[value] = base_of(keys[value]);
            }
        }
        bases
    }
}

/// Replaces undefined tracked constants by null.
fn define_undefined(func: &mut Func, cx: &Context) {
    let null = func.bits(&cx.types, Type::TRACKED, 0);
    let mut undefined: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut any = false;
    for index in 0..func.value_count() {
        let value = Value::new(index);
        if func.as_const(value) == Some(&Const::Undef(Type::TRACKED)) {
            (undefined[value], any) = (true, true);
        }
    }
    if any {
        func.replace_values(|v| if undefined[v] { null } else { v });
    }
}

/// Adds null operands for the edges that tracked φ, including lifted ones, do not name.
fn complete_edges(func: &mut Func, cx: &Context, cfg: &Cfg, rpo: &Rpo) {
    let null = func.bits(&cx.types, Type::TRACKED, 0);
    for &block in rpo.blocks() {
        let phis: Vec<Inst> = func.block_insts(block).take_while(|&i| func.op(i) == Op::Phi).collect();
        for phi in phis {
            if func.result(phi).map(|v| func.ty(v)) != Some(Type::TRACKED) {
                continue;
            }
            for &pred in cfg.preds(block) {
                if rpo.is_reachable(pred) && !func.inst_blocks(phi).contains(&pred) {
                    func.add_phi_edge(phi, pred, null);
                }
            }
        }
    }
}

/// The base of each value as found by one pass over the instructions, and the φ and `ifelse` that have no
/// base of their own.
fn keys(func: &Func, rpo: &Rpo, objects: &StackObjects) -> (SecondaryMap<Value, Key>, Vec<Value>) {
    let mut keys: SecondaryMap<Value, Key> = SecondaryMap::new();
    let mut nodes = Vec::new();
    for index in 0..func.value_count() {
        let value = Value::new(index);
        match func.value_def(value) {
            ValueDef::Const(_) => keys[value] = constant(func, value),
            ValueDef::Param(_) if is_managed(func.ty(value)) => keys[value] = Key::Own(value),
            _ => {}
        }
    }
    for &block in rpo.blocks() {
        for inst in func.block_insts(block) {
            for value in func.results(inst) {
                let key = made(func, inst, value, &keys, objects);
                if key == Key::Node(value) {
                    nodes.push(value);
                }
                keys[value] = key;
            }
        }
    }
    (keys, nodes)
}

fn constant(func: &Func, value: Value) -> Key {
    match func.as_const(value) {
        Some(Const::Address(address)) if address.is_object() => Key::Permanent,
        Some(Const::Bits { ty, .. } | Const::Undef(ty)) if is_managed(*ty) => Key::Permanent,
        _ => Key::None,
    }
}

/// The base of a result; the bases of its operands are known, except for φ operands.
fn made(
    func: &Func,
    inst: Inst,
    value: Value,
    keys: &SecondaryMap<Value, Key>,
    objects: &StackObjects,
) -> Key {
    let op = func.op(inst);
    let first = || func.args(inst).first().map_or(Key::None, |&v| keys[v]);
    let Some(class) = func.ty(value).ptr_class() else { return Key::None };
    // For raw pointers, all that matters is whether they point to permanent objects or into the frame.
    if class == PtrClass::Raw {
        let into_frame = match op {
            Op::SlotAddr(slot) => objects.has(slot),
            Op::Intrinsic(Intrinsic::AddPtr) => first() == Key::Frame,
            _ => false,
        };
        if into_frame {
            return Key::Frame;
        }
        let permanent = match op {
            Op::TypeOf => true,
            Op::Copy | Op::PointerFromObjref => first() == Key::Permanent,
            Op::Intrinsic(Intrinsic::Bitcast) => first() == Key::Permanent,
            Op::Builtin(Builtin::Ifelse) => func.args(inst)[1..].iter().all(|&v| keys[v] == Key::Permanent),
            _ => false,
        };
        return if permanent { Key::Permanent } else { Key::None };
    }
    match op {
        Op::Copy | Op::GcLoaded => first(),
        Op::Intrinsic(Intrinsic::Bitcast) => match (first(), class) {
            (Key::None, PtrClass::Tracked) => Key::Own(value),
            (key, _) => key,
        },
        Op::Intrinsic(Intrinsic::AddPtr | Intrinsic::SubPtr) => first(),
        Op::Load(_) if class == PtrClass::Loaded => first(),
        Op::Phi | Op::Builtin(Builtin::Ifelse) if class != PtrClass::Tracked => Key::Node(value),
        _ => Key::Own(value),
    }
}

/// The operands of a φ or `ifelse` of pointers.
fn choices(func: &Func, inst: Inst) -> &[Value] {
    match func.op(inst) {
        Op::Phi => func.args(inst),
        _ => func.args(inst).get(1..).unwrap_or(&[]),
    }
}

/// For each φ and `ifelse`: its only base, or the fact that it has to be lifted.
fn solve(
    func: &Func,
    tree: &DomTree,
    keys: &SecondaryMap<Value, Key>,
    nodes: &[Value],
) -> SecondaryMap<Value, Option<State>> {
    let mut states: SecondaryMap<Value, Option<State>> = SecondaryMap::new();
    let mut users: SecondaryMap<Value, Vec<Value>> = SecondaryMap::new();
    for &node in nodes {
        states[node] = Some(State::Unknown);
        let Some(inst) = func.def_inst(node) else { continue };
        for &operand in choices(func, inst) {
            if let Key::Node(other) = keys[operand] {
                users[other].push(node);
            }
        }
    }
    let mut work: Vec<Value> = nodes.to_vec();
    while let Some(node) = work.pop() {
        let Some(inst) = func.def_inst(node) else { continue };
        let mut state = State::Unknown;
        // A missing φ edge supplies an unused value.
        for &operand in choices(func, inst) {
            let met = match keys[operand] {
                // A lifted value is a base of its own.
                Key::Node(other) => match states[other] {
                    Some(State::Lifted) => State::One(Key::Node(other)),
                    Some(state) => state,
                    None => State::Unknown,
                },
                key => State::One(key),
            };
            state = match (state, met) {
                (State::Unknown, met) => met,
                (state, State::Unknown) => state,
                (a, b) if a == b => a,
                _ => State::Lifted,
            };
        }
        if let State::One(Key::Own(base) | Key::Node(base)) = state
            && !is_there(func, tree, base, inst)
        {
            state = State::Lifted;
        }
        if states[node] != Some(state) && states[node] != Some(State::Lifted) {
            states[node] = Some(state);
            work.extend(users[node].iter().copied());
        }
    }
    states
}

/// The key of a value after the φ are solved: never a node.
fn resolved(
    key: Key,
    states: &SecondaryMap<Value, Option<State>>,
    lifted: &SecondaryMap<Value, Option<Value>>,
) -> Key {
    let lifted_one = |node| lifted[node].map_or(Key::None, Key::Own);
    match key {
        Key::Node(node) => match states[node] {
            Some(State::One(Key::Node(other))) => lifted_one(other),
            Some(State::One(key)) => key,
            Some(State::Lifted) => lifted_one(node),
            // Only φ in a cycle that is not entered from outside.
            Some(State::Unknown) | None => Key::Permanent,
        },
        key => key,
    }
}

/// Whether the base is available at the φ or `ifelse`.
fn is_there(func: &Func, tree: &DomTree, base: Value, at: Inst) -> bool {
    let home = func.def_inst(base).and_then(|i| func.inst_block(i));
    match (home, func.inst_block(at)) {
        (Some(home), Some(block)) if func.op(at) == Op::Phi => tree.strictly_dominates(home, block),
        (Some(home), Some(block)) => tree.dominates(home, block),
        (home, _) => home.is_none(),
    }
}

/// Adds a φ or `ifelse` of the bases next to each that needs one. Returns the pairs.
fn lift(
    func: &mut Func,
    cx: &Context,
    keys: &SecondaryMap<Value, Key>,
    nodes: &[Value],
    states: &SecondaryMap<Value, Option<State>>,
) -> Vec<(Value, Value)> {
    let mut lifted: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
    let mut lifts = Vec::new();
    let null = func.bits(&cx.types, Type::TRACKED, 0);
    for &node in nodes.iter().filter(|&&n| states[n] == Some(State::Lifted)) {
        let Some(inst) = func.def_inst(node) else { continue };
        let (op, args) = (func.op(inst), func.args(inst).to_vec());
        let blocks = func.inst_blocks(inst).to_vec();
        // The operands are added when all lifted values exist, because of cycles.
        let nulls: Vec<Value> = match op {
            Op::Phi => args.iter().map(|_| null).collect(),
            _ => vec![args[0], null, null],
        };
        let mut at = Cursor::new(func);
        let new = at.before(inst).ins_with_blocks(op, &nulls, &blocks, &[Type::TRACKED]);
        let value = func.results(new).next();
        lifted[node] = value;
        lifts.extend(value.map(|value| (node, value)));
    }
    for &(node, value) in &lifts {
        let (Some(from), Some(to)) = (func.def_inst(node), func.def_inst(value)) else { continue };
        let bases: Vec<Value> = choices(func, from)
            .iter()
            .map(|&operand| match resolved(keys[operand], states, &lifted) {
                Key::Own(base) => base,
                _ => null,
            })
            .collect();
        let first = func.args(to).len() - bases.len();
        func.args_mut(to)[first..].copy_from_slice(&bases);
    }
    lifts
}
