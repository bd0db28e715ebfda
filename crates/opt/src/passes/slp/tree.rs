//! Builds SLP trees: decides which scalars become which vectors, and whether that pays.
//!
//! A tree has a node for each vector: a load, a store, an operation, a φ, constants, or a gather of scalars. Users of the
//! same scalars share a node, so the tree of a loop-carried sum has a cycle. A scalar is in at most one node.
//!
//! The gain is counted in instructions of the block:
//!
//! | instructions | for each |
//! |---|---|
//! | lanes - 1 fewer | load, store, operation |
//! | one more for each lane | gather in the block |
//! | one more | gather of one value into all lanes (splat) in the block; lane that a scalar in the block uses |
//!
//! Gathers and extracts outside of the block cost nothing: where the block is a loop, they run less often.

use super::Seed;
use crate::CpuFeatures;
use crate::alias::{Aliases, Location, Root};
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::{Cfg, Use, Uses};
use brolga_ir::effects::effects;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::lanes::Lanes;
use brolga_ir::op::Region;
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use rustc_hash::FxHashMap;

/// The most nodes of a tree.
pub(super) const MAX_NODES: usize = 64;
/// The length of the longest path from the root.
const MAX_DEPTH: u32 = 12;
/// The least gain at which a tree is used, in instructions.
const MIN_GAIN: i32 = 2;

/// The memory that an access reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    root: Root,
    index: Option<(Value, u64)>,
    pub(super) disp: u64,
    size: u64,
    region: Region,
}

impl Place {
    pub(super) fn of(func: &Func, types: &Types, aliases: &Aliases, inst: Inst) -> Option<Place> {
        let (Op::Load(access) | Op::Store(access)) = func.op(inst) else { return None };
        let at = aliases.access(func, types, inst)?;
        let (root, index) = (at.address.root, at.address.index);
        Some(Place { root, index, disp: at.address.disp, size: at.size?, region: access.region })
    }

    /// The part that adjacent places have in common.
    pub(super) fn base(&self) -> (Root, Option<(Value, u64)>, Region) {
        (self.root, self.index, self.region)
    }

    /// Whether this is the `n`-th element after `first`.
    pub(super) fn follows(&self, first: &Place, n: u64) -> bool {
        let there = first.disp.wrapping_add(n.wrapping_mul(first.size));
        self.base() == first.base() && self.size == first.size && self.disp == there
    }
}

/// A block and the analyses of its function.
pub(super) struct Site<'a> {
    pub(super) func: &'a Func,
    types: &'a Types,
    aliases: &'a Aliases,
    uses: &'a Uses,
    undefined: &'a MaybeUndefined,
    cpu: CpuFeatures,
    block: Block,
    /// The predecessor outside the loop, if the block is a loop by itself.
    before: Option<Block>,
    /// The positions of the instructions in the block.
    order: FxHashMap<Inst, usize>,
    insts: Vec<Inst>,
}

impl<'a> Site<'a> {
    pub(super) fn of(
        func: &'a Func,
        types: &'a Types,
        cfg: &Cfg,
        aliases: &'a Aliases,
        uses: &'a Uses,
        undefined: &'a MaybeUndefined,
        cpu: CpuFeatures,
        block: Block,
    ) -> Site<'a> {
        let insts: Vec<Inst> = func.block_insts(block).collect();
        let order = insts.iter().enumerate().map(|(n, &i)| (i, n)).collect();
        let before = match *cfg.preds(block) {
            [a, b] if a == block => Some(b),
            [a, b] if b == block => Some(a),
            _ => None,
        };
        Site { func, types, aliases, uses, undefined, cpu, block, before, order, insts }
    }

    fn inside(&self, value: Value) -> Option<Inst> {
        self.func.def_inst(value).filter(|i| self.order.contains_key(i))
    }

    fn place(&self, inst: Inst) -> Option<Place> {
        Place::of(self.func, self.types, self.aliases, inst)
    }

    /// Whether accesses may move to the position of the last of them, past every instruction but `moving`, which moves there too.
    fn can_join(&self, members: &[Inst], moving: &[Inst]) -> bool {
        let places: Vec<usize> = members.iter().filter_map(|i| self.order.get(i).copied()).collect();
        let Some(&last) = places.iter().max() else { return false };
        members.iter().zip(&places).all(|(&member, &from)| {
            let Some(at) = self.aliases.access(self.func, self.types, member) else { return false };
            let writes = matches!(self.func.op(member), Op::Store(_));
            self.insts[from + 1..=last].iter().all(|&other| {
                members.contains(&other) || moving.contains(&other) || !self.blocks_move(other, &at, writes)
            })
        })
    }

    /// Whether an access to `at` must not move past `inst`.
    fn blocks_move(&self, inst: Inst, at: &Location, writes: bool) -> bool {
        let does = effects(self.func, self.types, inst);
        let stops = does.fence || writes && !(does.nothrow && does.terminates && !does.may_safepoint);
        stops
            || self.aliases.may_write(self.func, self.types, inst, &does, at)
            || writes && self.aliases.may_read(self.func, self.types, inst, &does, at)
    }
}

/// How a vector is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Node {
    /// A vector load; lane 0 has the lowest address.
    Load,
    /// A vector store of this bundle.
    Store(usize),
    /// A lane-wise operation on these bundles.
    Lanes(Intrinsic, Vec<usize>),
    /// A vector φ: a bundle for each edge.
    Phi(Vec<(Block, usize)>),
    /// A vector constant.
    Constant(u128),
    /// Scalars inserted into a vector at the end of this block; with `None`, before the first use.
    Gather(Option<Block>),
}

/// Scalars and the vector that they become.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub(super) node: Node,
    pub(super) values: Vec<Value>,
    pub(super) members: Vec<Inst>,
    /// The last member in the block; the vector instruction goes after it.
    pub(super) last: Option<Inst>,
}

/// A lane that scalar instructions use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extract {
    pub(super) bundle: usize,
    pub(super) lane: usize,
    /// Whether one of the users is in the block, so that the extract is executed as often as the vector operations. A gather
    /// into another bundle is such a user.
    in_block: bool,
}

/// A tree whose gain is at least [`MIN_GAIN`].
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) block: Block,
    pub(super) lanes: Lanes,
    pub(super) bundles: Vec<Bundle>,
    pub(super) extracts: Vec<Extract>,
}

impl Tree {
    pub(super) fn of(site: &Site<'_>, seed: &Seed) -> Option<Tree> {
        // An earlier tree may have replaced members of the seed.
        if !seed.members.iter().all(|i| site.order.contains_key(i)) {
            return None;
        }
        let mut grow = Grow {
            site,
            seed,
            bundles: Vec::new(),
            known: FxHashMap::default(),
            taken: FxHashMap::default(),
        };
        if seed.is_store {
            if !site.can_join(&seed.members, &[]) {
                return None;
            }
            let stored: Vec<Value> = seed.members.iter().map(|&i| site.func.args(i)[1]).collect();
            let stored = grow.bundle(&stored, None, MAX_DEPTH)?;
            let last = grow.last(&seed.members);
            let members = seed.members.clone();
            grow.bundles.push(Bundle { node: Node::Store(stored), values: Vec::new(), members, last });
        } else {
            let values: Option<Vec<Value>> = seed.members.iter().map(|&i| site.func.result(i)).collect();
            let root = grow.bundle(&values?, None, MAX_DEPTH)?;
            if !matches!(grow.bundles[root].node, Node::Phi(_)) {
                return None;
            }
        }
        let extracts = grow.extracts()?;
        let tree = Tree { block: site.block, lanes: seed.lanes, bundles: grow.bundles, extracts };
        (tree.gain() >= MIN_GAIN).then_some(tree)
    }

    fn gain(&self) -> i32 {
        let count = self.lanes.count() as i32;
        let vectors: i32 = self
            .bundles
            .iter()
            .map(|b| match b.node {
                Node::Load | Node::Store(_) | Node::Lanes(..) => count - 1,
                Node::Phi(_) | Node::Constant(_) => 0,
                Node::Gather(Some(at)) if at != self.block => 0,
                Node::Gather(_) if b.values.iter().all(|&v| v == b.values[0]) => -1,
                Node::Gather(_) => -count,
            })
            .sum();
        vectors - self.extracts.iter().filter(|extract| extract.in_block).count() as i32
    }
}

/// A tree under construction.
struct Grow<'a> {
    site: &'a Site<'a>,
    seed: &'a Seed,
    bundles: Vec<Bundle>,
    /// Bundles by their scalars, as far as they dominate every user.
    known: FxHashMap<Vec<Value>, usize>,
    /// The bundle that a scalar instruction is a member of.
    taken: FxHashMap<Inst, usize>,
}

impl Grow<'_> {
    fn last(&self, members: &[Inst]) -> Option<Inst> {
        members.iter().copied().max_by_key(|i| self.site.order.get(i))
    }

    /// The bundle of these values, for a user in the block or, with `edge`, for a φ that gets it at the end of that block.
    fn bundle(&mut self, values: &[Value], edge: Option<Block>, depth: u32) -> Option<usize> {
        if let Some(&known) = self.known.get(values).filter(|_| edge.is_none_or(|e| e == self.site.block)) {
            return Some(known);
        }
        if self.bundles.len() >= MAX_NODES {
            return None;
        }
        let func = self.site.func;
        let ty = Type::low(self.seed.lanes.element());
        if values.iter().any(|&v| func.ty(v) != ty) {
            return None;
        }
        let constants: Option<Vec<u128>> = values.iter().map(|&v| func.as_bits(v)).collect();
        if let Some(bits) = constants {
            let lanes = self.seed.lanes;
            let all = bits.iter().zip(0..).fold(0, |vector, (&b, lane)| lanes.insert(vector, lane, b));
            return Some(self.add(Node::Constant(all), values, Vec::new()));
        }
        if let Some(members) = self.members(values).filter(|_| depth > 0) {
            let before = self.bundles.len();
            let (known, taken) = (self.known.clone(), self.taken.clone());
            if let Some(done) = self.vector(values, members, depth - 1) {
                return Some(done);
            }
            self.bundles.truncate(before);
            (self.known, self.taken) = (known, taken);
        }
        self.gather(values, edge)
    }

    fn add(&mut self, node: Node, values: &[Value], members: Vec<Inst>) -> usize {
        let last = self.last(&members);
        let index = self.bundles.len();
        self.taken.extend(members.iter().map(|&i| (i, index)));
        self.known.insert(values.to_vec(), index);
        self.bundles.push(Bundle { node, values: values.to_vec(), members, last });
        index
    }

    /// A gather of the values. `None` if one may be undefined: the scalar code may merely copy such a value, but an
    /// insertion into a vector uses it.
    fn gather(&mut self, values: &[Value], edge: Option<Block>) -> Option<usize> {
        let site = self.site;
        if values.iter().any(|&v| site.undefined.has(site.func, v)) {
            return None;
        }
        let outside = values.iter().all(|&v| site.inside(v).is_none());
        let at = edge.or(site.before.filter(|_| outside));
        let index = self.add(Node::Gather(at), values, Vec::new());
        if at.is_none() || at != site.before {
            // The gather does not dominate other users.
            self.known.remove(values);
        }
        Some(index)
    }

    /// The defining instructions, if they are distinct, in the block, and in no bundle yet.
    fn members(&self, values: &[Value]) -> Option<Vec<Inst>> {
        let members: Vec<Inst> = values.iter().map(|&v| self.site.inside(v)).collect::<Option<_>>()?;
        let distinct = (1..members.len()).all(|n| !members[..n].contains(&members[n]));
        let free = members.iter().all(|i| !self.taken.contains_key(i));
        (distinct && free).then_some(members)
    }

    /// The bundle that replaces all members. `None` if their operations differ or must not move.
    fn vector(&mut self, values: &[Value], members: Vec<Inst>, depth: u32) -> Option<usize> {
        let func = self.site.func;
        match func.op(members[0]) {
            Op::Load(_) => {
                let first = self.site.place(members[0])?;
                let in_row = members.iter().enumerate().all(|(n, &i)| {
                    matches!(func.op(i), Op::Load(_))
                        && self.site.place(i).is_some_and(|p| p.follows(&first, n as u64))
                });
                let moving: &[Inst] = if self.seed.is_store { &self.seed.members } else { &[] };
                let ok = in_row && self.site.can_join(&members, moving);
                ok.then(|| self.add(Node::Load, values, members))
            }
            Op::Intrinsic(op) => {
                let lanes = self.seed.lanes;
                let same = members.iter().all(|&i| func.op(i) == Op::Intrinsic(op));
                // The processor has no vector multiplication of 64-bit integers and no count of bits in 128 bits, and perhaps no `fma`.
                let slow = op == Intrinsic::MulInt && lanes == Lanes::I64x2
                    || Lanes::counts_bits(op)
                    || op == Intrinsic::FmaFloat && !self.site.cpu.fma;
                if !same || slow || !lanes.allows(op) || Lanes::compares(op) || Lanes::shifts(op) {
                    return None;
                }
                let rows = self.operands(op, &members);
                let index = self.add(Node::Lanes(op, Vec::new()), values, members);
                let made: Option<Vec<usize>> = rows.iter().map(|row| self.bundle(row, None, depth)).collect();
                self.bundles[index].node = Node::Lanes(op, made?);
                Some(index)
            }
            Op::Phi if self.site.before.is_some() && members.iter().all(|&i| func.op(i) == Op::Phi) => {
                let blocks: Vec<Block> = func.inst_blocks(members[0]).to_vec();
                let index = self.add(Node::Phi(Vec::new()), values, members.clone());
                let mut edges = Vec::new();
                for block in blocks {
                    let from = |&i: &Inst| func.phi_edges(i).find(|&(b, _)| b == block).map(|(_, v)| v);
                    let row: Vec<Value> = members.iter().map(from).collect::<Option<_>>()?;
                    edges.push((block, self.bundle(&row, Some(block), depth)?));
                }
                let complete = members.iter().all(|&i| func.args(i).len() == edges.len());
                self.bundles[index].node = Node::Phi(edges);
                complete.then_some(index)
            }
            _ => None,
        }
    }

    /// The operands of all members, by operand index. Operands of commutative operations are swapped where that makes
    /// their kinds equal.
    fn operands(&self, op: Intrinsic, members: &[Inst]) -> Vec<Vec<Value>> {
        let func = self.site.func;
        let base = |i: Inst| self.site.place(i).map(|place| place.base());
        let kind = |v: Value| self.site.inside(v).map(|i| (std::mem::discriminant(&func.op(i)), base(i)));
        let first = func.args(members[0]);
        let mut rows: Vec<Vec<Value>> = first.iter().map(|&v| vec![v]).collect();
        for &member in &members[1..] {
            let mut args = func.args(member).to_vec();
            if let ([a, b], [x, y]) = (first, &mut args[..])
                && op.is_commutative()
                && (kind(*x), kind(*y)) != (kind(*a), kind(*b))
                && (kind(*y), kind(*x)) == (kind(*a), kind(*b))
            {
                std::mem::swap(x, y);
            }
            rows.iter_mut().zip(args).for_each(|(row, arg)| row.push(arg));
        }
        rows
    }

    /// The lanes with scalar users. `None` if one is used before the vector instruction.
    fn extracts(&self) -> Option<Vec<Extract>> {
        let site = self.site;
        let mut found = Vec::new();
        for (index, bundle) in self.bundles.iter().enumerate() {
            let Some(last) = bundle.last.filter(|_| !matches!(bundle.node, Node::Store(_))) else { continue };
            for (lane, &value) in bundle.values.iter().enumerate() {
                let scalar_uses: Vec<Use> =
                    site.uses.of(value).iter().filter(|one| !self.is_inner(one)).copied().collect();
                if scalar_uses.is_empty() {
                    continue;
                }
                let late = |one: &Use| {
                    let is_phi = site.func.op(one.inst) == Op::Phi;
                    is_phi || site.order.get(&one.inst).is_none_or(|at| *at > site.order[&last])
                };
                if !matches!(bundle.node, Node::Phi(_)) && !scalar_uses.iter().all(late) {
                    return None;
                }
                let in_block = scalar_uses.iter().any(|one| site.order.contains_key(&one.inst));
                found.push(Extract { bundle: index, lane, in_block });
            }
        }
        Some(found)
    }

    /// Whether a use disappears with the scalars: the user is a member of a bundle that uses the value as part of a
    /// vector.
    fn is_inner(&self, one: &Use) -> bool {
        let in_seed = self.seed.is_store && self.seed.members.contains(&one.inst) && one.index == 1;
        let Some(&user) = self.taken.get(&one.inst) else { return in_seed };
        let parts: Vec<usize> = match &self.bundles[user].node {
            Node::Lanes(_, operands) => operands.clone(),
            Node::Phi(edges) => edges.iter().map(|&(_, b)| b).collect(),
            _ => return false,
        };
        let value = self.site.func.args(one.inst)[one.index as usize];
        // A gathered operand uses the scalar itself, even if the scalar is also a lane of another, vector operand.
        let mut holders = parts.iter().filter(|&&p| self.bundles[p].values.contains(&value)).peekable();
        holders.peek().is_some() && holders.all(|&p| !self.bundles[p].members.is_empty())
    }
}
