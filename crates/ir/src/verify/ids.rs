//! Ids: a function refers only to its own entities, and to types and names of its context.
//!
//! ```text
//! instruction ── operands, targets ──► values, blocks            operation ──► callees, C functions, slots, notes
//! function, values, constants, callees, C functions, operations ─────────────► types, names
//! ```
//!
//! All are numbers, so a foreign id is detected only if it is out of range here; otherwise it refers to the
//! entity with that number here, and all other rules apply. These rules are checked before anything is looked
//! up.
//!
//! Cost: one visit to each value, instruction and table entry.

use super::{Checker, Site, StructureRule};
use crate::constant::{Address, Const};
use crate::context::Context;
use crate::entity::{Inst, Value};
use crate::func::{CalleeData, ForeignData, Func, MetaItem, Signature};
use crate::module::{Global, Literal};
use crate::names::{Name, Names};
use crate::op::Op;
use crate::types::{StaticBound, Type};
use cranelift_entity::EntityRef;

/// A named entity that does not exist: its kind and number.
type Unknown = (&'static str, u32);

impl Checker<'_> {
    /// Checks the ids of the whole function.
    pub(super) fn ids(&mut self) {
        let (cx, func) = (self.cx, self.func);
        let own = Own::new(cx, func);
        self.unknown(Site::Func, name(cx, func.name).or_else(|| signature(cx, &func.sig)));
        for value in (0..func.value_count()).map(Value::new) {
            let in_constant = || func.as_const(value).and_then(|data| constant(cx, data));
            self.unknown(Site::Func, ty(cx, func.ty(value)).or_else(in_constant));
        }
        func.callees().for_each(|(_, data)| self.unknown(Site::Func, callee(cx, data)));
        func.foreigns().for_each(|(_, data)| self.unknown(Site::Func, foreign(cx, data)));
        for item in func.metas().flat_map(|(_, data)| &data.items) {
            let (MetaItem::Name(text) | MetaItem::Pair(text, _)) = *item else { continue };
            self.unknown(Site::Func, name(cx, text));
        }
        for block in func.blocks() {
            let note = func.loop_note(block).map(|note| ("note", note.as_u32()));
            self.unknown(Site::Block(block), note.filter(|&(_, number)| number >= own.metas));
            for inst in func.block_insts(block) {
                self.unknown(Site::Inst(inst), own.inst(inst));
            }
        }
    }

    /// Checks the ids of one instruction; `false` if one does not exist.
    pub(super) fn inst_ids(&mut self, inst: Inst) -> bool {
        let unknown = Own::new(self.cx, self.func).inst(inst);
        self.unknown(Site::Inst(inst), unknown);
        unknown.is_none()
    }

    fn unknown(&mut self, site: Site, unknown: Option<Unknown>) {
        if let Some((kind, number)) = unknown {
            self.report(site, StructureRule::Id { kind, number });
        }
    }
}

impl Context {
    /// Holds all names and types of a function from another view, which must be alive until then. `false` if
    /// one of them is unknown: then the function belongs to another context.
    pub fn hold(&self, func: &Func) -> bool {
        let own = Own::new(self, func);
        let heads = name(self, func.name).or_else(|| signature(self, &func.sig));
        let of_value = |value: Value| {
            let in_constant = || func.as_const(value).and_then(|data| constant(self, data));
            ty(self, func.ty(value)).or_else(in_constant)
        };
        let of_item = |item: &MetaItem| match *item {
            MetaItem::Name(text) | MetaItem::Pair(text, _) => name(self, text),
            _ => None,
        };
        let values = || (0..func.value_count()).map(Value::new).find_map(of_value);
        let callees = || func.callees().find_map(|(_, data)| callee(self, data));
        let foreigns = || func.foreigns().find_map(|(_, data)| foreign(self, data));
        let metas = || func.metas().flat_map(|(_, data)| &data.items).find_map(of_item);
        let mut insts = func.blocks().flat_map(|block| func.block_insts(block));
        let found = heads.or_else(values).or_else(callees).or_else(foreigns).or_else(metas);
        found.or_else(|| insts.find_map(|inst| own.op(func.op(inst)))).is_none()
    }
}

/// A type or name in a global variable that does not belong to the context.
pub(super) fn in_global(cx: &Context, global: &Global) -> Option<Unknown> {
    let mut unknown = name(cx, global.name).or_else(|| ty(cx, global.ty));
    let mut work = vec![&global.init];
    while unknown.is_none()
        && let Some(literal) = work.pop()
    {
        unknown = match literal {
            Literal::Const(data) => ty(cx, data.ty()).or_else(|| constant(cx, data)),
            Literal::Aggregate { ty: whole, fields } => {
                work.extend(fields);
                ty(cx, *whole)
            }
            Literal::Array { ty: whole, items, .. } => {
                work.extend(items);
                ty(cx, *whole)
            }
        };
    }
    unknown
}

/// The number of entities of each kind in a function.
struct Own<'a> {
    cx: &'a Context,
    func: &'a Func,
    callees: u32,
    foreigns: u32,
    slots: u32,
    metas: u32,
}

impl<'a> Own<'a> {
    fn new(cx: &'a Context, func: &'a Func) -> Self {
        let (callees, foreigns) = (func.callees().count() as u32, func.foreigns().count() as u32);
        let (slots, metas) = (func.slots().count() as u32, func.metas().count() as u32);
        Own { cx, func, callees, foreigns, slots, metas }
    }

    fn inst(&self, inst: Inst) -> Option<Unknown> {
        let func = self.func;
        let value = func.args(inst).iter().find(|&&v| !func.has_value(v)).map(|v| ("value", v.as_u32()));
        let block =
            || func.inst_blocks(inst).iter().find(|&&b| !func.is_block(b)).map(|b| ("block", b.as_u32()));
        value.or_else(block).or_else(|| self.op(func.op(inst)))
    }

    fn op(&self, op: Op) -> Option<Unknown> {
        let (kind, number, count) = match op {
            Op::Invoke(id) | Op::CallSymbol(id) | Op::CFunction(id) => ("callee", id.as_u32(), self.callees),
            Op::ForeignCall(id) => ("C function", id.as_u32(), self.foreigns),
            Op::SlotAddr(id) => ("stack slot", id.as_u32(), self.slots),
            Op::LoopInfo(id) => ("note", id.as_u32(), self.metas),
            Op::New(of) | Op::SplatNew(of) | Op::Alloc(of) | Op::AllocStack(of) => return ty(self.cx, of),
            Op::GetGlobal(of) | Op::ThrowUndefIfNot(of) | Op::CGlobal(of) => return name(self.cx, of),
            _ => return None,
        };
        (number >= count).then_some((kind, number))
    }
}

fn ty(cx: &Context, ty: Type) -> Option<Unknown> {
    (!cx.types.has(ty)).then(|| ("type", ty.index() as u32))
}

fn name(cx: &Context, name: Name) -> Option<Unknown> {
    (!cx.names.has(name)).then(|| ("name", Names::number(name)))
}

fn types(cx: &Context, all: impl IntoIterator<Item = Type>) -> Option<Unknown> {
    all.into_iter().find_map(|of| ty(cx, of))
}

fn signature(cx: &Context, sig: &Signature) -> Option<Unknown> {
    let params = || types(cx, sig.params.iter().map(|param| param.ty).chain(sig.results.iter().copied()));
    let variables = sig.statics.params.iter();
    let mut names = sig.params.iter().filter_map(|param| param.name).chain(variables.clone().map(|v| v.name));
    let mut bounds = variables.flat_map(|variable| match variable.bound {
        StaticBound::Open { lower, upper } => [Some(lower), Some(upper)],
        StaticBound::Value(value) => [Some(value), None],
        StaticBound::Undefined => [None, None],
    });
    params()
        .or_else(|| names.find_map(|text| name(cx, text)))
        .or_else(|| bounds.find_map(|bound| ty(cx, bound?)))
        .or_else(|| types(cx, sig.statics.patterns.iter().copied()))
}

fn callee(cx: &Context, data: &CalleeData) -> Option<Unknown> {
    match data {
        CalleeData::Method { function, args, result } => {
            types(cx, [*function, *result].into_iter().chain(args.iter().copied()))
        }
        CalleeData::Symbol { symbol, params, results } => {
            name(cx, *symbol).or_else(|| types(cx, params.iter().chain(results).copied()))
        }
    }
}

fn foreign(cx: &Context, data: &ForeignData) -> Option<Unknown> {
    let text = data.name.and_then(|text| name(cx, text));
    text.or_else(|| types(cx, [data.result].into_iter().chain(data.params.iter().copied())))
}

/// Checks the entities that a constant names besides its own type and its parts, which are values.
fn constant(cx: &Context, data: &Const) -> Option<Unknown> {
    match *data {
        Const::Type { of, .. }
        | Const::Address(Address::Type(of) | Address::Instance(of) | Address::Boxed(of, _)) => ty(cx, of),
        Const::String(text) | Const::Symbol(text) | Const::Module(text) => name(cx, text),
        Const::Address(
            Address::Symbol(text)
            | Address::String(text)
            | Address::Module(text)
            | Address::Foreign(text)
            | Address::Global(text),
        ) => name(cx, text),
        Const::Bits { .. }
        | Const::Singleton(_)
        | Const::Aggregate { .. }
        | Const::Undef(_)
        | Const::Address(Address::Data(_)) => None,
    }
}
