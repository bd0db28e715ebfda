//! Needs: which roots need a slot at which safepoints.
//!
//! At a safepoint a root is *held* if it is used afterwards (by the function, or by a handler that an exception may reach from
//! here), if a `gc_preserve` holds it, if it is an operand of a foreign call, or if it is an argument word of this very call.
//! A held root *needs* a slot unless it is an argument word, is always rooted, or all members of its refinement are held or
//! follow in turn.
//!
//! ```text
//!   %2 = load(%1; region = immutable)
//!   invoke f()                       held %1, %2    needs %1
//!   invoke g(%1)                     held %2        needs %2: the callee roots %1, and only as long as it likes
//!   invoke h(%2)                     held nothing
//! ```
//!
//! What uses a pointer, and with it its base: every instruction but casts, address arithmetic and `gc_loaded`, which make
//! other pointers from it; φ use on the edge. `pointer_from_objref` is no use. Comparing addresses is one: a dead object's
//! address may be another object's soon.
//!
//! `gc_preserve` holds its operands at every safepoint that its begin dominates and none of its ends does, whether the operands
//! are used or not.
//!
//! Cost: the number of held roots, summed over safepoints, the operands of calls, and the blocks of each preserved region.

use crate::bases::{Bases, Root, class};
use crate::flow::{Flow, is_safepoint};
use crate::ranges::{Ranges, Use};
use crate::refine::Refinements;
use brolga_ir::analysis::DomTree;
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Context, Func, Inst, Op, PtrClass, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap, entity_impl};
use smallvec::SmallVec;

/// A block in which a root needs a slot, and the safepoints between which it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    pub(crate) block: Block,
    pub(crate) first: Inst,
    pub(crate) last: Inst,
}

/// What each root needs.
#[derive(Debug)]
pub(crate) struct Needs {
    /// By root.
    pub(crate) of: Vec<Vec<Need>>,
    /// How many safepoints there are.
    pub(crate) safepoints: usize,
    /// The most roots that need slots at one safepoint.
    pub(crate) most: usize,
}

/// Whether an instruction uses this operand as an object, rather than making another pointer of it.
fn is_use(func: &Func, inst: Inst, operand: usize) -> bool {
    let result_class = || func.result(inst).and_then(|v| class(func.ty(v)));
    match func.op(inst) {
        Op::Copy
        | Op::GcLoaded
        | Op::PointerFromObjref
        | Op::Intrinsic(Intrinsic::Bitcast | Intrinsic::AddPtr | Intrinsic::SubPtr) => false,
        // The children are kept alive by the parent, in which they were stored.
        Op::WriteBarrier => operand == 0,
        Op::Phi | Op::Builtin(Builtin::Ifelse) => result_class() == Some(PtrClass::Tracked),
        _ => true,
    }
}

/// What is demanded: roots that something uses, and what reaches them through φ and `ifelse`. A φ that nothing uses keeps
/// nothing alive.
fn demanded(func: &Func, bases: &Bases) -> Vec<bool> {
    let mut demanded = vec![false; bases.roots.len()];
    let mut work: Vec<Root> = Vec::new();
    for block in func.blocks() {
        for inst in func.block_insts(block).filter(|&i| choice(func, bases, i).is_none()) {
            for (n, &operand) in func.args(inst).iter().enumerate() {
                if let Some(root) = bases.root(operand).filter(|_| is_use(func, inst, n)) {
                    work.push(root);
                }
            }
        }
    }
    while let Some(root) = work.pop() {
        if std::mem::replace(&mut demanded[root as usize], true) {
            continue;
        }
        let made = func.def_inst(bases.roots[root as usize].0);
        if let Some(inst) = made.filter(|&i| choice(func, bases, i).is_some()) {
            work.extend(func.args(inst).iter().filter_map(|&v| bases.root(v)));
        }
    }
    demanded
}

/// The root of a φ or `ifelse`.
fn choice(func: &Func, bases: &Bases, inst: Inst) -> Option<Root> {
    let value = func.result(inst)?;
    let root = bases.root(value)?;
    let chooses = matches!(func.op(inst), Op::Phi | Op::Builtin(Builtin::Ifelse));
    (chooses && bases.roots[root as usize].0 == value).then_some(root)
}

/// The live roots at the borders of blocks.
fn ranges(func: &Func, bases: &Bases, flow: &Flow, demanded: &[bool]) -> Ranges {
    let mut uses: Vec<(Root, Use)> = Vec::new();
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            if choice(func, bases, inst).is_some_and(|root| !demanded[root as usize]) {
                continue;
            }
            let is_phi = func.op(inst) == Op::Phi;
            for (n, &operand) in func.args(inst).iter().enumerate() {
                let Some(root) = bases.root(operand).filter(|_| is_use(func, inst, n)) else { continue };
                if !is_phi {
                    uses.push((root, Use::In(block)));
                    continue;
                }
                uses.push((root, Use::Out(func.inst_blocks(inst)[n])));
                // A handler is entered from the whole region, and finds there what its `enter` would bring.
                if flow.handlers().contains(&block) {
                    uses.push((root, Use::In(block)));
                }
            }
        }
    }
    uses.sort_unstable();
    uses.dedup();
    let mut ranges = Ranges::new(flow);
    for group in uses.chunk_by(|a, b| a.0 == b.0) {
        let root = group[0].0;
        ranges.add(flow, root, bases.roots[root as usize].1, group.iter().map(|&(_, u)| u));
    }
    ranges
}

/// Roots with constant-time insertion, removal and clearing.
#[derive(Default)]
struct Set {
    list: Vec<Root>,
    place: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Set {
    fn contains(&self, root: Root) -> bool {
        self.place[root as usize] != NOWHERE
    }

    fn insert(&mut self, root: Root) {
        if !self.contains(root) {
            self.place[root as usize] = self.list.len() as u32;
            self.list.push(root);
        }
    }

    fn remove(&mut self, root: Root) {
        let place = std::mem::replace(&mut self.place[root as usize], NOWHERE);
        if place != NOWHERE {
            self.list.swap_remove(place as usize);
            if let Some(&moved) = self.list.get(place as usize) {
                self.place[moved as usize] = place;
            }
        }
    }

    fn clear(&mut self) {
        for root in self.list.drain(..) {
            self.place[root as usize] = NOWHERE;
        }
    }
}

/// Where roots are preserved.
#[derive(Default)]
struct Preserved {
    /// By region: what it holds.
    roots: Vec<SmallVec<[Root; 4]>>,
    /// The region that begins at an instruction, or ends there for the rest of its block.
    borders: SecondaryMap<Inst, PackedOption<Region>>,
    /// By block: the regions that last to its end.
    to_the_end: SecondaryMap<Block, Vec<Region>>,
}

/// A region in which roots are preserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region(u32);
entity_impl!(Region);

/// The scan over blocks.
struct Scan<'a> {
    func: &'a Func,
    bases: &'a Bases,
    refinements: &'a Refinements,
    /// See [`demanded`].
    demanded: Vec<bool>,
    /// Used later.
    live: Set,
    /// Preserved, and by root the number of regions that hold it.
    preserved: Set,
    holders: Vec<u32>,
    /// Operands of this safepoint that are held by it; by root the safepoint that they were noted for, and the last one at
    /// which the root was an argument word.
    own: SmallVec<[Root; 8]>,
    own_at: Vec<u32>,
    word_at: Vec<u32>,
    /// By root: the safepoint for which `answer` holds.
    asked: Vec<u32>,
    answer: Vec<bool>,
    stack: Vec<Root>,
    now: u32,
    needs: Needs,
}

impl Needs {
    pub(crate) fn compute(
        func: &Func,
        cx: &Context,
        bases: &Bases,
        refinements: &Refinements,
        flow: &Flow,
        tree: &DomTree,
    ) -> Needs {
        let demanded = demanded(func, bases);
        let ranges = ranges(func, bases, flow, &demanded);
        let count = bases.roots.len();
        let preserved = preserved(func, bases, tree);
        let set = || Set { list: Vec::new(), place: vec![NOWHERE; count] };
        let mut scan = Scan {
            func,
            bases,
            refinements,
            demanded,
            live: set(),
            preserved: set(),
            holders: vec![0; count],
            own: SmallVec::new(),
            own_at: vec![0; count],
            word_at: vec![0; count],
            asked: vec![0; count],
            answer: vec![false; count],
            stack: Vec::new(),
            now: 0,
            needs: Needs { of: vec![Vec::new(); count], safepoints: 0, most: 0 },
        };
        for &block in tree.preorder() {
            scan.block(cx, block, ranges.live_out(block), &preserved);
        }
        scan.needs
    }
}

impl Scan<'_> {
    fn block(&mut self, cx: &Context, block: Block, live_out: &[Root], preserved: &Preserved) {
        self.live.clear();
        live_out.iter().for_each(|&root| self.live.insert(root));
        for &region in &preserved.to_the_end[block] {
            self.hold(&preserved.roots[region.index()]);
        }
        let mut at = self.func.last_inst(block);
        while let Some(inst) = at {
            at = self.func.prev_inst(inst);
            if let Some(region) = preserved.borders[inst].expand() {
                let roots = &preserved.roots[region.index()];
                match self.func.op(inst) {
                    Op::GcPreserveEnd => self.hold(roots),
                    _ => self.let_go(roots),
                }
            }
            for result in self.func.results(inst) {
                if let Some(root) = self.bases.root(result)
                    && self.bases.roots[root as usize].0 == result
                {
                    self.live.remove(root);
                }
            }
            if is_safepoint(self.func, cx, inst) {
                self.safepoint(block, inst);
            }
            let undemanded =
                choice(self.func, self.bases, inst).is_some_and(|root| !self.demanded[root as usize]);
            if undemanded || self.func.op(inst) == Op::Phi {
                continue;
            }
            for (n, &operand) in self.func.args(inst).iter().enumerate() {
                if let Some(root) = self.bases.root(operand).filter(|_| is_use(self.func, inst, n)) {
                    self.live.insert(root);
                }
            }
        }
        // Regions that begin above the block.
        for &root in &self.preserved.list {
            self.holders[root as usize] = 0;
        }
        self.preserved.clear();
    }

    fn hold(&mut self, roots: &[Root]) {
        for &root in roots {
            self.holders[root as usize] += 1;
            self.preserved.insert(root);
        }
    }

    fn let_go(&mut self, roots: &[Root]) {
        for &root in roots {
            self.holders[root as usize] -= 1;
            if self.holders[root as usize] == 0 {
                self.preserved.remove(root);
            }
        }
    }

    fn is_held(&self, root: Root) -> bool {
        self.live.contains(root) || self.preserved.contains(root) || self.own_at[root as usize] == self.now
    }

    /// Whether a root is kept alive by what else is held. Members are made before what they refine, so the questions end.
    fn follows(&mut self, root: Root) -> bool {
        self.stack.push(root);
        while let Some(&at) = self.stack.last() {
            let index = at as usize;
            if self.asked[index] == self.now {
                self.stack.pop();
                continue;
            }
            if self.refinements.is_always_rooted(at) {
                (self.asked[index], self.answer[index]) = (self.now, true);
                continue;
            }
            let members = self.refinements.members(at);
            let mut answer = members.is_some();
            let mut open = None;
            for &member in members.unwrap_or(&[]) {
                if self.is_held(member) {
                    continue;
                }
                if self.asked[member as usize] != self.now {
                    open = Some(member);
                    break;
                }
                answer &= self.answer[member as usize];
            }
            match open {
                Some(member) => self.stack.push(member),
                None => (self.asked[index], self.answer[index]) = (self.now, answer),
            }
        }
        self.answer[root as usize]
    }

    fn safepoint(&mut self, block: Block, inst: Inst) {
        self.now += 1;
        self.needs.safepoints += 1;
        self.own.clear();
        let args: &[Value] = self.func.args(inst);
        // Argument words hold their operands; C functions root nothing.
        let op = self.func.op(inst);
        if matches!(op, Op::CallArgs(_) | Op::ForeignCall(_)) {
            for root in args.iter().filter_map(|&v| self.bases.root(v)) {
                self.own.push(root);
                self.own_at[root as usize] = self.now;
                if matches!(op, Op::CallArgs(_)) {
                    self.word_at[root as usize] = self.now;
                }
            }
        }
        let (live, preserved) = (self.live.list.len(), self.preserved.list.len());
        let mut most = 0;
        for n in 0..live + preserved + self.own.len() {
            let root = if n < live {
                self.live.list[n]
            } else if n < live + preserved {
                self.preserved.list[n - live]
            } else {
                self.own[n - live - preserved]
            };
            if self.word_at[root as usize] == self.now || self.follows(root) {
                continue;
            }
            let needs = &mut self.needs.of[root as usize];
            match needs.last_mut() {
                // The scan goes upwards.
                Some(need) if need.block == block => {
                    most += usize::from(need.first != inst);
                    need.first = inst;
                }
                _ => {
                    needs.push(Need { block, first: inst, last: inst });
                    most += 1;
                }
            }
        }
        self.needs.most = self.needs.most.max(most);
    }
}

/// Where roots are preserved, from each begin through the blocks that it dominates to the first end in each.
fn preserved(func: &Func, bases: &Bases, tree: &DomTree) -> Preserved {
    let mut all = Preserved::default();
    let mut ends: SecondaryMap<Value, Vec<Inst>> = SecondaryMap::new();
    let mut begins = Vec::new();
    for &block in tree.preorder() {
        for inst in func.block_insts(block) {
            match func.op(inst) {
                Op::GcPreserveBegin => begins.push((block, inst)),
                Op::GcPreserveEnd => ends[func.args(inst)[0]].push(inst),
                _ => {}
            }
        }
    }
    // The first end of the region at hand in a block.
    let mut first: SecondaryMap<Block, PackedOption<Inst>> = SecondaryMap::new();
    for (home, begin) in begins {
        let roots: SmallVec<[Root; 4]> = func.args(begin).iter().filter_map(|&v| bases.root(v)).collect();
        let Some(token) = func.result(begin).filter(|_| !roots.is_empty()) else { continue };
        let region = Region(all.roots.len() as u32);
        all.roots.push(roots);
        all.borders[begin] = region.into();
        // In one block the first end counts; the others end nothing.
        for &end in ends[token].iter().rev() {
            if let Some(block) = func.inst_block(end) {
                first[block] = end.into();
            }
        }
        let mut work = vec![home];
        while let Some(block) = work.pop() {
            match first[block].expand() {
                Some(end) => all.borders[end] = region.into(),
                None => {
                    all.to_the_end[block].push(region);
                    work.extend(tree.children(block));
                }
            }
        }
        for &end in &ends[token] {
            if let Some(block) = func.inst_block(end) {
                first[block] = PackedOption::default();
            }
        }
    }
    all
}
