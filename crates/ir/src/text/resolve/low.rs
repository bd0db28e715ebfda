//! Rows of low IR to operations.
//!
//! Low IR uses the same rows. An operation is a call of its name; attributes that are not values follow the
//! operands after `;`:
//!
//! | row | operation |
//! |---|---|
//! | `%3 = add_int(%1, 2)::i64` | an intrinsic |
//! | `%3 = load(%1; offset = 8, region = raw, align = 8)::i64` | a load |
//! | `store(%1, %2; offset = 0, region = slot, align = 4)` | a store |
//! | `%3 = atomic_load(%1, :acquire)::i64`, `atomic_store(%1, %2, :release)` | atomic accesses |
//! | `%3 = atomic_rmw(:add, %1, %2, :monotonic)::i64` | read, modify, write |
//! | `%3 = atomic_cas(%1, %2, %3, :acquire_release)::i64` | compare and swap |
//! | `%3 = slot_addr(0; size = 16, align = 8)::ptr` | the address of a stack slot |
//! | `mem_copy(%1, %2, %3)`, `safepoint()`, `%3 = thread_addr()::ptr` | |
//! | `%3 = alloc(Main.Node)::tracked`, `%4 = type_of(%3)::ptr`, `write_barrier(%3, %4)` | objects |
//! | `%5 = gc_loaded(%3, %4)::loaded`, `%6 = pointer_from_objref(%3)::ptr` | addresses of objects and inside them |
//! | `%7 = lanes(add_float, f64x2, %1, %2)::v128`, `lane_select(%1, %2, %3)` | lane by lane |
//! | `splat(i32x4, %1)`, `extract_lane(i32x4, 3, %1)`, `insert_lane(i32x4, 3, %1, %2)` | lanes and scalars |
//! | `%7 = call_args(brolga_apply, %3, %4)::tracked` | an entry point that takes an array of objects |
//! | `%3 = invoke var"fib(Int64)"(%1::i64)::i64` | compiled code by its symbol |
//! | `brolga_throw_divide()` | an entry point of the run time |
//!
//! `enter`, `leave`, `gc_preserve_begin` and `gc_preserve_end` are written as in high IR.
//!
//! Operands may be addresses: `symbol_addr(:x)`, `string_addr("…")`, `data_addr("…")`, `foreign_addr(:memcpy)`, `global_addr(:x)`,
//! `type_addr(Int64)`, `instance_addr(Nothing)`, `boxed_addr(Int64, 7)`: bits are unsigned.

use super::super::ast::{Expr, ExprKind, Literal, Row};
use super::Term;
use super::body::Body;
use super::error::ResolveError;
use super::exact::Tested;
use super::handlers::At;
use super::near::near;
use crate::builtin::Builtin;
use crate::constant::{Address, Const};
use crate::diag::{Diagnostic, Span};
use crate::entity::{Inst, Value};
use crate::func::SlotData;
use crate::intrinsic::{Arity, Intrinsic};
use crate::lanes::Lanes;
use crate::op::{Access, Level, Op, Ordering, Region, RmwOp};
use crate::runtime_fn::RuntimeFn;
use crate::types::Type;

/// The operations read here, in addition to [`Op::PLAIN_LOW`].
const NAMES: [&str; 15] = [
    "load",
    "store",
    "atomic_load",
    "atomic_store",
    "atomic_rmw",
    "atomic_cas",
    "slot_addr",
    "ifelse",
    "alloc",
    "alloc_stack",
    "call_args",
    "lanes",
    "splat",
    "extract_lane",
    "insert_lane",
];

impl<'a> Body<'_, 'a> {
    pub(super) fn low_statement(
        &mut self,
        inst: Inst,
        row: &Row<'a>,
        expr: &Expr<'a>,
        results: &[Type],
        at: At,
    ) -> Option<()> {
        match &expr.kind {
            ExprKind::Call(callee, args) => {
                let ExprKind::Name(name) = &callee.kind else {
                    return self.r.fail(ResolveError::NotAValue, callee.span);
                };
                if ADDRESSES.contains(&&**name)
                    || self.is_literal_call(callee, args)
                    || self.r.looks_like_type(callee)
                {
                    return self.set(inst, Op::Copy, results, &[expr]);
                }
                self.low_call(inst, name, args, results, expr.span)
            }
            ExprKind::Head(head, args) if head == "foreigncall" => {
                self.foreign_call(inst, args, results, row.span)
            }
            ExprKind::Head(head, args)
                if matches!(&**head, "leave" | "gc_preserve_begin" | "gc_preserve_end" | "loopinfo") =>
            {
                self.head(inst, head, args, results, row.span, at, None)
            }
            ExprKind::Head(head, _) => {
                let name = format!("Expr(:{head})");
                self.r.fail(ResolveError::UnknownOperation { name }, expr.span)
            }
            _ => self.set(inst, Op::Copy, results, &[expr]),
        }
    }

    fn low_call(
        &mut self,
        inst: Inst,
        name: &str,
        args: &[Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        let is_attribute = |e: &Expr<'_>| matches!(&e.kind, ExprKind::Infix(op, _) if op == "=");
        let split = args.iter().position(is_attribute).unwrap_or(args.len());
        let (operands, attributes) = args.split_at(split);
        let operands: Vec<&Expr<'a>> = operands.iter().collect();
        if let Some(op) = Intrinsic::from_name(name) {
            return self.intrinsic(inst, op, &operands, results, at);
        }
        if let Some(op) = RuntimeFn::from_symbol(name) {
            self.count(name, &operands, op.params().len(), at)?;
            return self.set(inst, Op::CallRuntime(op), results, &operands);
        }
        if let Some(op) = Op::PLAIN_LOW.into_iter().find(|op| op.name() == name) {
            let Arity { min, max } = op.operands(Level::Low);
            if max == Some(min) {
                self.count(name, &operands, usize::from(min), at)?;
            }
            return self.set(inst, op, results, &operands);
        }
        match name {
            "ifelse" => {
                self.count(name, &operands, 3, at)?;
                self.set(inst, Op::Builtin(Builtin::Ifelse), results, &operands)
            }
            "load" | "store" => {
                self.count(name, &operands, if name == "load" { 1 } else { 2 }, at)?;
                let access = self.access(attributes)?;
                let op = if name == "load" { Op::Load(access) } else { Op::Store(access) };
                self.set(inst, op, results, &operands)
            }
            "atomic_load" | "atomic_store" | "atomic_cas" => {
                let count = match name {
                    "atomic_load" => 2,
                    "atomic_store" => 3,
                    _ => 4,
                };
                self.count(name, &operands, count, at)?;
                let (order, values) = operands.split_last()?;
                let order = self.ordering(order)?;
                let op = match name {
                    "atomic_load" => Op::AtomicLoad(order),
                    "atomic_store" => Op::AtomicStore(order),
                    _ => Op::AtomicCas(order),
                };
                self.set(inst, op, results, values)
            }
            "atomic_rmw" => {
                self.count(name, &operands, 4, at)?;
                let order = self.ordering(operands[3])?;
                let what = symbol(operands[0]).and_then(|n| RmwOp::ALL.into_iter().find(|op| op.name() == n));
                let Some(what) = what else {
                    let needs = "an operation such as `:add` first";
                    return self.bad(name, needs, operands[0].span);
                };
                self.set(inst, Op::AtomicRmw(what, order), results, &operands[1..3])
            }
            "slot_addr" => {
                self.count(name, &operands, 1, at)?;
                self.slot_addr(inst, operands[0], attributes, at)
            }
            "alloc" | "alloc_stack" => {
                self.count(name, &operands, 1, at)?;
                let ty = self.r.ty(operands[0])?;
                let op = if name == "alloc" { Op::Alloc(ty) } else { Op::AllocStack(ty) };
                self.set(inst, op, results, &[])
            }
            "call_args" => {
                let entry = match operands.first().map(|e| &e.kind) {
                    Some(ExprKind::Name(entry)) => RuntimeFn::from_symbol(entry).filter(|f| f.takes_array()),
                    _ => None,
                };
                match entry {
                    Some(entry) => self.set(inst, Op::CallArgs(entry), results, &operands[1..]),
                    None => self.bad(name, "an entry point such as `brolga_apply` first", at),
                }
            }
            "lanes" | "splat" | "extract_lane" | "insert_lane" => {
                self.vector(inst, name, &operands, results, at)
            }
            _ => {
                let unknown = ResolveError::UnknownOperation { name: name.to_owned() };
                let diagnostic = Diagnostic::error(&unknown, at);
                let known =
                    Intrinsic::ALL.iter().map(|i| i.name()).chain(RuntimeFn::ALL.iter().map(|f| f.symbol()));
                let known = known.chain(NAMES).chain(Op::PLAIN_LOW.map(Op::name));
                let near = if self.r.looks_for_similar() { near(name, known) } else { Vec::new() };
                self.r.push_near(diagnostic, &near);
                None
            }
        }
    }

    /// A vector operation: the division into lanes, and the lane, precede the operands.
    fn vector(
        &mut self,
        inst: Inst,
        name: &str,
        operands: &[&Expr<'a>],
        results: &[Type],
        at: Span,
    ) -> Option<()> {
        let word = |n: usize| match operands.get(n).map(|e| &e.kind) {
            Some(ExprKind::Name(word)) => Some(&**word),
            _ => None,
        };
        let lanes = |n: usize| word(n).and_then(Lanes::from_name);
        let lane = |n: usize| operands.get(n).and_then(|e| integer(e)).and_then(|v| u8::try_from(v).ok());
        let (op, first, count) = match name {
            "splat" => (lanes(0).map(Op::Splat), 1, 1),
            "extract_lane" => (lanes(0).zip(lane(1)).map(|(l, n)| Op::ExtractLane(l, n)), 2, 1),
            "insert_lane" => (lanes(0).zip(lane(1)).map(|(l, n)| Op::InsertLane(l, n)), 2, 2),
            _ => {
                let op = word(0).and_then(Intrinsic::from_name).zip(lanes(1));
                let count = op.map_or(0, |(op, _)| usize::from(op.arity().min));
                (op.map(|(op, l)| Op::Lanes(op, l)), 2, count)
            }
        };
        let Some(op) = op else {
            return self.bad(name, "its lanes, such as `f64x2`, before the operands", at);
        };
        self.count(name, operands, first + count, at)?;
        self.set(inst, op, results, &operands[first..])
    }

    fn bad<T>(&mut self, name: &str, needs: &'static str, at: Span) -> Option<T> {
        self.r.fail(ResolveError::HeadArguments { head: name.to_owned(), needs }, at)
    }

    fn count(&mut self, name: &str, operands: &[&Expr<'a>], wanted: usize, at: Span) -> Option<()> {
        self.count_operands(&name, Arity::exactly(wanted as u8), operands.len(), at)
    }

    fn ordering(&mut self, expr: &Expr<'a>) -> Option<Ordering> {
        match symbol(expr).and_then(Ordering::from_name) {
            Some(order) => Some(order),
            None => self.bad("an atomic access", "an order such as `:acquire` last", expr.span),
        }
    }

    /// `offset = 8, region = raw, align = 8`.
    fn access(&mut self, attributes: &[Expr<'a>]) -> Option<Access> {
        let mut access = Access { offset: 0, region: Region::Raw, align_log2: 0 };
        for (name, value) in self.attributes(attributes)? {
            let understood = match (name, &value.kind) {
                ("offset", _) => {
                    integer(value).and_then(|v| i32::try_from(v).ok()).map(|v| access.offset = v)
                }
                ("region", ExprKind::Name(region)) => {
                    Region::ALL.into_iter().find(|r| r.name() == region).map(|r| access.region = r)
                }
                ("align", _) => alignment(value).map(|v| access.align_log2 = v),
                _ => None,
            };
            if understood.is_none() {
                return self.bad(
                    name,
                    "`offset = bytes`, `region = name` or `align = power of two`",
                    value.span,
                );
            }
        }
        Some(access)
    }

    fn attributes<'e>(&mut self, attributes: &'e [Expr<'a>]) -> Option<Vec<(&'e str, &'e Expr<'a>)>> {
        let mut list = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            match &attribute.kind {
                ExprKind::Infix(op, parts) if op == "=" => match &parts[..] {
                    [Expr { kind: ExprKind::Name(name), .. }, value] => list.push((&**name, value)),
                    _ => return self.r.fail(ResolveError::NotAValue, attribute.span),
                },
                _ => return self.r.fail(ResolveError::NotAValue, attribute.span),
            }
        }
        Some(list)
    }

    /// `slot_addr(0; size = 16, align = 8)`: slots are identified by number.
    fn slot_addr(&mut self, inst: Inst, number: &Expr<'a>, attributes: &[Expr<'a>], at: Span) -> Option<()> {
        let slot = integer(number).and_then(|v| u32::try_from(v).ok()).filter(|&v| v < MAX_SLOTS);
        let Some(slot) = slot else { return self.bad("slot_addr", "the number of a slot", number.span) };
        let mut size = None;
        let mut align_log2 = None;
        let mut tracked = false;
        for (name, value) in self.attributes(attributes)? {
            match name {
                "size" => size = integer(value).and_then(|v| u32::try_from(v).ok()),
                "align" => align_log2 = alignment(value),
                "tracked" if matches!(&value.kind, ExprKind::Name(name) if name == "true") => tracked = true,
                _ => return self.bad(name, "`size = bytes` and `align = power of two`", value.span),
            }
        }
        let (Some(size), Some(align_log2)) = (size, align_log2) else {
            return self.bad("slot_addr", "`size = bytes` and `align = power of two`", at);
        };
        let data = SlotData { size, align_log2, tracked };
        let known = self.slots.get(&slot).copied();
        let id = match known {
            Some(id) if self.func.slot(id) == data => id,
            Some(_) => return self.r.fail(ResolveError::SlotDiffers { slot }, at),
            None => {
                let id = self.func.add_slot(data);
                self.slots.insert(slot, id);
                id
            }
        };
        self.func.set_op(inst, Op::SlotAddr(id), &[]);
        Some(())
    }

    /// An address operand; the inner `None` means that the call is something else.
    pub(super) fn address(
        &mut self,
        callee: &Expr<'a>,
        args: &[Expr<'a>],
        at: Span,
    ) -> Option<Option<Value>> {
        let ExprKind::Name(name) = &callee.kind else { return Some(None) };
        if !ADDRESSES.contains(&&**name) {
            return Some(None);
        }
        if let "type_addr" | "instance_addr" | "boxed_addr" = &**name {
            let address = self.object_address(name, args, at)?;
            return Some(Some(self.func.constant(Const::Address(address))));
        }
        let [arg] = args else { return self.bad(name, "one name or text", at) };
        let address = match (&**name, self.r.term(arg, None)?) {
            ("symbol_addr", Term::Const(Const::Symbol(symbol))) => Address::Symbol(symbol),
            ("module_addr", Term::Const(Const::Symbol(symbol))) => Address::Module(symbol),
            ("foreign_addr", Term::Const(Const::Symbol(symbol))) => Address::Foreign(symbol),
            ("global_addr", Term::Const(Const::Symbol(symbol))) => Address::Global(symbol),
            ("string_addr", Term::Const(Const::String(text))) => Address::String(text),
            ("data_addr", Term::Const(Const::String(text))) => {
                let bytes = self.r.cx.names.text(text).as_bytes().to_vec();
                Address::Data(self.func.add_data(&bytes))
            }
            ("data_addr", Term::Bytes(bytes)) => Address::Data(self.func.add_data(&bytes)),
            _ => return self.bad(name, "a symbol or a string", arg.span),
        };
        Some(Some(self.func.constant(Const::Address(address))))
    }

    /// The address of a permanent object: its type, and its bits if it is a box.
    fn object_address(&mut self, name: &str, args: &[Expr<'a>], at: Span) -> Option<Address> {
        let bits = |e: &Expr<'_>| match e.kind {
            ExprKind::Literal(Literal::Int { negative: false, magnitude }) => Some(magnitude.get()),
            ExprKind::Literal(Literal::Unsigned { value, .. }) => Some(value.get()),
            _ => None,
        };
        match (name, args) {
            ("type_addr", [ty]) => match self.r.tested_type(ty) {
                Tested::Exact(ty) => Some(Address::Type(ty)),
                Tested::Widened | Tested::Faulty => Some(Address::Type(self.r.ty(ty)?)),
            },
            ("instance_addr", [ty]) => Some(Address::Instance(self.r.ty(ty)?)),
            ("boxed_addr", [ty, value]) => match bits(value) {
                Some(bits) => Some(Address::Boxed(self.r.ty(ty)?, bits)),
                None => self.bad(name, "the bits of the value as an unsigned literal", value.span),
            },
            _ => self.bad(name, "a type, and bits for `boxed_addr`", at),
        }
    }
}

/// Operands that are addresses resolved by the linker.
pub(in super::super) const ADDRESSES: [&str; 9] = [
    "symbol_addr",
    "module_addr",
    "string_addr",
    "data_addr",
    "foreign_addr",
    "global_addr",
    "type_addr",
    "instance_addr",
    "boxed_addr",
];

/// More slots are implausible in one activation.
const MAX_SLOTS: u32 = 1 << 20;

fn symbol<'e>(expr: &'e Expr<'_>) -> Option<&'e str> {
    match &expr.kind {
        ExprKind::Symbol(name) => Some(name),
        _ => None,
    }
}

fn integer(expr: &Expr<'_>) -> Option<i64> {
    match expr.kind {
        ExprKind::Literal(Literal::Int { negative, magnitude }) => {
            let value = i64::try_from(magnitude.get()).ok()?;
            Some(if negative { -value } else { value })
        }
        _ => None,
    }
}

/// Log2 of an alignment in bytes.
fn alignment(expr: &Expr<'_>) -> Option<u8> {
    let bytes = u32::try_from(integer(expr)?).ok()?;
    bytes.is_power_of_two().then(|| bytes.trailing_zeros() as u8)
}
