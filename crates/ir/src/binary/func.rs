//! Writes and reads functions in the binary form.
//!
//! An instruction may refer to later ones (the operands of φ), so the reader creates all instructions first and sets
//! their operands afterwards.

use super::bytes::{Sink, Source};
use super::ops::{self, Counts, Numbers};
use super::tables::{Names, Tables};
use super::{BinaryError, Refusal, hints};
use crate::constant::{Address, Const, MODULES};
use crate::entity::{Block, Callee, Foreign, Inst, Meta, Slot, Value};
use crate::func::{
    CalleeData, ForeignData, Func, LineColumn, MetaData, MetaItem, Param, Place, Signature, SlotData,
};
use crate::op::{Level, Op};
use crate::types::{MAX_WIDTH, StaticBound, StaticParam, Statics, Type};
use cranelift_entity::{EntityRef, SecondaryMap};
use rustc_hash::FxHashMap;
use std::hash::Hash;

const BITS: u8 = 0;
const SINGLETON: u8 = 1;
const STRING: u8 = 2;
const SYMBOL: u8 = 3;
const TYPE: u8 = 4;
const MODULE: u8 = 5;
const AGGREGATE: u8 = 6;
const UNDEF: u8 = 7;
const ADDRESS_OF_SYMBOL: u8 = 8;
const ADDRESS_OF_STRING: u8 = 9;
const ADDRESS_OF_DATA: u8 = 10;
const ADDRESS_OF_FOREIGN: u8 = 11;
const ADDRESS_OF_TYPE: u8 = 12;
const ADDRESS_OF_INSTANCE: u8 = 13;
const ADDRESS_OF_BOX: u8 = 14;
const ADDRESS_OF_GLOBAL: u8 = 15;
const ADDRESS_OF_MODULE: u8 = 16;

/// The number of an entity outside the function, which a verified function does not refer to: readers refuse
/// it.
const NOWHERE: u64 = u64::MAX;

/// Numbers items in the order of their first use.
struct Numbering<T> {
    order: Vec<T>,
    numbers: FxHashMap<T, u64>,
}

impl<T: Copy + Eq + Hash> Numbering<T> {
    fn new() -> Self {
        Numbering { order: Vec::new(), numbers: FxHashMap::default() }
    }

    fn add(&mut self, item: T) {
        let order = &mut self.order;
        self.numbers.entry(item).or_insert_with(|| {
            order.push(item);
            order.len() as u64 - 1
        });
    }

    /// The number of an item. Every item written was added before.
    fn of(&self, item: T) -> u64 {
        self.numbers.get(&item).copied().unwrap_or(NOWHERE)
    }
}

/// The entities that a function uses, with a numbering for each kind.
struct Used {
    callees: Numbering<Callee>,
    foreigns: Numbering<Foreign>,
    slots: Numbering<Slot>,
    metas: Numbering<Meta>,
    /// In ascending order, so the fields of a constant come before it.
    consts: Vec<Value>,
    values: SecondaryMap<Value, u64>,
    blocks: SecondaryMap<Block, u64>,
}

impl Used {
    fn by(func: &Func) -> Used {
        let mut used = Used {
            callees: Numbering::new(),
            foreigns: Numbering::new(),
            slots: Numbering::new(),
            metas: Numbering::new(),
            consts: Vec::new(),
            values: SecondaryMap::with_default(NOWHERE),
            blocks: SecondaryMap::with_default(NOWHERE),
        };
        let mut seen = cranelift_entity::EntitySet::new();
        for (n, block) in func.blocks().enumerate() {
            used.blocks[block] = n as u64;
            if let Some(meta) = func.loop_note(block) {
                used.metas.add(meta);
            }
            for inst in func.block_insts(block) {
                match func.op(inst) {
                    Op::Invoke(callee) | Op::CallSymbol(callee) | Op::CFunction(callee) => {
                        used.callees.add(callee)
                    }
                    Op::ForeignCall(foreign) => used.foreigns.add(foreign),
                    Op::SlotAddr(slot) => used.slots.add(slot),
                    Op::LoopInfo(meta) => used.metas.add(meta),
                    _ => {}
                }
                let mut work = func.args(inst).to_vec();
                while let Some(value) = work.pop() {
                    let Some(constant) = func.as_const(value) else { continue };
                    if seen.insert(value) {
                        used.consts.push(value);
                        if let Const::Aggregate { fields, .. } = constant {
                            work.extend(fields);
                        }
                    }
                }
            }
        }
        used.consts.sort_unstable();
        let results = func.blocks().flat_map(|b| func.block_insts(b)).flat_map(|i| func.results(i));
        let all = func.params().iter().copied().chain(used.consts.iter().copied()).chain(results);
        for (n, value) in all.enumerate() {
            used.values[value] = n as u64;
        }
        used
    }
}

pub(super) fn write(names: &mut Names<'_>, out: &mut Sink, func: &Func) {
    let used = Used::by(func);
    names.name(out, func.name);
    out.byte(u8::from(func.level == Level::Low));
    out.byte(hints::byte_of(func.inlining.filter(|_| func.level == Level::High)));
    out.byte(u8::from(func.sig.vararg));
    out.count(func.sig.params.len());
    for param in &func.sig.params {
        out.byte(u8::from(param.name.is_some()));
        if let Some(name) = param.name {
            names.name(out, name);
        }
        names.ty(out, param.ty);
    }
    names.tys(out, &func.sig.results);
    write_statics(names, out, &func.sig.statics);
    out.count(used.consts.len());
    let first = func.params().len() as u64;
    for &value in &used.consts {
        if let Some(constant) = func.as_const(value) {
            // The number of a field that is not a constant wraps or is too large: readers refuse it.
            write_const(names, out, constant, &|part| Some(used.values[part].wrapping_sub(first)));
        }
    }
    out.count(used.callees.order.len());
    for &callee in &used.callees.order {
        write_callee(names, out, func.callee(callee));
    }
    out.count(used.foreigns.order.len());
    for &foreign in &used.foreigns.order {
        write_foreign(names, out, func.foreign(foreign));
    }
    out.count(used.slots.order.len());
    for &slot in &used.slots.order {
        let slot = func.slot(slot);
        out.number(u64::from(slot.size));
        out.byte(slot.align_log2);
        out.byte(u8::from(slot.tracked));
    }
    out.count(used.metas.order.len());
    for &meta in &used.metas.order {
        write_meta(names, out, func.meta(meta));
    }
    out.count(func.data().len());
    for data in func.data() {
        out.block(data);
    }
    let numbers = Numbers {
        callee: &|c| used.callees.of(c),
        foreign: &|f| used.foreigns.of(f),
        slot: &|s| used.slots.of(s),
        meta: &|m| used.metas.of(m),
    };
    out.count(func.blocks().count());
    let mut line = 0;
    for block in func.blocks() {
        out.count(func.block_insts(block).count());
        for inst in func.block_insts(block) {
            ops::write(names, out, func.op(inst), &numbers);
            out.count(func.results(inst).len());
            for result in func.results(inst) {
                names.ty(out, func.ty(result));
            }
            out.count(func.args(inst).len());
            for &arg in func.args(inst) {
                out.number(used.values[arg]);
            }
            out.count(func.inst_blocks(inst).len());
            for &target in func.inst_blocks(inst) {
                out.number(used.blocks[target]);
            }
            let here = i64::from(func.place(inst).at.bits());
            out.signed(here - line);
            line = here;
        }
    }
    hints::write(out, func, &|meta| used.metas.of(meta));
}

/// A function without its body, which follows.
pub(super) fn read_declaration(tables: Tables<'_>, source: &mut Source<'_>) -> Result<Func, BinaryError> {
    let name = tables.written(source)?;
    let level = if source.flag()? { Level::Low } else { Level::High };
    let inlining = hints::inlining(source)?;
    if inlining.is_some() && level == Level::Low {
        return source.refuse(Refusal::Number);
    }
    let vararg = source.flag()?;
    let params = (0..limited(source, MAX_WIDTH)?)
        .map(|_| {
            let name = if source.flag()? { Some(tables.written(source)?) } else { None };
            Ok(Param { name, ty: tables.ty(source)? })
        })
        .collect::<Result<_, _>>()?;
    let results = tables.tys(source)?;
    let statics = read_statics(tables, source)?;
    let mut func = Func::new(name, level, Signature { params, results, vararg, statics });
    func.inlining = inlining;
    Ok(func)
}

pub(super) fn read(tables: Tables<'_>, source: &mut Source<'_>) -> Result<Func, BinaryError> {
    let mut func = read_declaration(tables, source)?;
    let mut values: Vec<Value> = func.params().to_vec();
    let first_const = values.len();
    for _ in 0..source.count()? {
        let constant = read_const(tables, source, &values[first_const..])?;
        values.push(func.constant(constant));
    }
    let mut counts = Counts::default();
    for _ in 0..source.count()? {
        func.add_callee(read_callee(tables, source)?);
        counts.callees += 1;
    }
    for _ in 0..source.count()? {
        func.add_foreign(read_foreign(tables, source)?);
        counts.foreigns += 1;
    }
    for _ in 0..source.count()? {
        let size = source.small()?;
        let align_log2 = source.byte()?;
        func.add_slot(SlotData { size, align_log2, tracked: source.flag()? });
        counts.slots += 1;
    }
    for _ in 0..source.count()? {
        func.add_meta(read_meta(tables, source)?);
        counts.metas += 1;
    }
    for number in 0..source.count()? {
        if func.add_data(source.block()?) as usize != number {
            // Equal bytes are stored once, so a second copy would shift the numbers after it.
            return source.refuse(Refusal::Reference { what: "new constant bytes", number: number as u64 });
        }
    }
    read_body(tables, source, &mut func, values, &counts)?;
    Ok(func)
}

/// An instruction whose operands and blocks are not resolved yet, and its offset in the file.
struct Pending {
    inst: Inst,
    args: Vec<u64>,
    blocks: Vec<u64>,
    offset: usize,
}

fn read_body(
    tables: Tables<'_>,
    source: &mut Source<'_>,
    func: &mut Func,
    mut values: Vec<Value>,
    counts: &Counts,
) -> Result<(), BinaryError> {
    let mut pending = Vec::new();
    let mut line = 0i64;
    for _ in 0..source.count()? {
        let block = func.make_block();
        func.append_block(block);
        for _ in 0..source.count()? {
            let offset = source.offset();
            let op = ops::read(tables, source, counts)?;
            let results = (0..limited(source, MAX_WIDTH)?)
                .map(|_| tables.ty(source))
                .collect::<Result<Vec<Type>, _>>()?;
            let args = (0..source.count()?).map(|_| source.number()).collect::<Result<_, _>>()?;
            let blocks = (0..source.count()?).map(|_| source.number()).collect::<Result<_, _>>()?;
            line = line.wrapping_add(source.signed()?);
            let at = u32::try_from(line).ok().and_then(LineColumn::from_bits);
            let Some(at) = at else { return source.refuse(Refusal::Number) };
            let inst = func.make_inst(op, &[], &[], &results);
            func.set_place(inst, Place { at, ..Place::default() });
            func.append_inst(inst, block);
            values.extend(func.results(inst));
            pending.push(Pending { inst, args, blocks, offset });
        }
    }
    let missing =
        |offset, what, number| Err(BinaryError { offset, refusal: Refusal::Reference { what, number } });
    let block_count = func.block_count();
    for Pending { inst, args, blocks, offset } in pending {
        let mut found = Vec::with_capacity(args.len());
        for number in args {
            match usize::try_from(number).ok().and_then(|n| values.get(n)) {
                Some(&value) => found.push(value),
                None => return missing(offset, "value", number),
            }
        }
        if let Some(&number) = blocks.iter().find(|&&b| b >= block_count as u64) {
            return missing(offset, "block", number);
        }
        let blocks: Vec<Block> = blocks.into_iter().map(|b| Block::new(b as usize)).collect();
        let op = func.op(inst);
        func.set_op(inst, op, &found);
        func.set_inst_blocks(inst, &blocks);
    }
    hints::read(source, func, counts)
}

// ----- static parameters -----

const OPEN: u8 = 0;
const VALUE: u8 = 1;
const UNDEFINED: u8 = 2;

fn write_statics(names: &mut Names<'_>, out: &mut Sink, statics: &Statics) {
    out.count(statics.params.len());
    for param in &statics.params {
        names.name(out, param.name);
        match param.bound {
            StaticBound::Open { lower, upper } => {
                out.byte(OPEN);
                names.ty(out, lower);
                names.ty(out, upper);
            }
            StaticBound::Value(ty) => {
                out.byte(VALUE);
                names.ty(out, ty);
            }
            StaticBound::Undefined => out.byte(UNDEFINED),
        }
    }
    names.tys(out, &statics.patterns);
}

fn read_statics(tables: Tables<'_>, source: &mut Source<'_>) -> Result<Statics, BinaryError> {
    let params = (0..limited(source, MAX_WIDTH)?)
        .map(|_| {
            let name = tables.written(source)?;
            let bound = match source.byte()? {
                OPEN => StaticBound::Open { lower: tables.part(source)?, upper: tables.part(source)? },
                VALUE => StaticBound::Value(tables.ty(source)?),
                UNDEFINED => StaticBound::Undefined,
                tag => return source.refuse(Refusal::Tag { what: "static parameter", tag }),
            };
            Ok(StaticParam { name, bound })
        })
        .collect::<Result<_, _>>()?;
    Ok(Statics { params, patterns: tables.parts(source)? })
}

/// Reads a count that must not exceed `limit`.
fn limited(source: &mut Source<'_>, limit: usize) -> Result<usize, BinaryError> {
    let count = source.count()?;
    if count > limit { source.refuse(Refusal::Count { count: count as u64 }) } else { Ok(count) }
}

// ----- constants -----

/// Writes a constant; `part` returns the number of a field among the constants of the function.
pub(super) fn write_const(
    names: &mut Names<'_>,
    out: &mut Sink,
    constant: &Const,
    part: &dyn Fn(Value) -> Option<u64>,
) {
    match constant {
        Const::Bits { ty, bits } => {
            out.byte(BITS);
            names.ty(out, *ty);
            out.wide(*bits);
        }
        Const::Singleton(ty) => {
            out.byte(SINGLETON);
            names.ty(out, *ty);
        }
        Const::String(text) => {
            out.byte(STRING);
            names.name(out, *text);
        }
        Const::Symbol(text) => {
            out.byte(SYMBOL);
            names.name(out, *text);
        }
        Const::Type { of, .. } => {
            out.byte(TYPE);
            names.ty(out, *of);
        }
        Const::Module(name) => {
            out.byte(MODULE);
            names.name(out, *name);
        }
        Const::Aggregate { ty, fields } => {
            out.byte(AGGREGATE);
            names.ty(out, *ty);
            let fields: Vec<u64> = fields.iter().filter_map(|&field| part(field)).collect();
            out.count(fields.len());
            fields.into_iter().for_each(|field| out.number(field));
        }
        Const::Undef(ty) => {
            out.byte(UNDEF);
            names.ty(out, *ty);
        }
        Const::Address(Address::Symbol(name)) => {
            out.byte(ADDRESS_OF_SYMBOL);
            names.name(out, *name);
        }
        Const::Address(Address::String(name)) => {
            out.byte(ADDRESS_OF_STRING);
            names.name(out, *name);
        }
        Const::Address(Address::Data(number)) => {
            out.byte(ADDRESS_OF_DATA);
            out.number(u64::from(*number));
        }
        Const::Address(Address::Foreign(name)) => {
            out.byte(ADDRESS_OF_FOREIGN);
            names.name(out, *name);
        }
        Const::Address(Address::Global(name)) => {
            out.byte(ADDRESS_OF_GLOBAL);
            names.name(out, *name);
        }
        Const::Address(Address::Module(name)) => {
            out.byte(ADDRESS_OF_MODULE);
            names.name(out, *name);
        }
        Const::Address(Address::Type(ty)) => {
            out.byte(ADDRESS_OF_TYPE);
            names.ty(out, *ty);
        }
        Const::Address(Address::Instance(ty)) => {
            out.byte(ADDRESS_OF_INSTANCE);
            names.ty(out, *ty);
        }
        Const::Address(Address::Boxed(ty, bits)) => {
            out.byte(ADDRESS_OF_BOX);
            names.ty(out, *ty);
            out.wide(*bits);
        }
    }
}

/// Reads a constant whose fields are among `earlier`.
pub(super) fn read_const(
    tables: Tables<'_>,
    source: &mut Source<'_>,
    earlier: &[Value],
) -> Result<Const, BinaryError> {
    Ok(match source.byte()? {
        BITS => Const::Bits { ty: tables.ty(source)?, bits: source.wide()? },
        SINGLETON => Const::Singleton(tables.ty(source)?),
        STRING => Const::String(tables.name(source)?),
        SYMBOL => Const::Symbol(tables.name(source)?),
        TYPE => tables.type_constant(source)?,
        MODULE => {
            let (name, text) = tables.named(source)?;
            if !MODULES.contains(&text) {
                return source.refuse(Refusal::Name { what: "module", name: text.to_owned() });
            }
            Const::Module(name)
        }
        AGGREGATE => {
            let ty = tables.ty(source)?;
            let fields = (0..source.count()?)
                .map(|_| source.index("constant", earlier.len()).map(|n| earlier[n]))
                .collect::<Result<_, _>>()?;
            Const::Aggregate { ty, fields }
        }
        UNDEF => Const::Undef(tables.ty(source)?),
        ADDRESS_OF_SYMBOL => Const::Address(Address::Symbol(tables.name(source)?)),
        ADDRESS_OF_STRING => Const::Address(Address::String(tables.name(source)?)),
        ADDRESS_OF_DATA => Const::Address(Address::Data(source.small()?)),
        ADDRESS_OF_FOREIGN => Const::Address(Address::Foreign(tables.name(source)?)),
        ADDRESS_OF_GLOBAL => Const::Address(Address::Global(tables.name(source)?)),
        ADDRESS_OF_MODULE => Const::Address(Address::Module(tables.name(source)?)),
        ADDRESS_OF_TYPE => Const::Address(Address::Type(tables.ty(source)?)),
        ADDRESS_OF_INSTANCE => Const::Address(Address::Instance(tables.ty(source)?)),
        ADDRESS_OF_BOX => Const::Address(Address::Boxed(tables.ty(source)?, source.wide()?)),
        tag => return source.refuse(Refusal::Tag { what: "constant", tag }),
    })
}

// ----- side data -----

fn write_callee(names: &mut Names<'_>, out: &mut Sink, callee: &CalleeData) {
    match callee {
        CalleeData::Method { function, args, result } => {
            out.byte(0);
            names.ty(out, *function);
            names.tys(out, args);
            names.ty(out, *result);
        }
        CalleeData::Symbol { symbol, params, results } => {
            out.byte(1);
            names.name(out, *symbol);
            names.tys(out, params);
            names.tys(out, results);
        }
    }
}

fn read_callee(tables: Tables<'_>, source: &mut Source<'_>) -> Result<CalleeData, BinaryError> {
    Ok(match source.byte()? {
        0 => {
            let function = tables.ty(source)?;
            let args = tables.tys(source)?.into();
            CalleeData::Method { function, args, result: tables.ty(source)? }
        }
        1 => {
            let symbol = tables.name(source)?;
            let params = tables.tys(source)?.into();
            CalleeData::Symbol { symbol, params, results: tables.tys(source)?.into() }
        }
        tag => return source.refuse(Refusal::Tag { what: "callee", tag }),
    })
}

fn write_foreign(names: &mut Names<'_>, out: &mut Sink, foreign: &ForeignData) {
    out.byte(u8::from(foreign.name.is_some()));
    if let Some(name) = foreign.name {
        names.name(out, name);
    }
    names.ty(out, foreign.result);
    names.tys(out, &foreign.params);
    // 0 for a fixed number of arguments, else one more than the number of fixed ones.
    out.number(foreign.variadic_after.map_or(0, |n| u64::from(n) + 1));
}

fn read_foreign(tables: Tables<'_>, source: &mut Source<'_>) -> Result<ForeignData, BinaryError> {
    let name = if source.flag()? { Some(tables.name(source)?) } else { None };
    let result = tables.ty(source)?;
    let params: Box<[Type]> = tables.tys(source)?.into();
    let variadic_after = source.small()?.checked_sub(1);
    if variadic_after.is_some_and(|fixed| fixed as usize > params.len()) {
        return source.refuse(Refusal::Number);
    }
    Ok(ForeignData { name, result, params, variadic_after })
}

fn write_meta(names: &mut Names<'_>, out: &mut Sink, meta: &MetaData) {
    out.count(meta.items.len());
    for item in &meta.items {
        match item {
            MetaItem::Name(name) => {
                out.byte(0);
                names.name(out, *name);
            }
            MetaItem::Int(value) => {
                out.byte(1);
                out.signed(*value);
            }
            MetaItem::Nothing => out.byte(2),
            MetaItem::Pair(name, value) => {
                out.byte(3);
                names.name(out, *name);
                out.signed(*value);
            }
        }
    }
}

fn read_meta(tables: Tables<'_>, source: &mut Source<'_>) -> Result<MetaData, BinaryError> {
    let items = (0..source.count()?)
        .map(|_| {
            Ok(match source.byte()? {
                0 => MetaItem::Name(tables.name(source)?),
                1 => MetaItem::Int(source.signed()?),
                2 => MetaItem::Nothing,
                3 => MetaItem::Pair(tables.name(source)?, source.signed()?),
                tag => return source.refuse(Refusal::Tag { what: "note", tag }),
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(MetaData { items })
}
