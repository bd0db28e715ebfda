//! φs of objects that are numbers on some paths: a number is boxed at uses of the object.
//!
//! ```text
//! p: %1 :: Float64                          p: object = (none)  bits = %1             kind = 1
//! q: %2 :: Any         a call by dispatch   q: object = %2      bits = what it holds  kind = is it a Float64? 1 : 0
//! t: %3 = φ (p => %1, q => %2)::Any    ==>  t: three φs
//!    (%3 isa Float64), π (%3, Float64)         kind == 1, bits
//!    g(%3)                                     kind == 0 ? object : box of the bits
//! ```
//!
//! A dynamic operator leaves such φs once `union-split` has tested for the usual types: the paths of these make numbers, the
//! path of the call an object, and the next operator tests the type again. So a sum that a loop carries, a condition, and a value between two operators
//! have no box as long as the types are the usual ones; any other value goes through the same code as an object.
//!
//! **Web.** φs that are operands of each other have one form, so values pass from one to the other by moves. Its *members* are the types of the numbers
//! among the operands, at most [`MAX_MEMBERS`].
//!
//! **Invariants.** A value of a member's type has its kind, whether it was a number or a box; so the kind alone decides tests for members, and a value
//! of kind 0 is not of a member's type. The object may always be read: without one, it is a permanent box that stands for
//! "none", because low passes hoist reads of tags above tests. A value with a kind may keep its original box.
//!
//! **Which.** Webs with a number among their operands and a type test among their uses, for which the boxes at the uses cost less than what the boxes of the numbers
//! among the operands and the tests of tags would cost, each weighed by how often its block is entered (`frequency`). So uses in calls for other operands, and after a loop,
//! cost little. The code for boxes is bounded by [`MAX_USES`]. Not: webs with an operand that may be undefined and had to be read (a φ of another web); such a
//! value may only be moved.
//!
//! Cost: a visit to each instruction, if some φ has such operands. Not done: structs; `===`; the kind in the result of a call; uses where earlier tests
//! have excluded the numbers, which make no box.

use super::value::{Leaves, Val};
use super::{Known, Lowering, Step};
use crate::frequency::Frequencies;
use brolga_ir::abi::FormKind;
use brolga_ir::analysis::{Cfg, DomTree, Loops, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Const, Func, Inst, LowType, Op, RuntimeFn, Type, Value};
use rustc_hash::FxHashMap;

/// The most types of numbers in a web: each is a test where an object comes in, and where a box is made.
const MAX_MEMBERS: usize = 4;

/// The most copies and π between a value and the φ that it passes on.
const MAX_STEPS: usize = 16;

/// The cost of a box: an allocation, a store, and what later collections cost.
const BOX: f32 = 12.0;

/// The cost of a test of an object's tag, beyond one of a kind. Several tests of one value load its tag once.
const TEST: f32 = 1.0;

/// The cost of finding the kind of an object that comes in.
const UNPACK: f32 = 3.0;

/// How many times its cost the gain of a web has to be: it takes registers, and boxes of small integers cost less.
const MARGIN: f32 = 1.5;

/// For each number among the operands of a web, whose box would be made there, the most uses that make one, beyond [`FREE_USES`].
const MAX_USES: usize = 3;

/// Uses of a web that do not count for [`MAX_USES`].
const FREE_USES: usize = 8;

/// The common form of φs that are operands of each other.
#[derive(Debug)]
pub(super) struct Web {
    /// The types of numbers; the kind of the first is 1.
    members: Vec<Type>,
    /// The low type of the bits: the common low type of all members, else a word.
    bits: LowType,
}

/// The webs of a function, and which φ belongs to which.
#[derive(Debug, Default)]
pub(super) struct Webs {
    webs: Vec<Web>,
    of: FxHashMap<Value, u32>,
}

/// The leaves of a φ of a web.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixed {
    object: Value,
    bits: Value,
    kind: Value,
    web: u32,
}

/// A φ that may belong to a web, and the kinds of its uses.
struct Candidate {
    phi: Inst,
    value: Value,
    /// The candidate that stands for its web; its own number if it does itself.
    parent: usize,
    tests: usize,
    /// Uses of the object.
    uses: usize,
    /// Operands that are numbers whose box would have to be made.
    numbers: usize,
    /// Instructions saved (`gain`) and added (`cost`) per call of the function.
    gain: f32,
    cost: f32,
}

struct Candidates {
    all: Vec<Candidate>,
    of: FxHashMap<Value, usize>,
}

impl Candidates {
    fn root(&mut self, mut n: usize) -> usize {
        while self.all[n].parent != n {
            let up = self.all[n].parent;
            self.all[n].parent = self.all[up].parent;
            n = self.all[n].parent;
        }
        n
    }
}

impl Lowering<'_> {
    // ----- which φs -----

    /// Finds the webs of the function.
    pub(super) fn find_webs(&mut self, cfg: &Cfg, rpo: &Rpo) {
        let (src, types) = (self.src, self.types);
        let mut found = Candidates { all: Vec::new(), of: FxHashMap::default() };
        let mut has_number = false;
        for &block in rpo.blocks() {
            for phi in src.block_insts(block).take_while(|&i| src.op(i) == Op::Phi) {
                let Some(value) = src.result(phi) else { continue };
                if !self.find_form(src.ty(value)).is_ok_and(|form| form.is_object()) {
                    continue;
                }
                let n = found.all.len();
                found.of.insert(value, n);
                let (tests, uses, numbers) = (0, 0, 0);
                found.all.push(Candidate {
                    phi,
                    value,
                    parent: n,
                    tests,
                    uses,
                    numbers,
                    gain: 0.0,
                    cost: 0.0,
                });
                has_number =
                    has_number || src.args(phi).iter().any(|&v| self.number_form(src.ty(v)).is_some());
            }
        }
        if !has_number {
            return;
        }
        self.count_uses(&mut found, cfg, rpo);
        for n in 0..found.all.len() {
            for &operand in src.args(found.all[n].phi) {
                if let Some(&other) = found.of.get(&operand) {
                    let (a, b) = (found.root(n), found.root(other));
                    found.all[b].parent = a;
                }
            }
        }
        let mut groups: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        let mut order = Vec::new();
        for n in 0..found.all.len() {
            let root = found.root(n);
            let group = groups.entry(root).or_default();
            if group.is_empty() {
                order.push(root);
            }
            group.push(n);
        }
        for root in order {
            let group = &groups[&root];
            let phis = || group.iter().map(|&n| &found.all[n]);
            let sum = |of: fn(&Candidate) -> usize| phis().map(of).sum::<usize>();
            if sum(|phi| phi.tests) == 0
                || sum(|phi| phi.uses) > FREE_USES + MAX_USES * sum(|phi| phi.numbers)
                || phis().map(|phi| MARGIN * phi.cost - phi.gain).sum::<f32>() > 0.0
            {
                continue;
            }
            let operands = || phis().flat_map(|phi| src.args(phi.phi)).copied();
            let mut members: Vec<Type> =
                operands().map(|v| src.ty(v)).filter(|&ty| self.number_form(ty).is_some()).collect();
            members.sort_unstable();
            members.dedup();
            let may_hold = |v: Value| members.iter().any(|&m| !types.is_disjoint(src.ty(v), m));
            let is_read =
                |v: Value| !found.of.contains_key(&v) && !members.contains(&src.ty(v)) && may_hold(v);
            if members.is_empty()
                || members.len() > MAX_MEMBERS
                || operands().any(|v| is_read(v) && may_be_undefined(src, v))
            {
                continue;
            }
            let mut lows = members.iter().filter_map(|&ty| self.number_form(ty));
            let first = lows.next().unwrap_or(LowType::I64);
            let bits = if lows.all(|low| low == first) { first } else { LowType::I64 };
            let number = self.webs.webs.len() as u32;
            self.webs.of.extend(phis().map(|phi| (phi.value, number)));
            self.webs.webs.push(Web { members, bits });
        }
    }

    fn count_uses(&mut self, found: &mut Candidates, cfg: &Cfg, rpo: &Rpo) {
        let src = self.src;
        let loops = Loops::compute(cfg, rpo, &DomTree::compute(cfg));
        let often = Frequencies::of(src, self.types, cfg, rpo, &loops);
        for &block in rpo.blocks() {
            let times = often.of_block(block);
            for inst in src.block_insts(block) {
                let op = src.op(inst);
                for (n, value) in src.args(inst).iter().enumerate() {
                    // An operand that occurs twice has one box.
                    let Some(&number) = found.of.get(value).filter(|_| !src.args(inst)[..n].contains(value))
                    else {
                        continue;
                    };
                    let used = &mut found.all[number];
                    match op {
                        Op::Phi if src.result(inst).is_some_and(|v| found.of.contains_key(&v)) => {}
                        Op::Builtin(Builtin::Isa | Builtin::Typeassert) | Op::Branch => {
                            used.tests += 1;
                            used.gain += TEST * times;
                        }
                        Op::Pi => {}
                        _ => {
                            used.uses += 1;
                            used.cost += BOX * times;
                        }
                    }
                }
            }
        }
        let Candidates { all, of } = found;
        for used in all {
            for (value, &from) in src.args(used.phi).iter().zip(src.inst_blocks(used.phi)) {
                // The box of a constant is permanent.
                if src.as_const(*value).is_some() || of.contains_key(value) || !rpo.is_reachable(from) {
                    continue;
                }
                match self.number_form(src.ty(*value)) {
                    Some(_) => {
                        used.numbers += 1;
                        used.gain += BOX * often.of_block(from);
                    }
                    None => used.cost += UNPACK * often.of_block(from),
                }
            }
        }
    }

    /// The low type of a number that fits in a word.
    fn number_form(&mut self, ty: Type) -> Option<LowType> {
        self.types.primitive(ty)?;
        let form = self.find_form(ty).ok()?;
        match (&form.kind, &form.leaves[..]) {
            (FormKind::Scalar, [leaf]) if !form.is_object() => match leaf.low {
                low @ (LowType::F32 | LowType::F64) => Some(low),
                low => (low.is_int() && low.bits() <= 64).then_some(low),
            },
            _ => None,
        }
    }

    // ----- φs and their operands -----

    /// The low types of the φs that a φ becomes, and its web.
    pub(super) fn mixed_form(&self, value: Value) -> Option<(u32, [Type; 3])> {
        let &web = self.webs.of.get(&value)?;
        Some((web, [Type::TRACKED, Type::low(self.webs.webs[web as usize].bits), Type::I8]))
    }

    /// Notes what a φ has become.
    pub(super) fn set_mixed(&mut self, value: Value, web: u32, leaves: &[Value]) {
        let start = self.pool.len() as u32;
        self.pool.extend_from_slice(leaves);
        self.known[value] = Known::Mixed { start, web };
    }

    /// The leaves of a φ, if it is one of a web.
    pub(super) fn mixed(&self, value: Value) -> Option<Mixed> {
        let Known::Mixed { start, web } = self.known[value] else { return None };
        let &[object, bits, kind] = self.pool.get(start as usize..)?.first_chunk()?;
        Some(Mixed { object, bits, kind, web })
    }

    fn members(&self, web: u32) -> Vec<Type> {
        self.webs.webs[web as usize].members.clone()
    }

    /// The number of the member that a type is.
    fn member(&self, web: u32, ty: Type) -> Option<usize> {
        self.webs.webs[web as usize].members.iter().position(|&m| m == ty)
    }

    /// An operand of a φ of a web, at the end of the block that it comes from.
    pub(super) fn mixed_edge(&mut self, web: u32, value: Value, ty: Type) -> Step<Leaves> {
        if let Some(given) = self.mixed(value).filter(|given| given.web == web) {
            return Ok(Leaves::from_slice(&[given.object, given.bits, given.kind]));
        }
        let val = self.val(value)?;
        if let (Some(n), &[leaf]) = (self.member(web, val.ty), &val.leaves[..]) {
            let object = self.no_object();
            return Ok(self.packed(web, object, Some((n, leaf))));
        }
        let known = val.ty;
        let object = self.convert(val, ty)?;
        let object = self.object(&object)?;
        let members = self.members(web);
        let mut join = self.join();
        for (n, &member) in members.iter().enumerate() {
            if self.types.is_disjoint(known, member) {
                continue;
            }
            let is = self.object_is_a(object, known, member)?;
            let other = self.split(is);
            let held = self.unbox(object, member)?;
            if let &[leaf] = &held.leaves[..] {
                let leaves = self.packed(web, object, Some((n, leaf)));
                self.leave_to(&mut join, leaves);
            }
            self.continue_in(other);
        }
        let leaves = self.packed(web, object, None);
        self.leave_to(&mut join, leaves);
        Ok(self.meet(join))
    }

    fn packed(&mut self, web: u32, object: Value, number: Option<(usize, Value)>) -> Leaves {
        let low = self.webs.webs[web as usize].bits;
        let (bits, kind) = match number {
            Some((n, leaf)) if self.low(leaf) == low => (leaf, n + 1),
            Some((n, leaf)) => {
                let bits = self.bits_of(leaf);
                (self.resize(bits, low), n + 1)
            }
            None => (self.int(low, 0), 0),
        };
        let kind = self.int(LowType::I8, kind as u128);
        Leaves::from_slice(&[object, bits, kind])
    }

    /// The permanent box that stands for "none".
    fn no_object(&mut self) -> Value {
        self.permanent(Address::Boxed(Type::INT64, 0))
    }

    // ----- uses -----

    fn has_kind(&mut self, mixed: Mixed, kind: usize) -> Value {
        let kind = self.int(LowType::I8, kind as u128);
        self.equal(mixed.kind, kind)
    }

    /// The number that a value of the web holds, if it is of this member.
    fn unpacked(&mut self, mixed: Mixed, n: usize) -> Step<Val> {
        let ty = self.members(mixed.web)[n];
        let low = self.number_form(ty).ok_or_else(|| self.bad_operands())?;
        let leaf = match LowType::int(low.bits()) {
            Some(int) if self.low(mixed.bits) != low => {
                let bits = self.resize(mixed.bits, int);
                self.bitcast(bits, low)
            }
            _ => mixed.bits,
        };
        Ok(Val::scalar(ty, leaf))
    }

    /// The value as an object.
    pub(super) fn boxed_mixed(&mut self, mixed: Mixed, ty: Type) -> Step<Val> {
        let members = self.members(mixed.web);
        let (none, is_object) = (self.no_object(), self.has_kind(mixed, 0));
        let is_none = self.equal(mixed.object, none);
        let has_box = self.not(is_none);
        let holds = self.binary(Intrinsic::OrInt, is_object, has_box, LowType::I8);
        let mut join = self.join();
        let mut other = self.split(holds);
        self.leave_to(&mut join, Leaves::from_slice(&[mixed.object]));
        for n in 0..members.len() {
            self.continue_in(other);
            let is_last = n + 1 == members.len();
            let is = self.has_kind(mixed, n + 1);
            if !is_last {
                other = self.split(is);
            }
            let number = self.unpacked(mixed, n)?;
            let object = self.object(&number)?;
            self.leave_to(&mut join, Leaves::from_slice(&[object]));
        }
        let merged = self.meet(join);
        let object = merged.first().copied().ok_or_else(|| self.bad_operands())?;
        Ok(Val::scalar(ty, object))
    }

    /// Whether a value, declared to be of the type `known`, is of another.
    pub(super) fn mixed_is_a(&mut self, mixed: Mixed, known: Type, ty: Type) -> Step<Value> {
        let members = self.members(mixed.web);
        let mut any = self.truth(false);
        for (n, &member) in members.iter().enumerate() {
            if self.types.is_subtype(member, ty) {
                let is = self.has_kind(mixed, n + 1);
                any = match self.out.as_bits(any) {
                    Some(_) => is,
                    None => self.binary(Intrinsic::OrInt, any, is, LowType::I8),
                };
            }
        }
        if members.contains(&ty) {
            return Ok(any);
        }
        let is_object = self.has_kind(mixed, 0);
        let mut join = self.join();
        let other = self.split(is_object);
        let is = self.object_is_a(mixed.object, known, ty)?;
        self.leave_to(&mut join, Leaves::from_slice(&[is]));
        self.continue_in(other);
        self.leave_to(&mut join, Leaves::from_slice(&[any]));
        let merged = self.meet(join);
        merged.first().copied().ok_or_else(|| self.bad_operands())
    }

    /// A value, declared to be of the type `known`, as a type that it is proven to be of, without a box; `None` if that type
    /// includes both members and other types.
    pub(super) fn mixed_as(&mut self, mixed: Mixed, known: Type, ty: Type) -> Step<Option<Val>> {
        if let Some(n) = self.member(mixed.web, ty) {
            return self.unpacked(mixed, n).map(Some);
        }
        let members = self.members(mixed.web);
        if !members.iter().all(|&m| self.types.is_disjoint(m, ty)) {
            return Ok(None);
        }
        self.convert(Val::scalar(known, mixed.object), ty).map(Some)
    }

    /// The value as the member that it has to be, or a `TypeError` in the name of `asks`; `None` if the type is not a
    /// member.
    pub(super) fn mixed_asserted(
        &mut self,
        asks: &str,
        mixed: Mixed,
        known: Type,
        ty: Type,
    ) -> Step<Option<Val>> {
        let Some(n) = self.member(mixed.web, ty) else { return Ok(None) };
        let is = self.has_kind(mixed, n + 1);
        let bad = self.not(is);
        self.throw_if_with(bad, |lowering| {
            let got = lowering.boxed_mixed(mixed, known)?;
            let got = lowering.object(&got)?;
            let asks = lowering.symbol(lowering.cx.names.intern(asks));
            let expected = lowering.address(Address::Type(ty));
            lowering.throw(RuntimeFn::ThrowTypeAssert, &[asks, expected, got]);
            Ok(())
        })?;
        self.unpacked(mixed, n).map(Some)
    }
}

/// Whether a value may be undefined on every path to here: such a value may be moved, but not read.
fn may_be_undefined(src: &Func, mut value: Value) -> bool {
    for _ in 0..MAX_STEPS {
        match src.def_inst(value).map(|def| (src.op(def), src.args(def))) {
            Some((Op::Copy | Op::Pi, &[of])) => value = of,
            Some((Op::Phi | Op::PhiC, _)) => return true,
            _ => return matches!(src.as_const(value), Some(Const::Undef(_))),
        }
    }
    true
}
