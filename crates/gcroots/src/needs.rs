//! Needs: which roots need a slot at which safepoints.
//!
//! At a safepoint a root is *held* if it is used afterwards (by the function, or by a handler reachable by an
//! exception from here), if a `gc_preserve` holds it, if it is an operand of a foreign call, or if it is an
//! argument word of this call. A held root *needs* a slot unless it is an argument word, is always rooted, or
//! each member of its refinement is held or itself kept alive by its refinement.
//!
//! ```text
//!   %2 = load(%1; region = immutable)
//!   invoke f()                       held %1, %2    needs %1
//!   invoke g(%1)                     held %2        needs %2: the callee roots %1 for as long as it needs it
//!   invoke h(%2)                     held –
//! ```
//!
//! A pointer, and with it its base, is used by every instruction except casts, address arithmetic and
//! `gc_loaded`, which compute other pointers from it; a φ uses its operand on the edge. `pointer_from_objref`
//! is not a use. A comparison of addresses is one: the address of a dead object may soon be reused.
//!
//! `gc_preserve` holds its operands at every safepoint that is dominated by its begin and by none of its
//! ends, whether or not the operands are used.
//!
//! **Algorithm.** Each block is walked upwards. Few held values change from one safepoint to the next, so the
//! needs are not recomputed at each: a root counts the reasons for which it is held and its missing members,
//! and when it starts or stops needing a slot, the safepoints in between are recorded as one stretch.
//!
//! ```text
//!   member:  held ──► released    notifies the roots that it refines: they miss one more member
//!   root:    held, none missing   needs nothing
//!            held, one missing    needs a slot from here upwards, until it is not held or none is missing
//! ```
//!
//! Cost: the operands of instructions; the values that are live or preserved at block boundaries; and the
//! notifications of refinements. The last two can be quadratic, if all objects of a function are live to its
//! end across as many blocks. Then, beyond a [budget](crate::Options::budget), the result is `None`, and
//! [each root gets its own word](crate::slots::Slots::coarse), which does not need it.

use crate::bases::{Bases, Root};
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

/// A block in which a root needs a slot, and the first and last safepoint at which it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    pub(crate) block: Block,
    pub(crate) first: Inst,
    pub(crate) last: Inst,
}

/// The needs of each root.
#[derive(Debug)]
pub(crate) struct Needs {
    /// By root.
    pub(crate) of: Vec<Vec<Need>>,
    /// The maximum number of roots that need slots at one safepoint.
    pub(crate) most: usize,
}

/// Whether an instruction uses this operand as an object, rather than computing another pointer from it.
fn is_use(func: &Func, inst: Inst, operand: usize) -> bool {
    let result_class = || func.result(inst).and_then(|v| func.ty(v).ptr_class());
    match func.op(inst) {
        Op::Copy
        | Op::GcLoaded
        | Op::PointerFromObjref
        | Op::Intrinsic(Intrinsic::Bitcast | Intrinsic::AddPtr | Intrinsic::SubPtr) => false,
        // The children are kept alive by the parent, into which they were stored.
        Op::WriteBarrier => operand == 0,
        Op::Phi | Op::Builtin(Builtin::Ifelse) => result_class() == Some(PtrClass::Tracked),
        _ => true,
    }
}

/// The demanded values: roots with a use, and the values that reach such a use through φ and `ifelse`. An
/// unused φ keeps nothing alive.
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

/// The live roots at block boundaries; `None` if they are too many.
fn ranges(func: &Func, bases: &Bases, flow: &Flow, demanded: &[bool], budget: usize) -> Option<Ranges> {
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
                // A handler can be entered from anywhere in the region, and finds the operands of the edge
                // from its `enter`.
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
        if ranges.entries > budget {
            return None;
        }
    }
    Some(ranges)
}

/// A set of numbers with insertion and removal in constant time.
pub(crate) struct Set {
    list: Vec<u32>,
    place: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Set {
    /// For numbers below `count`.
    pub(crate) fn new(count: usize) -> Set {
        Set { list: Vec::new(), place: vec![NOWHERE; count] }
    }

    /// In no particular order.
    pub(crate) fn list(&self) -> &[u32] {
        &self.list
    }

    /// Returns whether it was new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let is_new = !self.contains(number);
        if is_new {
            self.place[number as usize] = self.list.len() as u32;
            self.list.push(number);
        }
        is_new
    }

    /// Returns whether it was present.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let place = std::mem::replace(&mut self.place[number as usize], NOWHERE);
        if place == NOWHERE {
            return false;
        }
        self.list.swap_remove(place as usize);
        if let Some(&moved) = self.list.get(place as usize) {
            self.place[moved as usize] = place;
        }
        true
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.place[number as usize] != NOWHERE
    }

    pub(crate) fn clear(&mut self) {
        for number in self.list.drain(..) {
            self.place[number as usize] = NOWHERE;
        }
    }
}

/// Where roots are preserved.
#[derive(Default)]
struct Preserved {
    /// By region: its preserved roots.
    roots: Vec<SmallVec<[Root; 4]>>,
    /// The region that begins at an instruction, or that ends there for the rest of its block.
    borders: SecondaryMap<Inst, PackedOption<Region>>,
    /// By block: the regions that extend to its end.
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
    /// By root: the roots whose refinement has it as a member.
    refined: Vec<SmallVec<[Root; 2]>>,
    /// Used later in the block or after it.
    live: Set,
    /// The preserved roots, and by root the number of regions that hold it.
    preserved: Set,
    regions: Vec<u32>,
    /// By root: the number of reasons for which it is held: a later use, a preserved region, an operand of
    /// the current safepoint.
    reasons: Vec<u32>,
    /// By root: the number of its members that are neither held nor kept alive by their own refinement.
    missing: Vec<u32>,
    /// By root that needs a slot: the number of safepoints seen in the block when the need began.
    since: Vec<u32>,
    /// The number of roots that need slots.
    needy: usize,
    /// The safepoints of the block, from the bottom up.
    safepoints: Vec<Inst>,
    /// The operands held by the current safepoint.
    own: Vec<Root>,
    work: Vec<(Root, bool)>,
    left: usize,
    block: Block,
    needs: Needs,
}

impl Needs {
    /// `None` if the cost would exceed the budget.
    pub(crate) fn compute(
        func: &Func,
        cx: &Context,
        bases: &Bases,
        refinements: &Refinements,
        flow: &Flow,
        tree: &DomTree,
        budget: usize,
    ) -> Option<Needs> {
        let demanded = demanded(func, bases);
        let ranges = ranges(func, bases, flow, &demanded, budget)?;
        let count = bases.roots.len();
        let preserved = preserved(func, bases, tree, budget)?;
        let mut scan = Scan {
            func,
            bases,
            refinements,
            demanded,
            refined: vec![SmallVec::new(); count],
            live: Set::new(count),
            preserved: Set::new(count),
            regions: vec![0; count],
            reasons: vec![0; count],
            missing: vec![0; count],
            since: vec![0; count],
            needy: 0,
            safepoints: Vec::new(),
            own: Vec::new(),
            work: Vec::new(),
            left: budget,
            block: *tree.preorder().first()?,
            needs: Needs { of: vec![Vec::new(); count], most: 0 },
        };
        for root in 0..count as Root {
            for &member in refinements.members(root).unwrap_or(&[]) {
                if !refinements.is_always_rooted(root) && !refinements.is_always_rooted(member) {
                    scan.missing[root as usize] += 1;
                    scan.refined[member as usize].push(root);
                }
            }
        }
        for &block in tree.preorder() {
            scan.block(cx, block, ranges.live_out(block), &preserved);
            if scan.left == 0 {
                return None;
            }
        }
        Some(scan.needs)
    }
}

impl Scan<'_> {
    fn block(&mut self, cx: &Context, block: Block, live_out: &[Root], preserved: &Preserved) {
        self.block = block;
        self.safepoints.clear();
        live_out.iter().for_each(|&root| self.used(root));
        for &region in &preserved.to_the_end[block] {
            self.preserve(&preserved.roots[region.index()]);
        }
        let mut at = self.func.last_inst(block);
        while let Some(inst) = at.filter(|_| self.left > 0) {
            at = self.func.prev_inst(inst);
            if let Some(region) = preserved.borders[inst].expand() {
                let roots = &preserved.roots[region.index()];
                match self.func.op(inst) {
                    Op::GcPreserveEnd => self.preserve(roots),
                    _ => self.stop_preserving(roots),
                }
            }
            for result in self.func.results(inst) {
                if let Some(root) = self.bases.root(result)
                    && self.bases.roots[root as usize].0 == result
                    && self.live.remove(root)
                {
                    self.let_go(root);
                }
            }
            if is_safepoint(self.func, cx, inst) {
                self.safepoint(inst);
            }
            let undemanded =
                choice(self.func, self.bases, inst).is_some_and(|root| !self.demanded[root as usize]);
            if undemanded || self.func.op(inst) == Op::Phi {
                continue;
            }
            for (n, &operand) in self.func.args(inst).iter().enumerate() {
                if let Some(root) = self.bases.root(operand).filter(|_| is_use(self.func, inst, n)) {
                    self.used(root);
                }
            }
        }
        // Clears the state at the head of the block: live-in roots, and regions that are still open.
        while let Some(&root) = self.live.list().last() {
            self.live.remove(root);
            self.let_go(root);
        }
        while let Some(&root) = self.preserved.list().last() {
            self.regions[root as usize] = 0;
            self.preserved.remove(root);
            self.let_go(root);
        }
    }

    fn used(&mut self, root: Root) {
        if self.live.insert(root) {
            self.hold(root);
        }
    }

    fn preserve(&mut self, roots: &[Root]) {
        for &root in roots {
            self.regions[root as usize] += 1;
            if self.preserved.insert(root) {
                self.hold(root);
            }
        }
    }

    fn stop_preserving(&mut self, roots: &[Root]) {
        for &root in roots {
            self.regions[root as usize] -= 1;
            if self.regions[root as usize] == 0 && self.preserved.remove(root) {
                self.let_go(root);
            }
        }
    }

    fn is_held(&self, root: Root) -> bool {
        self.reasons[root as usize] > 0
    }

    /// Whether a root is kept alive by other held roots.
    fn follows(&self, root: Root) -> bool {
        let refined = self.refinements.members(root).is_some() && self.missing[root as usize] == 0;
        refined || self.refinements.is_always_rooted(root)
    }

    fn hold(&mut self, root: Root) {
        self.reasons[root as usize] += 1;
        if self.reasons[root as usize] == 1 && !self.follows(root) {
            self.begin(root);
            self.tell(root, true);
        }
    }

    fn let_go(&mut self, root: Root) {
        self.reasons[root as usize] -= 1;
        if self.reasons[root as usize] == 0 && !self.follows(root) {
            self.end(root);
            self.tell(root, false);
        }
    }

    /// Notifies the roots refined by this one that it is, or is no longer, kept alive. Members precede what
    /// they refine, so this terminates.
    fn tell(&mut self, root: Root, kept: bool) {
        self.work.push((root, kept));
        while let Some((member, kept)) = self.work.pop() {
            self.left = self.left.saturating_sub(self.refined[member as usize].len());
            for n in 0..self.refined[member as usize].len() {
                let user = self.refined[member as usize][n];
                let followed = self.follows(user);
                match kept {
                    true => self.missing[user as usize] -= 1,
                    false => self.missing[user as usize] += 1,
                }
                match (followed, self.follows(user)) {
                    (false, true) if self.is_held(user) => self.end(user),
                    (true, false) if self.is_held(user) => self.begin(user),
                    (before, now) if before != now => self.work.push((user, now)),
                    _ => {}
                }
            }
        }
    }

    /// From here upwards the root needs a slot.
    fn begin(&mut self, root: Root) {
        self.since[root as usize] = self.safepoints.len() as u32;
        self.needy += 1;
    }

    /// From here upwards it does not: records the safepoints at which it did.
    fn end(&mut self, root: Root) {
        self.needy -= 1;
        let seen = &self.safepoints[self.since[root as usize] as usize..];
        let (Some(&last), Some(&first)) = (seen.first(), seen.last()) else { return };
        let needs = &mut self.needs.of[root as usize];
        match needs.last_mut() {
            Some(need) if need.block == self.block => need.first = first,
            _ => needs.push(Need { block: self.block, first, last }),
        }
    }

    fn safepoint(&mut self, inst: Inst) {
        let op = self.func.op(inst);
        let args: &[Value] = self.func.args(inst);
        // Argument words hold their operands; C functions do not root theirs.
        if matches!(op, Op::CallArgs(_) | Op::ForeignCall(_)) {
            self.own.extend(args.iter().filter_map(|&v| self.bases.root(v)));
            self.own.sort_unstable();
            self.own.dedup();
        }
        for n in 0..self.own.len() {
            self.hold(self.own[n]);
        }
        // A word keeps the object alive as well as a slot does.
        let words: SmallVec<[Root; 8]> = match op {
            Op::CallArgs(_) => self.own.iter().copied().filter(|&root| !self.follows(root)).collect(),
            _ => SmallVec::new(),
        };
        words.iter().for_each(|&root| self.end(root));
        self.needs.most = self.needs.most.max(self.needy);
        self.safepoints.push(inst);
        words.iter().for_each(|&root| self.begin(root));
        while let Some(root) = self.own.pop() {
            self.let_go(root);
        }
    }
}

/// Where roots are preserved: from each begin, through the blocks that it dominates, to the first end in
/// each; `None` if these are too many.
fn preserved(func: &Func, bases: &Bases, tree: &DomTree, budget: usize) -> Option<Preserved> {
    let mut all = Preserved::default();
    let mut blocks = 0;
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
    // The first end of the current region in each block.
    let mut first: SecondaryMap<Block, PackedOption<Inst>> = SecondaryMap::new();
    for (home, begin) in begins {
        let roots: SmallVec<[Root; 4]> = func.args(begin).iter().filter_map(|&v| bases.root(v)).collect();
        let Some(token) = func.result(begin).filter(|_| !roots.is_empty()) else { continue };
        let region = Region(all.roots.len() as u32);
        all.roots.push(roots);
        all.borders[begin] = region.into();
        // Only the first end in a block counts; the others end nothing.
        for &end in ends[token].iter().rev() {
            if let Some(block) = func.inst_block(end) {
                first[block] = end.into();
            }
        }
        let mut work = vec![home];
        while let Some(block) = work.pop() {
            blocks += 1;
            if blocks > budget {
                return None;
            }
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
    Some(all)
}
