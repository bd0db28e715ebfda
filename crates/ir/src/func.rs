//! A function: its instructions and values, and their layout in blocks.
//!
//! ```text
//! Func ─┬─ signature      parameters and results with their types
//!       ├─ values         argument │ result n of an instruction │ constant   (+ a type each)
//!       ├─ instructions   Op + operands + results + blocks
//!       ├─ order          the sequence of blocks, the sequence of instructions in each
//!       └─ side data      callees, C signatures, stack slots, constant bytes, notes, source places
//! ```
//!
//! Invariants by construction: a constant exists once; the results of an instruction are consecutive values. All other
//! rules (ids are of this function, types agree, definitions dominate uses, blocks end in terminators, …) are checked by
//! the [verifier](crate::verify), because passes break them temporarily.
//!
//! The first block in order is the entry; it has no predecessors. In a high function argument 0 is the function object
//! itself (`_1` in the text), and there is one result. In a low function arguments and results are low types only.
//!
//! **Ids of other functions.** Ids index a function as numbers index a slice: reading the data of an id that the
//! function does not have, or placing it, panics and changes nothing. For such an id the order reports an entity that
//! is not placed, and side tables (source places, summaries of callees, root maps) return their default. Ids in
//! operands, targets and operations are not checked when they are set. The verifier reports ids, types and names that
//! do not exist, and all functions are verified before they are compiled or run.
//!
//! Hints, which affect the speed of code but not its meaning, are in `func/hints.rs`.
//!
//! There are no use lists. A pass that replaces values collects the replacements and applies them in one pass
//! with [`Func::replace_values`]; a pass that needs uses computes them.

use crate::builtin::Builtin;
use crate::constant::Const;
use crate::context::Context;
use crate::effects::{Effects, Summary};
use crate::entity::{Block, Callee, ConstId, Foreign, Inlined, Inst, Meta, Slot, Value};
use crate::function_name::FunctionName;
use crate::hints::{Hint, Inlining};
use crate::names::Name;
use crate::op::{Level, Op};
use crate::order::Order;
use crate::signature::func_symbol;
use crate::types::{PrimitiveRepr, Type, TypeKind, Types};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityList, EntityRef, EntitySet, ListPool, PrimaryMap, SecondaryMap};
use rustc_hash::FxHashMap;
use std::ops::Range;

mod debug;
mod hints;
mod inlined;
mod line_column;

pub use crate::signature::{Param, Signature};
use debug::DebugNames;
pub use debug::ValueName;
pub use inlined::{CopiedPlaces, InlinedCall};
pub use line_column::LineColumn;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CalleeData {
    /// High: the method of a function for these argument types.
    Method {
        /// The type of the function object: `typeof(f)` or a closure's type.
        function: Type,
        /// The types of the arguments after the function object.
        args: Box<[Type]>,
        result: Type,
    },
    /// Low: compiled code known to the linker by a symbol.
    Symbol {
        symbol: Name,
        /// The low types of the arguments.
        params: Box<[Type]>,
        /// The low types of the results.
        results: Box<[Type]>,
    },
}

/// A C function with the signature of its calls.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ForeignData {
    /// Its name; `None` if the first operand is its address.
    pub name: Option<Name>,
    pub result: Type,
    pub params: Box<[Type]>,
    /// The number of arguments declared before `...` in C; `None` if the function is not variadic.
    pub variadic_after: Option<u32>,
}

impl ForeignData {
    /// The low types of the results of a call in low IR. For a struct returned in registers, `result` is the tuple of the
    /// registers' types.
    pub fn low_results(&self, types: &Types) -> Vec<Type> {
        match types.tuple_elements(self.result) {
            Some(numbers) => {
                numbers.iter().filter_map(|&ty| types.primitive_low(ty)).map(Type::low).collect()
            }
            None if self.result == Type::NOTHING => Vec::new(),
            None => vec![self.result],
        }
    }
}

/// A piece of stack memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotData {
    pub size: u32,
    /// Its alignment: 2 to this power.
    pub align_log2: u8,
    /// Whether it holds one reference to an object, null until it is written. It has the size of an address.
    pub tracked: bool,
}

impl SlotData {
    /// A slot that holds no references.
    pub fn bytes(size: u32, align_log2: u8) -> SlotData {
        SlotData { size, align_log2, tracked: false }
    }

    /// A slot for one reference to an object.
    pub fn reference() -> SlotData {
        SlotData { size: 8, align_log2: 3, tracked: true }
    }
}

/// The root slots that are live at a safepoint: words of a stack slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RootMap {
    /// The stack slot.
    pub slot: Slot,
    /// The offsets of the words in bytes, ascending.
    pub offsets: Box<[u32]>,
}

/// A note about a loop, as in Julia's `loopinfo`: names and constants.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MetaData {
    /// The parts of the note.
    pub items: Vec<MetaItem>,
}

/// A part of a note.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MetaItem {
    /// A name: `Symbol("julia.simdloop")`.
    Name(Name),
    /// An integer.
    Int(i64),
    /// `nothing`.
    Nothing,
    /// A name with a number: `(:unroll, 4)`.
    Pair(Name, i64),
}

/// The definition of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// Argument number *n* of the function, from 0.
    Param(u32),
    /// Result number *n* of an instruction, from 0.
    Result(Inst, u32),
    Const(ConstId),
}

#[derive(Clone, Copy, Debug)]
struct ValueData {
    def: ValueDef,
    ty: Type,
}

/// An instruction without its position and source place.
#[derive(Clone, Debug)]
struct InstData {
    op: Op,
    args: EntityList<Value>,
    blocks: EntityList<Block>,
    first_result: PackedOption<Value>,
    results: u32,
}

/// The source of an instruction: a byte range in the IR text, and a place in the program that the text was
/// made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The first byte of the statement in the IR text.
    pub start: u32,
    /// The byte after the statement.
    pub end: u32,
    /// The line of the source program, and its column, as far as they are known.
    pub at: LineColumn,
    pub(crate) inlined: PackedOption<Inlined>,
}

/// A function of either level.
#[derive(Clone, Debug)]
pub struct Func {
    /// The name, without module: a text, not a [homonym](crate::names::Names::homonym). The identity of a
    /// high function is the type of argument 0.
    pub name: Name,
    pub level: Level,
    /// Arguments and results.
    pub sig: Signature,
    /// An upper bound of the effects of a call; `None` if unknown. To be reset when the meaning of the function changes.
    pub summary: Option<Summary>,
    /// Whether the definition requests or forbids inlining. Not used for low functions.
    pub inlining: Option<Inlining>,
    insts: PrimaryMap<Inst, InstData>,
    values: PrimaryMap<Value, ValueData>,
    blocks: PrimaryMap<Block, ()>,
    consts: PrimaryMap<ConstId, Const>,
    const_values: FxHashMap<Const, Value>,
    args: ListPool<Value>,
    block_lists: ListPool<Block>,
    order: Order,
    params: Vec<Value>,
    callees: PrimaryMap<Callee, CalleeData>,
    callee_summaries: SecondaryMap<Callee, Option<Summary>>,
    foreigns: PrimaryMap<Foreign, ForeignData>,
    slots: PrimaryMap<Slot, SlotData>,
    metas: PrimaryMap<Meta, MetaData>,
    data: Vec<Box<[u8]>>,
    data_numbers: FxHashMap<Box<[u8]>, u32>,
    places: SecondaryMap<Inst, Place>,
    cold: EntitySet<Block>,
    hints: FxHashMap<Inst, Hint>,
    loop_notes: FxHashMap<Block, Meta>,
    root_maps: FxHashMap<Inst, RootMap>,
    debug: DebugNames,
}

impl Func {
    /// The function without its body, for callers in other modules.
    #[must_use]
    pub fn declaration(&self) -> Func {
        Func::new(self.name, self.level, self.sig.clone())
    }

    /// A function of the same signature with a body that never runs: for modules that are written and read, which takes bodies.
    #[must_use]
    pub fn unreachable(&self) -> Func {
        let mut func = self.declaration();
        let block = func.make_block();
        func.append_block(block);
        let end = func.make_inst(Op::Unreachable, &[], &[], &[]);
        func.append_inst(end, block);
        func
    }

    /// A function without blocks.
    pub fn new(name: Name, level: Level, sig: Signature) -> Self {
        let mut func = Self {
            name,
            level,
            sig,
            summary: None,
            inlining: None,
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            consts: PrimaryMap::new(),
            const_values: FxHashMap::default(),
            args: ListPool::new(),
            block_lists: ListPool::new(),
            order: Order::default(),
            params: Vec::new(),
            callees: PrimaryMap::new(),
            callee_summaries: SecondaryMap::new(),
            foreigns: PrimaryMap::new(),
            slots: PrimaryMap::new(),
            metas: PrimaryMap::new(),
            data: Vec::new(),
            data_numbers: FxHashMap::default(),
            places: SecondaryMap::new(),
            cold: EntitySet::new(),
            hints: FxHashMap::default(),
            loop_notes: FxHashMap::default(),
            root_maps: FxHashMap::default(),
            debug: DebugNames::default(),
        };
        for n in 0..func.sig.params.len() {
            let data = ValueData { def: ValueDef::Param(n as u32), ty: func.sig.params[n].ty };
            func.params.push(func.values.push(data));
        }
        func
    }

    /// A function without blocks whose tables have capacity for roughly the contents of `other`.
    pub fn sized_like(name: Name, level: Level, sig: Signature, other: &Func) -> Self {
        let more = |count: usize| count + count / 2;
        let mut func = Self::new(name, level, sig);
        func.insts.reserve(more(other.insts.len()));
        func.values.reserve(more(other.values.len()));
        func.blocks.reserve(more(other.blocks.len()));
        func.args = ListPool::with_capacity(more(other.args.capacity()));
        func.block_lists = ListPool::with_capacity(other.block_lists.capacity());
        func.places = SecondaryMap::with_capacity(more(other.insts.len()));
        func.order = Order::with_capacity(more(other.blocks.len()), more(other.insts.len()));
        func
    }

    /// The name of the function that this is a method of; `None` for low functions and for methods of other objects.
    pub fn function_name(&self, cx: &Context) -> Option<FunctionName> {
        match (self.level, cx.types.kind(self.sig.params.first()?.ty)) {
            (Level::High, TypeKind::Function(name)) => Some(*name),
            _ => None,
        }
    }

    /// The name as written in source: `f`, or `A.g` if its module is not `Main`.
    pub fn spelled_name(&self, cx: &Context) -> String {
        match self.function_name(cx) {
            Some(function) => function.spelled(&cx.names),
            None => cx.names.text(self.name).to_owned(),
        }
    }

    /// The linker symbol.
    pub fn symbol(&self, cx: &Context) -> String {
        match self.level {
            Level::Low => cx.names.text(self.name).to_owned(),
            Level::High => func_symbol(cx, &self.sig),
        }
    }

    // ----- values -----

    #[inline]
    pub fn params(&self) -> &[Value] {
        &self.params
    }

    /// Specializes a vararg method: the collecting parameter is replaced by the parameters `rest`, and its value by a tuple of
    /// them, of type `tuple`, at the entry, which must not begin with φ. Returns false, without a change, if the method is not
    /// vararg or has no entry.
    pub fn spread_rest(&mut self, rest: &[Param], tuple: Type) -> bool {
        let (true, Some(entry)) = (self.sig.vararg, self.entry()) else { return false };
        let Some(collected) = self.params.pop() else { return false };
        self.sig.params.pop();
        self.sig.vararg = false;
        for &param in rest {
            let def = ValueDef::Param(self.params.len() as u32);
            self.params.push(self.values.push(ValueData { def, ty: param.ty }));
            self.sig.params.push(param);
        }
        let given = &self.params[self.params.len() - rest.len()..];
        let args = EntityList::from_slice(given, &mut self.args);
        let (op, first_result) = (Op::Builtin(Builtin::Tuple), collected.into());
        let blocks = EntityList::new();
        let inst = self.insts.push(InstData { op, args, blocks, first_result, results: 1 });
        self.values[collected] = ValueData { def: ValueDef::Result(inst, 0), ty: tuple };
        self.prepend_inst(inst, entry);
        true
    }

    /// The definition of a value.
    #[inline]
    pub fn value_def(&self, value: Value) -> ValueDef {
        self.values[value].def
    }

    /// The instruction that defines a value; `None` for arguments and constants.
    #[inline]
    pub fn def_inst(&self, value: Value) -> Option<Inst> {
        match self.values[value].def {
            ValueDef::Result(inst, _) => Some(inst),
            _ => None,
        }
    }

    #[inline]
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// Changes the type of an instruction's result. Arguments and constants keep theirs.
    pub fn set_result_type(&mut self, value: Value, ty: Type) {
        let data = &mut self.values[value];
        if let ValueDef::Result(..) = data.def {
            data.ty = ty;
        }
    }

    /// Exclusive upper bound of the value ids, placed or not.
    #[inline]
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Whether an id belongs to this function.
    pub fn has_value(&self, value: Value) -> bool {
        self.values.is_valid(value)
    }

    /// The value of a constant, added if necessary.
    pub fn constant(&mut self, data: Const) -> Value {
        if let Some(&value) = self.const_values.get(&data) {
            return value;
        }
        let ty = data.ty();
        let id = self.consts.push(data.clone());
        let value = self.values.push(ValueData { def: ValueDef::Const(id), ty });
        self.const_values.insert(data, value);
        value
    }

    /// A constant of a primitive or low type from its bits; bits above the width are dropped. A `Bool` keeps
    /// its lowest bit, like the result of any operation on it.
    pub fn bits(&mut self, types: &Types, ty: Type, bits: u128) -> Value {
        let width = match (ty.as_low(), types.primitive(ty)) {
            (Some(low), _) => low.bits(),
            (None, Some((_, PrimitiveRepr::Bool))) => 1,
            (None, Some((bits, _))) => u32::from(bits),
            (None, None) => 128,
        };
        let bits = if width < 128 { bits & ((1 << width) - 1) } else { bits };
        self.constant(Const::Bits { ty, bits })
    }

    /// The constant, if the value is one.
    #[inline]
    pub fn as_const(&self, value: Value) -> Option<&Const> {
        match self.values[value].def {
            ValueDef::Const(id) => Some(&self.consts[id]),
            _ => None,
        }
    }

    /// The bits of a value that is a constant of a primitive or low type.
    #[inline]
    pub fn as_bits(&self, value: Value) -> Option<u128> {
        match self.as_const(value)? {
            Const::Bits { bits, .. } => Some(*bits),
            _ => None,
        }
    }

    // ----- instructions -----

    /// Creates an instruction that is not in a block yet. `blocks` are the targets of a terminator, or the blocks of a φ in
    /// the order of its operands.
    pub fn make_inst(&mut self, op: Op, args: &[Value], blocks: &[Block], results: &[Type]) -> Inst {
        let args = EntityList::from_slice(args, &mut self.args);
        let blocks = EntityList::from_slice(blocks, &mut self.block_lists);
        let inst = Inst::new(self.insts.len());
        let mut first_result = PackedOption::default();
        for (n, &ty) in results.iter().enumerate() {
            let value = self.values.push(ValueData { def: ValueDef::Result(inst, n as u32), ty });
            if n == 0 {
                first_result = value.into();
            }
        }
        self.insts.push(InstData { op, args, blocks, first_result, results: results.len() as u32 })
    }

    /// Exclusive upper bound of the instruction ids, placed or not.
    #[inline]
    pub fn inst_count(&self) -> usize {
        self.insts.len()
    }

    #[inline]
    pub fn op(&self, inst: Inst) -> Op {
        self.insts[inst].op
    }

    /// Changes the operation and the operands; the results stay. Hints are dropped if the operation changes,
    /// except from one `invoke` to another.
    pub fn set_op(&mut self, inst: Inst, op: Op, args: &[Value]) {
        let old = self.insts[inst].op;
        if old != op && !matches!((old, op), (Op::Invoke(_), Op::Invoke(_))) {
            self.hints.remove(&inst);
        }
        let data = &mut self.insts[inst];
        data.op = op;
        data.args.clear(&mut self.args);
        data.args.extend(args.iter().copied(), &mut self.args);
    }

    #[inline]
    pub fn args(&self, inst: Inst) -> &[Value] {
        self.insts[inst].args.as_slice(&self.args)
    }

    /// The operands, mutable.
    #[inline]
    pub fn args_mut(&mut self, inst: Inst) -> &mut [Value] {
        self.insts[inst].args.as_mut_slice(&mut self.args)
    }

    /// The targets of a terminator, or the blocks of a φ in the order of its operands.
    #[inline]
    pub fn inst_blocks(&self, inst: Inst) -> &[Block] {
        self.insts[inst].blocks.as_slice(&self.block_lists)
    }

    /// The targets of a terminator or the blocks of a φ, mutable.
    #[inline]
    pub fn inst_blocks_mut(&mut self, inst: Inst) -> &mut [Block] {
        self.insts[inst].blocks.as_mut_slice(&mut self.block_lists)
    }

    /// Replaces the targets of a terminator or the blocks of a φ.
    pub fn set_inst_blocks(&mut self, inst: Inst, blocks: &[Block]) {
        let list = &mut self.insts[inst].blocks;
        list.clear(&mut self.block_lists);
        list.extend(blocks.iter().copied(), &mut self.block_lists);
    }

    #[inline]
    pub fn results(&self, inst: Inst) -> impl DoubleEndedIterator<Item = Value> + ExactSizeIterator + use<> {
        let data = &self.insts[inst];
        let first = data.first_result.expand().map_or(0, |v| v.index());
        let range: Range<usize> = first..first + data.results as usize;
        range.map(Value::new)
    }

    /// The only result; `None` if there are none or several.
    #[inline]
    pub fn result(&self, inst: Inst) -> Option<Value> {
        let data = &self.insts[inst];
        if data.results == 1 { data.first_result.expand() } else { None }
    }

    /// The blocks and operands of a φ.
    #[inline]
    pub fn phi_edges(&self, inst: Inst) -> impl Iterator<Item = (Block, Value)> + '_ {
        self.inst_blocks(inst).iter().copied().zip(self.args(inst).iter().copied())
    }

    pub fn add_phi_edge(&mut self, inst: Inst, block: Block, value: Value) {
        let data = &mut self.insts[inst];
        data.blocks.push(block, &mut self.block_lists);
        data.args.push(value, &mut self.args);
    }

    /// Removes the edges of a φ for which `keep` returns false. May call `keep` twice for an edge.
    pub fn retain_phi_edges(&mut self, inst: Inst, mut keep: impl FnMut(Block, Value) -> bool) {
        let edges: Vec<_> = self.phi_edges(inst).collect();
        if edges.iter().all(|&(b, v)| keep(b, v)) {
            return;
        }
        let data = &mut self.insts[inst];
        data.blocks.clear(&mut self.block_lists);
        data.args.clear(&mut self.args);
        for (block, value) in edges.into_iter().filter(|&(b, v)| keep(b, v)) {
            self.add_phi_edge(inst, block, value);
        }
    }

    /// Replaces every operand `v` of every placed instruction, and every value with a debug name, by `with(v)`.
    /// Replacements are not replaced again.
    pub fn replace_values(&mut self, mut with: impl FnMut(Value) -> Value) {
        self.debug.values.iter_mut().for_each(|name| name.value = with(name.value));
        let mut block = self.entry();
        while let Some(b) = block {
            let mut inst = self.first_inst(b);
            while let Some(i) = inst {
                for arg in self.insts[i].args.as_mut_slice(&mut self.args) {
                    *arg = with(*arg);
                }
                inst = self.next_inst(i);
            }
            block = self.next_block(b);
        }
    }

    /// The source of an instruction.
    #[inline]
    pub fn place(&self, inst: Inst) -> Place {
        self.places[inst]
    }

    /// Sets the source of an instruction.
    pub fn set_place(&mut self, inst: Inst, place: Place) {
        let inst = self.own(inst);
        self.places[inst] = place;
    }

    // ----- order -----

    /// Returns `inst`; panics unless it belongs to this function. Secondary maps grow on writes, so a foreign
    /// id would enlarge them.
    fn own(&self, inst: Inst) -> Inst {
        let _is_own = &self.insts[inst];
        inst
    }

    /// Returns `block`; panics unless it belongs to this function.
    fn own_block(&self, block: Block) -> Block {
        let () = self.blocks[block];
        block
    }

    /// Creates a block that is not in the order yet.
    pub fn make_block(&mut self) -> Block {
        self.blocks.push(())
    }

    /// Exclusive upper bound of the block ids, placed or not.
    #[inline]
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Whether an id belongs to this function.
    pub fn is_block(&self, block: Block) -> bool {
        self.blocks.is_valid(block)
    }

    /// Puts a block last.
    pub fn append_block(&mut self, block: Block) {
        self.order.insert_block(self.own_block(block), self.order.last_block());
    }

    /// Puts a block after another; does nothing if that is not in the order.
    pub fn insert_block_after(&mut self, block: Block, after: Block) {
        self.order.insert_block(self.own_block(block), Some(after));
    }

    /// Puts a block before all others: it becomes the entry.
    pub fn prepend_block(&mut self, block: Block) {
        self.order.insert_block(self.own_block(block), None);
    }

    /// Removes a block from the order, with its instructions and their root maps.
    pub fn remove_block(&mut self, block: Block) {
        if !self.root_maps.is_empty() {
            let order = &self.order;
            self.root_maps.retain(|&inst, _| order.inst_block(inst) != Some(block));
        }
        self.order.remove_block(block);
    }

    /// The first block.
    #[inline]
    pub fn entry(&self) -> Option<Block> {
        self.order.first_block()
    }

    /// The last block in order.
    #[inline]
    pub fn last_block(&self) -> Option<Block> {
        self.order.last_block()
    }

    /// The block after `block` in order.
    #[inline]
    pub fn next_block(&self, block: Block) -> Option<Block> {
        self.order.next_block(block)
    }

    /// The block before `block` in order.
    #[inline]
    pub fn prev_block(&self, block: Block) -> Option<Block> {
        self.order.prev_block(block)
    }

    /// Whether the block is in the order.
    #[inline]
    pub fn is_placed(&self, block: Block) -> bool {
        self.order.has_block(block)
    }

    /// The blocks in order.
    #[inline]
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        std::iter::successors(self.entry(), |&b| self.order.next_block(b))
    }

    /// The instructions of a block in order.
    #[inline]
    pub fn block_insts(&self, block: Block) -> impl Iterator<Item = Inst> + '_ {
        std::iter::successors(self.order.first_inst(block), |&i| self.order.next_inst(i))
    }

    #[inline]
    pub fn first_inst(&self, block: Block) -> Option<Inst> {
        self.order.first_inst(block)
    }

    #[inline]
    pub fn last_inst(&self, block: Block) -> Option<Inst> {
        self.order.last_inst(block)
    }

    /// The instruction after another in its block.
    #[inline]
    pub fn next_inst(&self, inst: Inst) -> Option<Inst> {
        self.order.next_inst(inst)
    }

    /// The instruction before another in its block.
    #[inline]
    pub fn prev_inst(&self, inst: Inst) -> Option<Inst> {
        self.order.prev_inst(inst)
    }

    /// The block of an instruction; `None` if it is not placed.
    #[inline]
    pub fn inst_block(&self, inst: Inst) -> Option<Block> {
        self.order.inst_block(inst)
    }

    /// The last instruction of a block if it is a terminator.
    #[inline]
    pub fn terminator(&self, block: Block) -> Option<Inst> {
        self.order.last_inst(block).filter(|&i| self.op(i).is_terminator())
    }

    /// The targets of a block's terminator.
    #[inline]
    pub fn successors(&self, block: Block) -> &[Block] {
        self.terminator(block).map_or(&[], |t| self.inst_blocks(t))
    }

    /// Puts an instruction last in a block.
    pub fn append_inst(&mut self, inst: Inst, block: Block) {
        let last = self.order.last_inst(block);
        self.order.insert_inst(self.own(inst), self.own_block(block), last);
    }

    /// Puts an instruction first in a block.
    pub fn prepend_inst(&mut self, inst: Inst, block: Block) {
        self.order.insert_inst(self.own(inst), self.own_block(block), None);
    }

    /// Puts an instruction before another; does nothing if that is not placed.
    pub fn insert_before(&mut self, inst: Inst, before: Inst) {
        if let Some(block) = self.order.inst_block(before) {
            let after = self.order.prev_inst(before);
            self.order.insert_inst(self.own(inst), block, after);
        }
    }

    /// Puts an instruction after another; does nothing if that is not placed.
    pub fn insert_after(&mut self, inst: Inst, after: Inst) {
        if let Some(block) = self.order.inst_block(after) {
            self.order.insert_inst(self.own(inst), block, Some(after));
        }
    }

    /// Removes an instruction from its block, and its root map. Its results must no longer be used.
    pub fn remove_inst(&mut self, inst: Inst) {
        self.root_maps.remove(&inst);
        self.order.remove_inst(inst);
    }

    /// Moves `first` and all instructions after it to the end of another block, `to`.
    pub fn split_block(&mut self, first: Inst, to: Block) {
        self.order.split(first, self.own_block(to));
    }

    // ----- side data -----

    /// Adds a callee; equal ones are not merged.
    pub fn add_callee(&mut self, data: CalleeData) -> Callee {
        self.callees.push(data)
    }

    pub fn callee(&self, callee: Callee) -> &CalleeData {
        &self.callees[callee]
    }

    /// Changes the data of a callee.
    pub fn set_callee(&mut self, callee: Callee, data: CalleeData) {
        self.callees[callee] = data;
    }

    pub fn callees(&self) -> impl Iterator<Item = (Callee, &CalleeData)> {
        self.callees.iter()
    }

    /// Sets the root map of a safepoint, for frames that are found by maps instead of links; does nothing if the instruction is in
    /// no block. Not part of the text and binary forms.
    pub fn set_root_map(&mut self, inst: Inst, map: RootMap) {
        if self.inst_block(inst).is_some() {
            self.root_maps.insert(inst, map);
        }
    }

    /// The root map of a safepoint.
    pub fn root_map(&self, inst: Inst) -> Option<&RootMap> {
        self.root_maps.get(&inst)
    }

    /// Removes the root map of a safepoint, to be moved to the instruction that replaces it.
    pub fn take_root_map(&mut self, inst: Inst) -> Option<RootMap> {
        self.root_maps.remove(&inst)
    }

    /// The effects of calls of a callee, if known.
    pub fn callee_effects(&self, callee: Callee) -> Option<Effects> {
        Some(self.callee_summaries[callee]?.effects)
    }

    /// The summary of a callee, if known: its effects and what it does with its arguments.
    pub fn callee_summary(&self, callee: Callee) -> Option<Summary> {
        self.callee_summaries[callee]
    }

    /// Sets the summary of a callee: an upper bound of the effects of its calls.
    pub fn set_callee_summary(&mut self, callee: Callee, summary: Option<Summary>) {
        let _is_own = &self.callees[callee];
        self.callee_summaries[callee] = summary;
    }

    /// Adds a C function.
    pub fn add_foreign(&mut self, data: ForeignData) -> Foreign {
        self.foreigns.push(data)
    }

    /// The data of a C function.
    pub fn foreign(&self, foreign: Foreign) -> &ForeignData {
        &self.foreigns[foreign]
    }

    /// All C functions.
    pub fn foreigns(&self) -> impl Iterator<Item = (Foreign, &ForeignData)> {
        self.foreigns.iter()
    }

    /// The names of C functions that this function calls, and of C functions and variables whose addresses it
    /// takes.
    pub fn c_symbols(&self) -> impl Iterator<Item = Name> + '_ {
        let called = self.foreigns().filter_map(|(_, foreign)| foreign.name);
        let insts = self.blocks().flat_map(|block| self.block_insts(block));
        called.chain(insts.filter_map(|inst| match self.op(inst) {
            Op::CGlobal(name) => Some(name),
            _ => None,
        }))
    }

    /// Adds a stack slot.
    pub fn add_slot(&mut self, data: SlotData) -> Slot {
        self.slots.push(data)
    }

    /// The data of a stack slot.
    pub fn slot(&self, slot: Slot) -> SlotData {
        self.slots[slot]
    }

    /// All stack slots.
    pub fn slots(&self) -> impl Iterator<Item = (Slot, SlotData)> + '_ {
        self.slots.iter().map(|(slot, &data)| (slot, data))
    }

    /// Adds a note.
    pub fn add_meta(&mut self, data: MetaData) -> Meta {
        self.metas.push(data)
    }

    /// The data of a note.
    pub fn meta(&self, meta: Meta) -> &MetaData {
        &self.metas[meta]
    }

    /// All notes.
    pub fn metas(&self) -> impl Iterator<Item = (Meta, &MetaData)> {
        self.metas.iter()
    }

    /// The value of a static parameter as a constant.
    pub fn static_value(&mut self, types: &Types, value: Type) -> Value {
        let Some((ty, elems)) = types.value_elements(value) else {
            return self.constant(types.param_constant(value));
        };
        let fields = elems.iter().map(|&elem| self.static_value(types, elem)).collect();
        self.constant(Const::Aggregate { ty, fields })
    }

    /// Adds constant bytes; equal bytes are stored once. Returns the index for
    /// [`Address::Data`](crate::constant::Address::Data).
    pub fn add_data(&mut self, bytes: &[u8]) -> u32 {
        if let Some(&number) = self.data_numbers.get(bytes) {
            return number;
        }
        let number = self.data.len() as u32;
        self.data.push(bytes.into());
        self.data_numbers.insert(bytes.into(), number);
        number
    }

    /// All constant bytes.
    pub fn data(&self) -> &[Box<[u8]>] {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intrinsic::Intrinsic;

    fn add_one(cx: &Context) -> Func {
        let sig = Signature {
            params: vec![Param { name: None, ty: Type::I64 }],
            results: vec![Type::I64],
            vararg: false,
            ..Signature::default()
        };
        let mut f = Func::new(cx.names.intern("f"), Level::Low, sig);
        let block = f.make_block();
        f.append_block(block);
        let one = f.bits(&cx.types, Type::I64, 1);
        let x = f.params()[0];
        let add = f.make_inst(Op::Intrinsic(Intrinsic::AddInt), &[x, one], &[], &[Type::I64]);
        f.append_inst(add, block);
        let sum = f.result(add).unwrap();
        let ret = f.make_inst(Op::Return, &[sum], &[], &[]);
        f.append_inst(ret, block);
        f
    }

    #[test]
    fn order_and_operands() {
        let cx = Context::new();
        let mut f = add_one(&cx);
        let entry = f.entry().unwrap();
        let insts: Vec<_> = f.block_insts(entry).collect();
        assert_eq!(insts.len(), 2);
        assert_eq!(f.terminator(entry), Some(insts[1]));
        let copy = f.make_inst(Op::Copy, &[f.params()[0]], &[], &[Type::I64]);
        f.insert_before(copy, insts[1]);
        assert_eq!(f.block_insts(entry).collect::<Vec<_>>(), [insts[0], copy, insts[1]]);
        f.remove_inst(copy);
        assert_eq!(f.block_insts(entry).count(), 2);
        assert_eq!(f.inst_block(copy), None);
    }

    #[test]
    fn only_instructions_in_blocks_have_root_maps() {
        let cx = Context::new();
        let mut f = add_one(&cx);
        let entry = f.entry().unwrap();
        let map = RootMap { slot: Slot::from_u32(0), offsets: [0].into() };
        let poll = f.make_inst(Op::Safepoint, &[], &[], &[]);
        f.set_root_map(poll, map.clone());
        assert_eq!(f.root_map(poll), None, "it is in no block");

        let first = f.block_insts(entry).next().unwrap();
        f.insert_before(poll, first);
        f.set_root_map(poll, map.clone());
        assert_eq!(f.root_map(poll), Some(&map));
        f.remove_inst(poll);
        f.insert_before(poll, first);
        assert_eq!(f.root_map(poll), None, "the map went with the removal");

        f.set_root_map(poll, map);
        f.remove_block(entry);
        assert_eq!(f.root_map(poll), None, "the map went with the block");
    }

    #[test]
    fn constants_are_interned_by_bits() {
        let cx = Context::new();
        let mut f = add_one(&cx);
        let a = f.bits(&cx.types, Type::INT8, 0xfff);
        assert_eq!(f.as_bits(a), Some(0xff));
        assert_eq!(f.bits(&cx.types, Type::INT8, 0xff), a);
        assert_ne!(f.bits(&cx.types, Type::UINT8, 0xff), a);
        let (yes, no) = (f.bits(&cx.types, Type::BOOL, 0xff), f.bits(&cx.types, Type::BOOL, 2));
        assert_eq!((f.as_bits(yes), f.as_bits(no)), (Some(1), Some(0)));
        let zero = f.bits(&cx.types, Type::FLOAT64, 0);
        assert_ne!(f.bits(&cx.types, Type::FLOAT64, 1 << 63), zero);
    }

    #[test]
    fn replacing_values_reaches_every_operand() {
        let cx = Context::new();
        let mut f = add_one(&cx);
        let two = f.bits(&cx.types, Type::I64, 2);
        let x = f.params()[0];
        f.replace_values(|v| if v == x { two } else { v });
        let add = f.first_inst(f.entry().unwrap()).unwrap();
        assert_eq!(f.args(add)[0], two);
    }

    #[test]
    fn splitting_moves_the_tail() {
        let cx = Context::new();
        let mut f = add_one(&cx);
        let entry = f.entry().unwrap();
        let tail = f.make_block();
        f.append_block(tail);
        let ret = f.terminator(entry).unwrap();
        f.split_block(ret, tail);
        assert_eq!(f.terminator(entry), None);
        assert_eq!(f.inst_block(ret), Some(tail));
    }
}
