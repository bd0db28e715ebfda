//! Moves loop-invariant computations before the loop.
//!
//! ```text
//! p: …                              p: …  %3 = mul_int(n, 8)
//! h: %2 = φ (p => 0, l => %7)       h: %2 = φ (p => 0, l => %7)
//!    %3 = mul_int(n, 8)        ==>
//!    %4 = add_int(%2, %3)              %4 = add_int(%2, %3)
//! ```
//!
//! An instruction goes to the preheader of the outermost loop for which all of these hold:
//!
//! | condition | because |
//! |---|---|
//! | its operands are made outside of the loop | |
//! | nothing in the loop writes memory that it may read (`alias`), and nothing is a fence | it would read another value |
//! | it is not an atomic load | a loop may wait for another thread to write there |
//! | it may be executed speculatively (`effects(inst).may_be_hoisted()`), it reads the header of a *proven* object, or its block is *certain* | a loop may run no iteration, and a branch may guard an address |
//! | no operand may be undefined, or its block is certain | an undefined value may be passed on, but not computed with |
//!
//! A block is certain if the first iteration always reaches it: it is on the straight line that starts at the head, with
//! nothing before it that may throw or not end. After `rotate` that is the body of a loop up to its first branch.
//!
//! A tracked value is a proven `Array` if it was allocated as one, or where an instruction that is executed before the preheader's end loads from its
//! header, and a proven `Memory` where one loads its length. Then the words of every such object may be loaded: the address, the `Memory` and the first
//! dimension of an array, with the dimensions before one that is loaded; the length and the address of a memory. So their loads leave a loop even from
//! after a check.
//!
//! Blocks are visited in reverse postorder, so operands have moved before an instruction is visited, and chains move at once.
//!
//! Cost: the effects of each instruction in a loop, and a walk up the nest for each that moves. At most [`MAX_HOISTED`]
//! values are moved out of one loop: each occupies a register through all of it, and a loop without free registers
//! reloads spilled values instead of computing them. A load is compared with at most [`MAX_WRITERS`] instructions of a loop that write memory of its kind.
//!
//! Breaks the uses. Not done: instructions that may throw; stores; loads from addresses that are known to be valid for another reason.

use crate::alias::Aliases;
use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use crate::undefined::MaybeUndefined;
use brolga_ir::analysis::{Cfg, DomTree, Loop, Loops, Rpo};
use brolga_ir::effects::{Effects, Regions, effects};
use brolga_ir::op::{Access, Region};
use brolga_ir::{Block, Func, Inst, Op, Type, Types, Value};
use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) const PASS: Pass = Pass::new("licm", PassLevel::Low, run)
    .needs(&[Fact::Cfg, Fact::DomTree, Fact::Loops])
    .breaks(&[Fact::Uses]);

/// Twice the registers of a processor: many moved values are only used by other moved instructions.
const MAX_HOISTED: u32 = 32;

/// The offset of the first dimension in an array's header.
const FIRST_DIMENSION: i32 = 16;

/// In a loop with more writers, no load is hoisted from a kind of memory that is written.
const MAX_WRITERS: usize = 48;

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let (cfg, rpo, loops) = (cx.facts.cfg(), cx.facts.rpo(), cx.facts.loops());
    if loops.is_empty() {
        return Changed::No;
    }
    let tree = cx.facts.domtree();
    let mut facts = LoopFacts::of(func, cx.types(), cfg, rpo, loops);
    let mut hoisted: PrimaryMap<Loop, u32> = loops.iter().map(|_| 0).collect();
    'blocks: for &block in rpo.blocks() {
        let Some(innermost) = loops.loop_of(block) else { continue };
        // The outermost loop in which the next instruction is certain to be executed.
        let mut certain = facts.certain[block];
        let mut next = func.first_inst(block);
        while let Some(inst) = next {
            next = func.next_inst(inst);
            let site = Site { inst, effects: effects(func, cx.types(), inst), innermost, certain };
            match facts.target(func, cx.types(), cfg, tree, loops, &site) {
                Some((l, preheader)) if hoisted[l] < MAX_HOISTED => {
                    if !cx.spend(if site.effects.reads.is_empty() { "hoisted" } else { "hoisted loads" }) {
                        break 'blocks;
                    }
                    if let Some(end) = func.terminator(preheader) {
                        hoisted[l] += 1;
                        func.remove_inst(inst);
                        func.insert_before(inst, end);
                        facts.note_proof(func, inst, preheader);
                    }
                }
                _ if returns(&site.effects) => {}
                _ => certain = None,
            }
        }
    }
    cx.changed()
}

/// An instruction in a loop.
struct Site {
    inst: Inst,
    effects: Effects,
    innermost: Loop,
    /// The outermost loop whose first iteration always executes it.
    certain: Option<Loop>,
}

fn returns(effects: &Effects) -> bool {
    effects.nothrow && effects.terminates
}

/// Facts about loops as a whole.
struct LoopFacts {
    memory: PrimaryMap<Loop, Memory>,
    aliases: Aliases,
    /// The writers of memory in a loop and those inside it; `None` if there are too many.
    writers: PrimaryMap<Loop, Option<Vec<Inst>>>,
    /// By block: the outermost loop whose first iteration always gets to its start.
    certain: SecondaryMap<Block, Option<Loop>>,
    undefined: MaybeUndefined,
    /// By object and kind.
    proofs: FxHashMap<(Value, Kind), Proofs>,
}

/// The blocks that load from the header of an object, each with the offset of the last word that is loaded.
type Proofs = SmallVec<[(Block, i32); 4]>;

/// Knowledge about an object from a load of its header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Array,
    Memory,
}

/// The memory effects of a loop.
#[derive(Clone, Copy, Default)]
struct Memory {
    writes: Regions,
    fence: bool,
}

impl LoopFacts {
    fn of(func: &Func, types: &Types, cfg: &Cfg, rpo: &Rpo, loops: &Loops) -> LoopFacts {
        let mut memory: PrimaryMap<Loop, Memory> = loops.iter().map(|_| Memory::default()).collect();
        let mut stops = EntitySet::with_capacity(cfg.block_count());
        let mut writers: PrimaryMap<Loop, Option<Vec<Inst>>> =
            loops.iter().map(|_| Some(Vec::new())).collect();
        for &block in rpo.blocks() {
            let Some(l) = loops.loop_of(block) else { continue };
            for inst in func.block_insts(block) {
                let effects = effects(func, types, inst);
                memory[l].writes = memory[l].writes | effects.writes;
                memory[l].fence |= effects.fence;
                if !effects.writes.is_empty() {
                    add_writers(&mut writers[l], Some(&[inst]));
                }
                if !returns(&effects) {
                    stops.insert(block);
                }
            }
        }
        // A loop comes before those inside it.
        for l in loops.iter().rev() {
            if let Some(parent) = loops.parent(l) {
                let Memory { writes, fence } = memory[l];
                memory[parent].writes = memory[parent].writes | writes;
                memory[parent].fence |= fence;
                let inner = writers[l].take();
                add_writers(&mut writers[parent], inner.as_deref());
                writers[l] = inner;
            }
        }
        let mut certain = SecondaryMap::with_capacity(cfg.block_count());
        // Outer loops come last, so that they overwrite what their inner loops noted.
        for l in loops.iter().rev() {
            let mut at = loops.header(l);
            // A line that comes back to itself is a loop without an exit.
            while certain[at] != Some(l) {
                certain[at] = Some(l);
                match *cfg.succs(at) {
                    [next] if loops.contains(l, next) && !stops.contains(at) => at = next,
                    _ => break,
                }
            }
        }
        let undefined = MaybeUndefined::of(func, cfg, rpo);
        let mut facts = LoopFacts {
            memory,
            aliases: Aliases::of(func, types, rpo),
            writers,
            certain,
            undefined,
            proofs: FxHashMap::default(),
        };
        for &block in rpo.blocks() {
            for inst in func.block_insts(block) {
                facts.note_proof(func, inst, block);
            }
        }
        facts
    }

    /// Records what a load that is now in a block proves about its object.
    fn note_proof(&mut self, func: &Func, inst: Inst, block: Block) {
        let Some((object, access)) = object_load(func, inst) else { return };
        let kind = match access.region {
            Region::Header | Region::Size => Kind::Array,
            Region::Length => Kind::Memory,
            _ => return,
        };
        let blocks = self.proofs.entry((object, kind)).or_default();
        match blocks.iter_mut().find(|(known, _)| *known == block) {
            Some((_, last)) => *last = (*last).max(access.offset),
            None => blocks.push((block, access.offset)),
        }
    }

    /// Whether a load reads a word that its object is known to have at the end of a block.
    fn is_proven(&self, func: &Func, types: &Types, tree: &DomTree, inst: Inst, block: Block) -> bool {
        let Some((object, access)) = object_load(func, inst) else { return false };
        let made = func.def_inst(object).map(|def| func.op(def));
        if let (Region::Header | Region::Size, Some(Op::Alloc(ty))) = (access.region, made)
            && let Some((_, dims)) = types.array_parts(ty)
        {
            // The address, the `Memory`, the dimensions.
            return (0..=8 + 8 * i64::from(dims)).contains(&i64::from(access.offset));
        }
        let kind = match (access.region, access.offset) {
            (Region::Header | Region::Size, 0..) => Kind::Array,
            (Region::Length, 0) | (Region::Immutable, 8) => Kind::Memory,
            _ => return false,
        };
        let proofs = self.proofs.get(&(object, kind));
        // Every array has a first dimension, and all before one that it has.
        let reaches = |last: i32| kind == Kind::Memory || access.offset <= last.max(FIRST_DIMENSION);
        proofs.is_some_and(|blocks| {
            blocks.iter().any(|&(proof, last)| reaches(last) && tree.dominates(proof, block))
        })
    }

    /// Whether a loop may write where an otherwise invariant load reads. The address does not change in the loop, so a
    /// location apart from it in one iteration is apart in all.
    fn may_write(&self, func: &Func, types: &Types, l: Loop, load: Inst) -> bool {
        let Some(at) = self.aliases.access(func, types, load) else { return true };
        let Some(writers) = &self.writers[l] else { return true };
        writers
            .iter()
            .any(|&writer| self.aliases.may_write(func, types, writer, &effects(func, types, writer), &at))
    }

    /// The outermost loop that the instruction can leave, with its preheader.
    fn target(
        &self,
        func: &Func,
        types: &Types,
        cfg: &Cfg,
        tree: &DomTree,
        loops: &Loops,
        site: &Site,
    ) -> Option<(Loop, Block)> {
        let &Site { inst, ref effects, innermost, certain } = site;
        // An allocation makes another object in each iteration.
        let movable = effects.is_removable() && !effects.pinned && !effects.fence && !effects.may_safepoint;
        let stays = matches!(func.op(inst), Op::Copy | Op::AtomicLoad(_));
        if !movable || stays || func.results(inst).len() == 0 {
            return None;
        }
        let anywhere = effects.noub && !func.args(inst).iter().any(|&v| self.undefined.has(func, v));
        let mut found = None;
        let mut at = Some(innermost);
        while let Some(l) = at {
            let varies = |&v: &Value| {
                func.def_inst(v).and_then(|def| func.inst_block(def)).is_some_and(|b| loops.contains(l, b))
            };
            let memory = &self.memory[l];
            let preheader = loops.preheader(cfg, l);
            let proven = || preheader.is_some_and(|block| self.is_proven(func, types, tree, inst, block));
            let stays = func.args(inst).iter().any(varies)
                || (!effects.reads.is_empty()
                    && (memory.fence
                        || memory.writes.overlaps(effects.reads) && self.may_write(func, types, l, inst)))
                || !(anywhere || certain.is_some_and(|outer| loops.contains_loop(outer, l)) || proven());
            if stays {
                break;
            }
            found = preheader.map(|preheader| (l, preheader)).or(found);
            at = loops.parent(l);
        }
        found
    }
}

/// Adds writers to a loop's writers.
fn add_writers(to: &mut Option<Vec<Inst>>, more: Option<&[Inst]>) {
    match (to.as_mut(), more) {
        (Some(known), Some(more)) if known.len() + more.len() <= MAX_WRITERS => known.extend_from_slice(more),
        _ => *to = None,
    }
}

/// The tracked object that a load reads from, and how.
fn object_load(func: &Func, inst: Inst) -> Option<(Value, Access)> {
    let (Op::Load(access), &[object]) = (func.op(inst), func.args(inst)) else { return None };
    (func.ty(object) == Type::TRACKED).then_some((object, access))
}
