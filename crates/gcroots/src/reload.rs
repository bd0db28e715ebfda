//! For heaps that move objects: objects that are used after a safepoint are loaded again.
//!
//! ```text
//!   1 ─ %1 = alloc(T)                    1 ─ %1 = alloc(T)
//!       invoke f()                           store slot, %1
//!       %2 = add_ptr(%1, 8)          ==>     invoke f()
//!       store %2, 5                          %3 = load slot; %4 = add_ptr(%3, 8)
//!       return %1                            store %4, 5
//!                                            return %3
//! ```
//!
//! Every object that is used beyond its *stretch*, the part of its block up to the next safepoint, gets a
//! tracked slot: it is stored at its definition, and loaded before its first use in each other stretch. Then
//! only slots, whose words the collector finds and rewrites, are live across a safepoint; placement, which
//! runs next, roots the rest: the operands of a safepoint itself. Casts and address arithmetic of an object
//! are recomputed from its new address.
//!
//! **Unmoved.** Elements of a `Memory` and bytes of a `String` do not move, by contract with the heap, so
//! pointers of the class *loaded* are unchanged, and their object is kept alive as usual.
//!
//! **Refused**, with the instruction at fault, because they cannot be recomputed: φ and `ifelse` of derived
//! pointers that are used beyond their stretch; a handler's φ of objects or addresses, whose operand was
//! chosen where the region was entered; and *addresses*. An address is a result of `pointer_from_objref` for
//! an object that may move, and every value computed from it, including through cycles of φ: a pointer, an
//! integer or a vector; the result of a comparison, a byte, is not an address. An address may not be used
//! beyond its stretch, neither directly nor as the offset of a pointer that is recomputed; and it may not
//! leave the function through a store, a return, or an argument of compiled code or the run time, because it
//! is not tracked there. The caller compiles such functions for another heap. C may receive one: it is valid
//! until C itself allows a collection.
//!
//! The bytes of a `String` do not move, but low IR lacks the type of an object, so their address is refused
//! like any other.
//!
//! Cost: linear in instructions. The code is slower than with placement alone: it has loads on paths without
//! a safepoint, and every such object has its own word.

use brolga_ir::builtin::Builtin;
use brolga_ir::cursor::{Cursor, first_insertion_point};
use brolga_ir::func::{SlotData, ValueDef};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::{Access, Region};
use brolga_ir::{Block, Context, Func, Inst, LowType, Op, PtrClass, Slot, Type, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use crate::Error;
use crate::class::is_managed;
use crate::flow::{Flow, is_safepoint};

/// How a value is obtained in another stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// It is the same everywhere: not an object, a constant, or a pointer that does not move.
    Stays,
    /// An object, loaded from its slot.
    Object,
    /// Recomputed from the new value of its first operand.
    Again,
    /// It cannot be obtained.
    Fixed,
}

struct Reload<'a> {
    func: &'a mut Func,
    cx: &'a Context,
    slots: SecondaryMap<Value, PackedOption<Slot>>,
    /// Objects with a slot, in the order of assignment.
    stored: Vec<Value>,
    /// The current name of a value, and the stretch in which it is valid.
    names: SecondaryMap<Value, (u32, PackedOption<Value>)>,
    stretch: u32,
    /// Addresses of objects, and values computed from them.
    addresses: SecondaryMap<Value, bool>,
}

/// Rewrites the function so that only tracked slots are live across a safepoint. It is unchanged if that is
/// impossible.
pub(crate) fn reload(func: &mut Func, cx: &Context, flow: &Flow) -> Result<(), Error> {
    let mut out = func.clone();
    let addresses = addresses(&out);
    for &handler in flow.handlers() {
        // The operand of a handler's φ was chosen where the region was entered.
        let moves = |v| is_managed(out.ty(v)) || addresses[v];
        let is_phi = |i: &Inst| out.op(*i) == Op::Phi && out.results(*i).any(moves);
        if let Some(inst) = out.block_insts(handler).find(is_phi) {
            return Err(Error::Moving { inst });
        }
    }
    for block in out.blocks() {
        for inst in out.block_insts(block) {
            let lost = leaving(out.op(inst)).and_then(|first| out.args(inst).get(first..));
            if lost.is_some_and(|lost| lost.iter().any(|&v| addresses[v])) {
                return Err(Error::Moving { inst });
            }
        }
    }
    let mut reload = Reload {
        func: &mut out,
        cx,
        slots: SecondaryMap::new(),
        stored: Vec::new(),
        names: SecondaryMap::new(),
        stretch: 0,
        addresses,
    };
    let blocks: Vec<Block> = reload.func.blocks().collect();
    for &block in &blocks {
        reload.block(block)?;
    }
    reload.store();
    *func = out;
    Ok(())
}

/// The results of `pointer_from_objref` for objects that may move, and all values computed from them.
fn addresses(func: &Func) -> SecondaryMap<Value, bool> {
    let mut found: SecondaryMap<Value, bool> = SecondaryMap::new();
    let insts = || func.blocks().flat_map(|block| func.block_insts(block));
    let moves = |&inst: &Inst| {
        let is_constant = |v: &Value| matches!(func.value_def(*v), ValueDef::Const(_));
        func.op(inst) == Op::PointerFromObjref && !func.args(inst).iter().all(is_constant)
    };
    let mut pending: Vec<Value> = insts().filter(moves).flat_map(|inst| func.results(inst)).collect();
    if pending.is_empty() {
        return found;
    }
    let mut users: SecondaryMap<Value, Vec<Inst>> = SecondaryMap::new();
    for inst in insts().filter(|&inst| computes(func.op(inst))) {
        for &value in func.args(inst) {
            users[value].push(inst);
        }
    }
    while let Some(value) = pending.pop() {
        if !std::mem::replace(&mut found[value], true) {
            let results = users[value].iter().flat_map(|&inst| func.results(inst));
            pending
                .extend(results.filter(|&v| func.ty(v) != Type::low(LowType::I8) && !is_managed(func.ty(v))));
        }
    }
    found
}

/// The index of the first operand that leaves the function.
fn leaving(op: Op) -> Option<usize> {
    match op {
        // The first operand is the address.
        Op::Store(_) | Op::AtomicStore(_) | Op::AtomicRmw(..) | Op::AtomicCas(_) => Some(1),
        Op::Return | Op::CallSymbol(_) | Op::CallRuntime(_) | Op::CallArgs(_) => Some(0),
        _ => None,
    }
}

/// Whether the results consist of the operands' bits.
fn computes(op: Op) -> bool {
    matches!(
        op,
        Op::Copy
            | Op::Phi
            | Op::Intrinsic(_)
            | Op::Builtin(Builtin::Ifelse)
            | Op::Lanes(..)
            | Op::Splat(_)
            | Op::ExtractLane(..)
            | Op::InsertLane(..)
            | Op::LaneSelect
    )
}

impl Reload<'_> {
    fn kind(&self, value: Value) -> Kind {
        let func = &*self.func;
        let ValueDef::Result(inst, _) = func.value_def(value) else {
            let is_param = matches!(func.value_def(value), ValueDef::Param(_));
            return if is_param && is_managed(func.ty(value)) { Kind::Object } else { Kind::Stays };
        };
        let first = func.args(inst).first().copied();
        match (func.ty(value).ptr_class(), func.op(inst)) {
            _ if self.addresses[value] => Kind::Fixed,
            (None | Some(PtrClass::Loaded | PtrClass::Raw), _) => Kind::Stays,
            (_, Op::Copy) => Kind::Again,
            (_, Op::Intrinsic(Intrinsic::Bitcast | Intrinsic::AddPtr | Intrinsic::SubPtr))
                if first.is_some_and(|v| is_managed(func.ty(v))) =>
            {
                Kind::Again
            }
            (Some(PtrClass::Tracked), _) => Kind::Object,
            _ => Kind::Fixed,
        }
    }

    fn block(&mut self, block: Block) -> Result<(), Error> {
        self.stretch += 1;
        if self.func.blocks().next() == Some(block) {
            for param in self.func.params().to_vec() {
                self.names[param] = (self.stretch, param.into());
            }
        }
        let insts: Vec<Inst> = self.func.block_insts(block).collect();
        for &inst in &insts {
            if self.func.op(inst) == Op::Phi {
                self.made(inst);
                continue;
            }
            for n in 0..self.func.args(inst).len() {
                let value = self.func.args(inst)[n];
                let name = self.name(value, inst, inst)?;
                self.func.args_mut(inst)[n] = name;
            }
            if is_safepoint(self.func, self.cx, inst) {
                self.stretch += 1;
            }
            self.made(inst);
        }
        // The φ of the successors use the names at the end of this block.
        let Some(&end) = insts.last() else { return Ok(()) };
        let mut targets = self.func.successors(block).to_vec();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let phis: Vec<Inst> =
                self.func.block_insts(target).take_while(|&i| self.func.op(i) == Op::Phi).collect();
            for phi in phis {
                for n in 0..self.func.args(phi).len() {
                    if self.func.inst_blocks(phi)[n] == block {
                        let value = self.func.args(phi)[n];
                        let name = self.name(value, end, phi)?;
                        self.func.args_mut(phi)[n] = name;
                    }
                }
            }
        }
        Ok(())
    }

    fn made(&mut self, inst: Inst) {
        for value in self.func.results(inst).collect::<Vec<_>>() {
            self.names[value] = (self.stretch, value.into());
        }
    }

    /// The name of a value operand of `user` in the current stretch, defined before `inst`.
    fn name(&mut self, value: Value, inst: Inst, user: Inst) -> Result<Value, Error> {
        let fault = Error::Moving { inst: user };
        // From the pointer to the object that it was computed from, and back.
        let mut chain = Vec::new();
        let mut at = value;
        let mut name = loop {
            if let (stretch, Some(name)) = (self.names[at].0, self.names[at].1.expand())
                && stretch == self.stretch
            {
                break name;
            }
            match self.kind(at) {
                Kind::Stays => break at,
                Kind::Fixed => return Err(fault),
                Kind::Object => break self.load(at, inst),
                Kind::Again => {
                    chain.push(at);
                    let Some(made) = self.func.def_inst(at) else { return Err(fault) };
                    at = self.func.args(made)[0];
                }
            }
        };
        for &link in chain.iter().rev() {
            let Some(made) = self.func.def_inst(link) else { return Err(fault) };
            let mut args = self.func.args(made).to_vec();
            args[0] = name;
            // The other operands are numbers, which do not change unless they are addresses.
            let is_stale = |&v: &Value| self.kind(v) != Kind::Stays && self.names[v].0 != self.stretch;
            if args[1..].iter().any(is_stale) {
                return Err(fault);
            }
            let (op, ty) = (self.func.op(made), self.func.ty(link));
            name = Cursor::new(self.func).before(inst).ins_value(op, &args, ty);
            self.names[link] = (self.stretch, name.into());
        }
        Ok(name)
    }

    fn load(&mut self, object: Value, inst: Inst) -> Value {
        let slot = match self.slots[object].expand() {
            Some(slot) => slot,
            None => {
                let slot = self.func.add_slot(SlotData::reference());
                self.slots[object] = slot.into();
                self.stored.push(object);
                slot
            }
        };
        let mut at = Cursor::new(self.func);
        let address = at.before(inst).ins_value(Op::SlotAddr(slot), &[], Type::PTR);
        let name = at.ins_value(Op::Load(ACCESS), &[address], Type::TRACKED);
        self.names[object] = (self.stretch, name.into());
        name
    }

    /// Stores each object that has a slot at its definition.
    fn store(&mut self) {
        for object in std::mem::take(&mut self.stored) {
            let made = self.func.def_inst(object);
            let behind = match made {
                Some(inst) if self.func.op(inst) != Op::Phi => self.func.next_inst(inst),
                Some(inst) => self.func.inst_block(inst).and_then(|b| first_insertion_point(self.func, b)),
                None => self.func.blocks().next().and_then(|entry| first_insertion_point(self.func, entry)),
            };
            // An allocation is not a terminator, so an instruction follows it.
            let (Some(slot), Some(behind)) = (self.slots[object].expand(), behind) else { continue };
            let mut at = Cursor::new(self.func);
            at.before(behind);
            let address = at.ins_value(Op::SlotAddr(slot), &[], Type::PTR);
            at.ins(Op::Store(ACCESS), &[address, object], &[]);
        }
    }
}

/// The access to a tracked slot.
const ACCESS: Access = Access { offset: 0, region: Region::Slot, align_log2: 3 };
