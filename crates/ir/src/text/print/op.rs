//! Prints statements in the text form: the inverse of `resolve`.
//!
//! Call labels (`invoke`, `dynamic`, `builtin`, `intrinsic`) follow Julia 1.12. Operands inside `$(Expr(…))`
//! are quoted: `:(%5)`, `:(x)`, `:(:name)`. A literal is printed without its type only if `resolve` infers
//! that type from the operation and the other operands.

use std::fmt::{self, Write};

use super::super::wanted::{Site, integer_type, signed_members};
use super::func::FuncText;
use super::value::{is_plain, name_text};
use crate::builtin::Builtin;
use crate::constant::Const;
use crate::entity::{Block, Inst, Meta, Value};
use crate::func::{CalleeData, MetaItem, ValueDef};
use crate::ident::is_identifier;
use crate::intrinsic::Intrinsic;
use crate::names::Name;
use crate::op::{Access, Level, Op};
use crate::show::Shown;
use crate::types::{Type, TypeKind};

impl FuncText<'_> {
    /// Prints the statement of an instruction with its type, without the row's number. `next` is the next block in the
    /// layout.
    pub(super) fn statement(&self, w: &mut dyn Write, inst: Inst, next: Option<Block>) -> fmt::Result {
        let op = self.func.op(inst);
        let args = self.func.args(inst);
        let blocks = self.func.inst_blocks(inst);
        match op {
            Op::Goto => return write!(w, "goto {}", self.target(blocks.first().copied())),
            Op::Branch => {
                write!(w, "goto {} if not ", self.target(blocks.get(1).copied()))?;
                self.operands(w, inst)?;
                self.not_next(w, blocks.first().copied(), next)?;
                return match self.func.branch_weights(inst) {
                    Some(weights) => write!(w, " weights {}:{}", weights.yes(), weights.no()),
                    None => Ok(()),
                };
            }
            Op::Enter => {
                write!(w, "enter {}", self.target(blocks.get(1).copied()))?;
                return self.not_next(w, blocks.first().copied(), next);
            }
            Op::Return => {
                let many = args.len() > 1;
                w.write_str(match args.len() {
                    0 => "return",
                    1 => "return ",
                    _ => "return (",
                })?;
                self.operands(w, inst)?;
                return w.write_str(if many { ")" } else { "" });
            }
            Op::Unreachable => return w.write_str("unreachable"),
            Op::Pi => {
                w.write_str("π (")?;
                self.operands(w, inst)?;
                let ty = self.func.result(inst).map_or(Type::ANY, |v| self.func.ty(v));
                return write!(w, ", {})", self.cx.types.display(ty));
            }
            Op::Leave | Op::GcPreserveBegin | Op::GcPreserveEnd => return self.head(w, op.name(), inst),
            Op::PopException => {
                self.head(w, "pop_exception", inst)?;
                return w.write_str("::Nothing");
            }
            Op::Spend(units) => return write!(w, "$(Expr(:spend, {units}))::Nothing"),
            Op::CodeCoverage => return w.write_str("$(Expr(:code_coverage_effect))::Nothing"),
            Op::ThrowUndefIfNot(name) => {
                let name = Shown::Symbol(self.cx.names.text(name)).to_string();
                write!(w, "$(Expr(:throw_undef_if_not, {name}")?;
                self.quoted_operands(w, inst)?;
                return w.write_str("))::Any");
            }
            Op::LoopInfo(meta) => return self.loop_info(w, meta),
            Op::Phi => {
                w.write_str("φ (")?;
                for (index, &block) in blocks.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(w, "{comma}{} => ", self.target(Some(block)))?;
                    self.operand(w, inst, index)?;
                }
                w.write_str(")")?;
            }
            Op::PhiC => self.list(w, "φᶜ (", inst)?,
            Op::Upsilon if args.is_empty() => w.write_str("ϒ (#undef)")?,
            Op::Upsilon => self.list(w, "ϒ (", inst)?,
            Op::Copy => self.copy(w, inst)?,
            Op::Intrinsic(op) => self.intrinsic(w, op, inst)?,
            Op::Builtin(op) => self.builtin(w, op, inst)?,
            Op::Call => self.dynamic_call(w, inst)?,
            Op::Invoke(callee) | Op::CallSymbol(callee) => self.invoke(w, self.func.callee(callee), inst)?,
            Op::New(ty) | Op::SplatNew(ty) => {
                write!(w, "{}({}", op.name(), self.cx.types.display(ty))?;
                w.write_str(if args.is_empty() { "" } else { ", " })?;
                self.list(w, "", inst)?;
            }
            Op::GetGlobal(name) => self.values.qualified(w, "Main", self.cx.names.text(name))?,
            Op::TheException => w.write_str("$(Expr(:the_exception))")?,
            Op::BoundsCheck(on) => write!(w, "$(Expr(:boundscheck, {on}))")?,
            Op::StaticParameter(number) => write!(w, "$(Expr(:static_parameter, {number}))")?,
            Op::StaticDefined(number) => {
                write!(w, "$(Expr(:isdefined, :($(Expr(:static_parameter, {number})))))")?;
            }
            Op::CFunction(callee) => {
                let ty = self.func.result(inst).map_or(Type::PTR, |value| self.func.ty(value));
                write!(w, "$(Expr(:cfunction, {}, ", self.cx.types.display(ty))?;
                let (result, args) = match self.func.callee(callee) {
                    CalleeData::Method { args, result, .. } => {
                        self.quoted_operand(w, inst, 0)?;
                        (*result, args)
                    }
                    CalleeData::Symbol { symbol, params, results } => {
                        write!(w, "{}", Shown::Str(self.cx.names.text(*symbol).as_bytes()))?;
                        (results.first().copied().unwrap_or(Type::NOTHING), params)
                    }
                };
                write!(w, ", {}, svec(", self.cx.types.display(result))?;
                self.types(w, args)?;
                w.write_str("), :(:ccall)))")?;
            }
            Op::CGlobal(name) => self.c_global(w, name, inst)?,
            Op::ForeignCall(foreign) => {
                let data = self.func.foreign(foreign);
                w.write_str("$(Expr(:foreigncall, ")?;
                let first = match data.name.map(|name| self.cx.names.text(name)) {
                    Some(name) if is_identifier(name) => {
                        write!(w, ":(:{name})")?;
                        0
                    }
                    Some(name) => {
                        write!(w, "{}", Shown::Str(name.as_bytes()))?;
                        0
                    }
                    None => {
                        self.quoted_operand(w, inst, 0)?;
                        1
                    }
                };
                write!(w, ", {}, svec(", self.cx.types.display(data.result))?;
                self.types(w, &data.params)?;
                write!(w, "), {}, :(:ccall)", data.variadic_after.unwrap_or(0))?;
                for index in first..args.len() {
                    w.write_str(", ")?;
                    self.quoted_operand(w, inst, index)?;
                }
                w.write_str("))")?;
            }
            Op::Load(access) | Op::Store(access) => {
                self.access(w, &format!("{}(", op.name()), inst, access)?;
            }
            Op::AtomicLoad(order) | Op::AtomicStore(order) | Op::AtomicCas(order) => {
                self.ordered(w, &format!("{}(", op.name()), inst, order.name())?;
            }
            Op::AtomicRmw(what, order) => {
                self.ordered(w, &format!("atomic_rmw(:{}, ", what.name()), inst, order.name())?;
            }
            Op::SlotAddr(slot) => {
                let data = self.func.slot(slot);
                let align = 1u64 << data.align_log2.min(63);
                let tracked = if data.tracked { ", tracked = true" } else { "" };
                write!(w, "slot_addr({}; size = {}, align = {align}{tracked})", slot.as_u32(), data.size)?;
            }
            Op::MemCopy
            | Op::Safepoint
            | Op::TypeOf
            | Op::WriteBarrier
            | Op::GcLoaded
            | Op::PointerFromObjref
            | Op::ThreadAddr
            | Op::LaneSelect => self.list(w, &format!("{}(", op.name()), inst)?,
            Op::CallRuntime(entry) => self.list(w, &format!("{entry}("), inst)?,
            Op::Alloc(ty) | Op::AllocStack(ty) => write!(w, "{}({})", op.name(), self.cx.types.display(ty))?,
            Op::CallArgs(entry) => {
                let comma = if args.is_empty() { "" } else { ", " };
                self.list(w, &format!("call_args({entry}{comma}"), inst)?;
            }
            Op::Lanes(what, lanes) => self.list(w, &format!("lanes({what}, {}, ", lanes.name()), inst)?,
            Op::Splat(lanes) => self.list(w, &format!("splat({}, ", lanes.name()), inst)?,
            Op::ExtractLane(lanes, n) => {
                self.list(w, &format!("extract_lane({}, {n}, ", lanes.name()), inst)?
            }
            Op::InsertLane(lanes, n) => {
                self.list(w, &format!("insert_lane({}, {n}, ", lanes.name()), inst)?
            }
        }
        self.result_types(w, inst)?;
        match self.func.call_inlining(inst) {
            Some(inlining) => write!(w, " {}", inlining.word()),
            None => Ok(()),
        }
    }

    fn target(&self, block: Option<Block>) -> String {
        format!("#{}", block.map_or(0, |b| self.block_number(b)))
    }

    /// Prints a note about a loop.
    pub(super) fn loop_info(&self, w: &mut dyn Write, meta: Meta) -> fmt::Result {
        w.write_str("$(Expr(:loopinfo")?;
        for item in &self.func.meta(meta).items {
            w.write_str(", ")?;
            self.meta_item(w, item)?;
        }
        w.write_str("))::Nothing")
    }

    /// Prints ` else #n` if the fall-through target is not the next block.
    fn not_next(&self, w: &mut dyn Write, to: Option<Block>, next: Option<Block>) -> fmt::Result {
        if to == next { Ok(()) } else { write!(w, " else {}", self.target(to)) }
    }

    fn types(&self, w: &mut dyn Write, types: &[Type]) -> fmt::Result {
        for (index, &ty) in types.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(w, "{comma}{}", self.cx.types.display(ty))?;
        }
        Ok(())
    }

    fn result_types(&self, w: &mut dyn Write, inst: Inst) -> fmt::Result {
        let types: Vec<Type> = self.func.results(inst).map(|v| self.func.ty(v)).collect();
        match types[..] {
            [] => Ok(()),
            [one] => write!(w, "::{}", self.cx.types.display(one)),
            _ => {
                w.write_str("::(")?;
                self.types(w, &types)?;
                w.write_str(")")
            }
        }
    }

    /// Prints `open`, all operands and `)`.
    fn list(&self, w: &mut dyn Write, open: &str, inst: Inst) -> fmt::Result {
        w.write_str(open)?;
        self.operands(w, inst)?;
        w.write_str(")")
    }

    fn operands(&self, w: &mut dyn Write, inst: Inst) -> fmt::Result {
        self.operands_from(w, inst, 0)
    }

    fn operands_from(&self, w: &mut dyn Write, inst: Inst, first: usize) -> fmt::Result {
        for index in first..self.func.args(inst).len() {
            w.write_str(if index > first { ", " } else { "" })?;
            self.operand(w, inst, index)?;
        }
        Ok(())
    }

    /// Prints an operand, with its type if `resolve` would infer another one.
    fn operand(&self, w: &mut dyn Write, inst: Inst, index: usize) -> fmt::Result {
        // A malformed statement may lack operands.
        let Some(&value) = self.func.args(inst).get(index) else { return w.write_str("?") };
        if !self.is_plain(value) {
            return self.value(w, value, None);
        }
        if let (Op::Phi, true, Some(result)) = (self.func.op(inst), self.is_high(), self.func.result(inst)) {
            let widths = signed_members(&self.cx.types, self.func.ty(result));
            if widths.len() > 1 {
                // Any other width requires the text to state the type.
                let other = widths.into_iter().find(|ty| *ty != self.func.ty(value));
                return self.value(w, value, other);
            }
        }
        let wanted = match self.wanted_of_plain(inst, index) {
            wanted if self.says_type(value, wanted) => wanted,
            // Plain operands printed with their types also determine the types of others.
            _ => self.wanted(inst, index, |other| {
                let arg = self.func.args(inst)[other];
                !self.is_plain(arg) || self.says_type(arg, self.wanted_of_plain(inst, other))
            }),
        };
        self.value(w, value, wanted)
    }

    fn is_plain(&self, value: Value) -> bool {
        self.func.as_const(value).is_some_and(|constant| is_plain(self.cx, constant))
    }

    /// Whether a plain constant is printed with its type where `wanted` is expected.
    fn says_type(&self, value: Value, wanted: Option<Type>) -> bool {
        integer_type(&self.cx.types, self.func.level, wanted) != self.func.ty(value)
    }

    /// The expected type of a plain operand if all other plain operands are printed without their types.
    fn wanted_of_plain(&self, inst: Inst, index: usize) -> Option<Type> {
        self.wanted(inst, index, |other| !self.is_plain(self.func.args(inst)[other]))
    }

    /// The expected type of an operand. `says_type` returns whether the text alone determines the type of another
    /// operand.
    fn wanted(&self, inst: Inst, index: usize, says_type: impl Fn(usize) -> bool) -> Option<Type> {
        let op = self.func.op(inst);
        if op == Op::Builtin(Builtin::Setglobal) && index == 2 {
            // `resolve` uses the type of the global, which may be declared elsewhere, so the type is always
            // printed.
            return Some(Type::BOTTOM);
        }
        let args = self.func.args(inst);
        let known = |index: usize| {
            let &arg = args.get(index)?;
            says_type(index).then(|| self.func.ty(arg))
        };
        let site = Site {
            types: &self.cx.types,
            func: self.func,
            op,
            result: self.func.results(inst).next().map(|v| self.func.ty(v)),
            known: &known,
            field: args.get(1).and_then(|&arg| self.func.as_const(arg)),
        };
        site.wanted(index)
    }

    /// Prints a value. A plain constant of type `wanted` is printed without its type.
    pub(super) fn value(&self, w: &mut dyn Write, value: Value, wanted: Option<Type>) -> fmt::Result {
        match self.func.value_def(value) {
            ValueDef::Param(number) => self.argument(w, number),
            ValueDef::Result(inst, part) => {
                let row = self.row_number(inst);
                if part == 0 { write!(w, "%{row}") } else { write!(w, "%{row}.{part}") }
            }
            ValueDef::Const(_) => match self.func.as_const(value) {
                Some(Const::Type { of: ty, .. }) => {
                    let text = self.cx.types.display(*ty).to_string();
                    // Quoted if it would be read as an argument with that name, or, for `typeof(f)`, as a
                    // call.
                    let call = matches!(self.cx.types.kind(*ty), TypeKind::Function(_));
                    let quoted = call || self.is_argument_name(&text);
                    if quoted { write!(w, "$(QuoteNode({text}))") } else { w.write_str(&text) }
                }
                Some(constant) => self.values.constant(w, Some(self.func), constant, wanted),
                None => Ok(()),
            },
        }
    }

    // ----- calls -----

    fn is_high(&self) -> bool {
        self.func.level == Level::High
    }

    fn copy(&self, w: &mut dyn Write, inst: Inst) -> fmt::Result {
        let value = self.func.args(inst).first().copied();
        let result = self.func.result(inst).map(|v| self.func.ty(v));
        let is_function = |ty: Type| matches!(self.cx.types.kind(ty), TypeKind::Function(_));
        match value.and_then(|v| self.func.as_const(v)) {
            // A row that consists of a name is read as a global variable unless its type is the function's.
            Some(&Const::Singleton(ty)) if is_function(ty) && result != Some(ty) => {
                w.write_str("$(QuoteNode(")?;
                self.operands(w, inst)?;
                w.write_str("))")
            }
            _ => self.operands(w, inst),
        }
    }

    fn intrinsic(&self, w: &mut dyn Write, op: Intrinsic, inst: Inst) -> fmt::Result {
        if self.is_high() {
            write!(w, "intrinsic Base.{op}(")?;
        } else {
            write!(w, "{op}(")?;
        }
        if op.takes_type() {
            let ty = self.func.result(inst).map_or(Type::ANY, |v| self.func.ty(v));
            write!(w, "{}, ", self.cx.types.display(ty))?;
        }
        self.list(w, "", inst)
    }

    /// `cglobal(:name, T)`, for an address of `T`s.
    fn c_global(&self, w: &mut dyn Write, name: Name, inst: Inst) -> fmt::Result {
        w.write_str(if self.is_high() { "intrinsic Base.cglobal(" } else { "cglobal(" })?;
        write!(w, "{}", Shown::Symbol(self.cx.names.text(name)))?;
        let pointee = self.func.result(inst).and_then(|value| self.cx.types.pointee(self.func.ty(value)));
        if let Some(of) = pointee {
            write!(w, ", {}", self.cx.types.display(of))?;
        }
        w.write_str(")")
    }

    fn builtin(&self, w: &mut dyn Write, op: Builtin, inst: Inst) -> fmt::Result {
        if !self.is_high() {
            return self.list(w, &format!("{op}("), inst);
        }
        w.write_str(if self.dispatches(op, inst) { "dynamic builtin " } else { "  builtin " })?;
        if matches!(op, Builtin::Egal | Builtin::Isa | Builtin::Subtype) && self.func.args(inst).len() == 2 {
            w.write_str("(")?;
            self.operand(w, inst, 0)?;
            write!(w, " {op} ")?;
            self.operand(w, inst, 1)?;
            return w.write_str(")");
        }
        self.list(w, &format!("Core.{op}("), inst)
    }

    /// Whether Julia labels a call of the builtin `dynamic`.
    fn dispatches(&self, op: Builtin, inst: Inst) -> bool {
        let args = self.func.args(inst);
        match op {
            Builtin::InvokeInWorld | Builtin::Invokelatest => true,
            Builtin::ApplyIterate => {
                let types = &self.cx.types;
                let builtin = args.get(1).is_some_and(|&f| match types.kind(self.func.ty(f)) {
                    TypeKind::Function(name) => Builtin::from_name(self.cx.names.text(name.name)).is_some(),
                    _ => false,
                });
                let inlined = |ty: Type| {
                    types.array_parts(ty).is_some()
                        || types.memory_element(ty).is_some()
                        || matches!(types.kind(ty), TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. })
                };
                !builtin || !args.iter().skip(2).all(|&arg| inlined(self.func.ty(arg)))
            }
            _ => false,
        }
    }

    fn dynamic_call(&self, w: &mut dyn Write, inst: Inst) -> fmt::Result {
        w.write_str("  dynamic ")?;
        let callee = self.func.args(inst).first().copied();
        match callee.and_then(|v| self.func.as_const(v)) {
            Some(Const::Singleton(ty)) => match self.cx.types.kind(*ty) {
                TypeKind::Function(name) => {
                    let text = self.cx.names.text(name.name);
                    // A bare name of an intrinsic or builtin would be read as a call to it.
                    let is_operation =
                        Intrinsic::from_name(text).is_some() || Builtin::from_name(text).is_some();
                    if is_operation {
                        w.write_str("$(QuoteNode(")?;
                        self.values.function(w, *name)?;
                        w.write_str("))")?;
                    } else {
                        self.values.function(w, *name)?;
                    }
                }
                _ => self.operand(w, inst, 0)?,
            },
            Some(Const::Bits { .. }) => {
                w.write_str("$(QuoteNode(")?;
                self.operand(w, inst, 0)?;
                w.write_str("))")?;
            }
            _ if callee.is_some() => self.operand(w, inst, 0)?,
            _ => {}
        }
        w.write_str("(")?;
        self.operands_from(w, inst, 1)?;
        w.write_str(")")
    }

    fn invoke(&self, w: &mut dyn Write, callee: &CalleeData, inst: Inst) -> fmt::Result {
        let args = self.func.args(inst);
        let (first, types) = match callee {
            CalleeData::Method { function, args: types, .. } => {
                w.write_str("   invoke ")?;
                let object = args.first().copied();
                match (self.cx.types.kind(*function), object.and_then(|v| self.func.as_const(v))) {
                    (TypeKind::Function(name), Some(Const::Singleton(ty))) if ty == function => {
                        self.values.function(w, *name)?;
                    }
                    _ => {
                        w.write_str("(")?;
                        if object.is_some() {
                            self.operand(w, inst, 0)?;
                        }
                        write!(w, "::{})", self.cx.types.display(*function))?;
                    }
                }
                (1, types)
            }
            CalleeData::Symbol { symbol, params, .. } => {
                w.write_str("invoke ")?;
                name_text(w, self.cx.names.text(*symbol))?;
                (0, params)
            }
        };
        w.write_str("(")?;
        for index in first..args.len() {
            w.write_str(if index > first { ", " } else { "" })?;
            self.operand(w, inst, index)?;
            if let Some(&ty) = types.get(index - first) {
                write!(w, "::{}", self.cx.types.display(ty))?;
            }
        }
        w.write_str(")")
    }

    // ----- `Expr` heads -----

    fn head(&self, w: &mut dyn Write, head: &str, inst: Inst) -> fmt::Result {
        write!(w, "$(Expr(:{head}")?;
        self.quoted_operands(w, inst)?;
        w.write_str("))")
    }

    fn quoted_operands(&self, w: &mut dyn Write, inst: Inst) -> fmt::Result {
        for index in 0..self.func.args(inst).len() {
            w.write_str(", ")?;
            self.quoted_operand(w, inst, index)?;
        }
        Ok(())
    }

    fn quoted_operand(&self, w: &mut dyn Write, inst: Inst, index: usize) -> fmt::Result {
        let quoted = match self.func.args(inst).get(index).map(|&value| self.func.as_const(value)) {
            Some(None) => true,
            Some(Some(Const::Symbol(name))) => is_identifier(self.cx.names.text(*name)),
            Some(Some(_)) | None => false,
        };
        if !quoted {
            return self.operand(w, inst, index);
        }
        w.write_str(":(")?;
        self.operand(w, inst, index)?;
        w.write_str(")")
    }

    fn meta_item(&self, w: &mut dyn Write, item: &MetaItem) -> fmt::Result {
        let symbol = |name| Shown::Symbol(self.cx.names.text(name)).to_string();
        match *item {
            MetaItem::Name(name) if is_identifier(self.cx.names.text(name)) => {
                write!(w, ":({})", symbol(name))
            }
            MetaItem::Name(name) => w.write_str(&symbol(name)),
            MetaItem::Int(value) => write!(w, "{value}"),
            MetaItem::Nothing => w.write_str("nothing"),
            MetaItem::Pair(name, value) => write!(w, "({}, {value})", symbol(name)),
        }
    }

    // ----- low IR -----

    fn access(&self, w: &mut dyn Write, open: &str, inst: Inst, access: Access) -> fmt::Result {
        w.write_str(open)?;
        self.operands(w, inst)?;
        let align = 1u64 << access.align_log2.min(63);
        write!(w, "; offset = {}, region = {}, align = {align})", access.offset, access.region.name())
    }

    fn ordered(&self, w: &mut dyn Write, open: &str, inst: Inst, order: &str) -> fmt::Result {
        w.write_str(open)?;
        self.operands(w, inst)?;
        write!(w, ", :{order})")
    }
}
