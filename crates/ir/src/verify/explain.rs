//! Violations as diagnostics: the sentence, the places and the evidence.
//!
//! A function read from text has the places of its statements ([`source_span`]). Any other function is
//! printed first, and the printer records the place of each statement, as a function from [`Site`] to
//! [`Span`]. Blocks are named by their number in the function's order, from 1, as in the text.

use super::{
    CallRule, ConstantRule, ExceptionRule, FieldRef, GlobalRule, GlobalViolation, LevelRule, LowRule, Rule,
    Site, SsaRule, StructureRule, TypeRule, Violation, Wanted,
};
use crate::context::Context;
use crate::diag::{Diagnostic, Severity, SourceFile, Span, counted};
use crate::entity::{Block, Inst};
use crate::func::Func;
use crate::names::Name;
use crate::op::Op;
use crate::runtime_fn::RuntimeFn;
use crate::text::show_func;
use crate::types::{Type, TypeKind};
use cranelift_entity::SecondaryMap;

/// Where the sites of a function are in the text from which it was read.
pub fn source_span(func: &Func) -> impl Fn(Site) -> Span + '_ {
    let of = |inst: Option<Inst>| {
        let place = inst.map(|i| func.place(i)).unwrap_or_default();
        Span::new(place.start, place.end)
    };
    move |site| match site {
        Site::Func => of(func.entry().and_then(|b| func.first_inst(b))),
        Site::Block(block) => of(func.first_inst(block)),
        Site::Inst(inst) => of(Some(inst)),
    }
}

/// Prints a function that has no source text and points into the printout: the text and the diagnostics. If
/// ids are out of range or constants are unbounded, the function cannot be printed and the text is empty.
pub fn point_into_printout(
    cx: &Context,
    func: &Func,
    violations: &[Violation],
) -> (SourceFile, Vec<Diagnostic>) {
    let unprintable = |rule: &Rule| {
        matches!(
            rule,
            Rule::Structure(StructureRule::Id { .. })
                | Rule::Constant(ConstantRule::Size { .. } | ConstantRule::Field { .. })
        )
    };
    let unprintable = violations.iter().any(|v| unprintable(&v.rule));
    let text = if unprintable { String::new() } else { show_func(cx, func).to_string() };
    let name = cx.names.text(func.name);
    let source = SourceFile::new(format!("<{name}>"), text).unwrap_or_else(|_| empty_source(name));
    // The signature takes one line, then each statement, or an empty block, takes one.
    let mut lines = SecondaryMap::<Inst, u32>::new();
    let mut heads = SecondaryMap::<Block, u32>::new();
    let mut line = 1;
    for block in func.blocks() {
        heads[block] = line + 1;
        for inst in func.block_insts(block) {
            line += 1;
            lines[inst] = line;
        }
        line += u32::from(func.first_inst(block).is_none());
    }
    let span = |site| {
        let line = match site {
            Site::Func => 1,
            Site::Block(block) => heads[block],
            Site::Inst(inst) => lines[inst],
        };
        let span = source.line_span(line.max(1));
        // The guard of the row and the space for a number are not part of the statement.
        let row = source.slice(span);
        let skipped = row.find(|c: char| !"│└─┄ 0123456789".contains(c)).unwrap_or(0);
        Span::new(span.start + skipped as u32, span.end)
    };
    let diagnostics = violations.iter().map(|v| v.diagnostic(cx, func, &span)).collect();
    (source, diagnostics)
}

fn empty_source(name: &str) -> SourceFile {
    // An empty text is never too large.
    SourceFile::new(format!("<{name}>"), "").expect("an empty text has room for spans")
}

impl Violation {
    /// The violation as a diagnostic; `span` maps the sites of `func` to the displayed text.
    pub fn diagnostic(&self, cx: &Context, func: &Func, span: &dyn Fn(Site) -> Span) -> Diagnostic {
        let words = Words::new(cx, func);
        let text = words.explain(self);
        Diagnostic {
            severity: Severity::Error,
            code: self.code(),
            message: text.message,
            at: span(self.site),
            label: String::new(),
            related: text.related.into_iter().map(|(site, label)| (span(site), label)).collect(),
            notes: text.notes,
        }
    }
}

impl GlobalViolation {
    /// The violation as a sentence.
    pub fn message(&self, cx: &Context) -> String {
        let (name, ty) = (cx.names.text(self.name), |ty| cx.types.display(ty));
        match self.rule {
            GlobalRule::Unknown { kind, number } => {
                format!("global `{name}` names {kind} {number}, which does not exist")
            }
            GlobalRule::Type { wanted, given } => {
                let (given, wanted) = (ty(given), ty(wanted));
                format!("the first value of global `{name}` has the type `{given}` and not `{wanted}`")
            }
            GlobalRule::SharedByThreads => format!(
                "the first value of the thread-local global `{name}` has an identity, so all threads would \
                 share the object; begin with `nothing`, and make an object in each thread"
            ),
        }
    }
}

#[derive(Default)]
struct Text {
    message: String,
    related: Vec<(Site, String)>,
    notes: Vec<String>,
}

impl Text {
    fn new(message: impl Into<String>) -> Text {
        Text { message: message.into(), ..Text::default() }
    }

    fn at(mut self, site: Site, label: &str) -> Text {
        self.related.push((site, label.to_owned()));
        self
    }

    fn note(mut self, note: impl Into<String>) -> Text {
        self.notes.push(note.into());
        self
    }
}

/// The names of the parts of a function in messages.
struct Words<'a> {
    cx: &'a Context,
    func: &'a Func,
    numbers: SecondaryMap<Block, u32>,
}

impl<'a> Words<'a> {
    fn new(cx: &'a Context, func: &'a Func) -> Self {
        let mut numbers = SecondaryMap::new();
        for (n, block) in func.blocks().enumerate() {
            numbers[block] = n as u32 + 1;
        }
        Words { cx, func, numbers }
    }

    fn ty(&self, ty: Type) -> String {
        format!("`{}`", self.cx.types.display(ty))
    }

    fn tys(&self, types: &[Type]) -> String {
        let list: Vec<String> = types.iter().map(|&t| self.cx.types.display(t).to_string()).collect();
        format!("({})", list.join(", "))
    }

    fn name(&self, name: Name) -> &'a str {
        self.cx.names.text(name)
    }

    fn block(&self, block: Block) -> String {
        match self.numbers[block] {
            0 => "a block that is not placed".to_owned(),
            n => format!("#{n}"),
        }
    }

    fn path(&self, path: &[Block]) -> String {
        const SHOWN: usize = 12;
        let shown: Vec<String> = path.iter().take(SHOWN).map(|&b| self.block(b)).collect();
        let rest = if path.len() > SHOWN { " → …" } else { "" };
        format!("{}{rest}", shown.join(" → "))
    }

    fn wanted(&self, wanted: &Wanted) -> String {
        match wanted {
            Wanted::Type(ty) => self.ty(*ty),
            Wanted::Kind(kind) => (*kind).to_owned(),
        }
    }

    fn field(&self, field: FieldRef) -> String {
        match field {
            FieldRef::Name(name) => format!("`{}`", self.name(name)),
            FieldRef::Number(number) => format!("number {number}"),
        }
    }

    fn function(&self, function: Type) -> String {
        match self.cx.types.kind(function) {
            TypeKind::Function(name) => format!("`{}`", name.display(&self.cx.names)),
            _ => format!("an object of type {}", self.ty(function)),
        }
    }

    /// The operation at a site, as the subject of a sentence.
    fn op_at(&self, site: Site) -> String {
        let Site::Inst(inst) = site else { return "the statement".to_owned() };
        match self.func.op(inst) {
            Op::Copy => "the value".to_owned(),
            Op::Call => "the call".to_owned(),
            Op::GetGlobal(_) => "the global".to_owned(),
            Op::CallArgs(f) => format!("`{}`", f.symbol()),
            Op::Lanes(op, _) => format!("`{}`", op.name()),
            op => format!("`{}`", op.name()),
        }
    }

    fn explain(&self, violation: &Violation) -> Text {
        let op = || self.op_at(violation.site);
        match &violation.rule {
            Rule::Structure(rule) => self.structure(rule, op),
            Rule::Level(rule) => self.level_text(rule, op),
            Rule::Constant(rule) => self.constant(rule),
            Rule::Ssa(rule) => self.ssa(rule, op),
            Rule::Type(rule) => self.type_text(rule, op),
            Rule::Low(rule) => self.low(rule),
            Rule::Exception(rule) => self.exception(rule),
            Rule::Call(rule) => self.call(rule),
            Rule::Door(door) => {
                let subject = if violation.site == Site::Func { "the function".to_owned() } else { op() };
                Text::new(format!(
                    "{subject} is the door `{}`, which is closed: {}",
                    door.name(),
                    door.reason()
                ))
                .note(format!(
                    "whoever opens the doors (`Doors::open`) answers for this: {}",
                    door.obligation()
                ))
            }
        }
    }

    fn structure(&self, rule: &StructureRule, op: impl Fn() -> String) -> Text {
        match rule {
            StructureRule::Id { kind, number } => {
                let whole = matches!(kind, &"type" | &"name").then(|| "the function".to_owned());
                Text::new(format!("{} names {kind} {number}, which does not exist", whole.unwrap_or_else(op)))
            }
            StructureRule::NoBlocks => Text::new("the function has no blocks"),
            StructureRule::NoTerminator => {
                Text::new("the block does not end in a jump, `return` or `unreachable`")
            }
            StructureRule::AfterTerminator { terminator } => {
                Text::new(format!("{} is after the end of its block", op()))
                    .at(Site::Inst(*terminator), "the block ends here")
            }
            StructureRule::TargetCount { given, wanted } => {
                Text::new(format!("{} names {given} blocks, not {wanted}", op()))
            }
            StructureRule::TargetNotPlaced { target } => {
                Text::new(format!("{} leads to {}", op(), self.block(*target)))
            }
            StructureRule::EntryEntered { from } => {
                Text::new("the first block is a target").at(Site::Inst(*from), "jumps there")
            }
            StructureRule::PhiNotAtHead { after } => Text::new("a φ is after another statement of its block")
                .at(Site::Inst(*after), "the φ have to be before this"),
            StructureRule::HandlerEntered { enter, from } => {
                Text::new("a handler is entered by something else than an exception")
                    .at(Site::Inst(*from), "enters it")
                    .at(Site::Inst(*enter), "makes it a handler")
            }
            StructureRule::NotUnreachable => {
                Text::new(format!("{} never comes back, but `unreachable` does not follow", op()))
            }
            StructureRule::OperandCount { given, wanted } => {
                Text::new(format!("{} takes {wanted} operands, not {given}", op()))
            }
            StructureRule::ResultCount { given, least, most } if least == most => {
                Text::new(format!("{} has {least} results, not {given}", op()))
            }
            StructureRule::ResultCount { given, least, most } => {
                Text::new(format!("{} has {least} to {most} results, not {given}", op()))
            }
        }
    }

    fn level_text(&self, rule: &LevelRule, op: impl Fn() -> String) -> Text {
        Text::new(match rule {
            LevelRule::Operation { level } => format!("{} does not exist in {level} IR", op()),
            LevelRule::ValueType { level, ty } => {
                let ty = self.ty(*ty);
                format!("{} has a value of type {ty}, which does not exist in {level} IR", op())
            }
            LevelRule::SignatureType { level, ty } => {
                format!("the signature has the type {}, which does not exist in {level} IR", self.ty(*ty))
            }
            LevelRule::ResultCount { given } => format!("a high function has one result, not {given}"),
            LevelRule::NoFunctionObject => "a high function needs argument 0, the function object".to_owned(),
            LevelRule::Vararg { ty: Some(ty) } => {
                format!("the last argument collects others, but its type {} is not a tuple", self.ty(*ty))
            }
            LevelRule::Statics { why } => format!("the variables of the `where`: {why}"),
            LevelRule::Vararg { ty: None } => "there is no argument that could collect others".to_owned(),
        })
    }

    fn constant(&self, rule: &ConstantRule) -> Text {
        Text::new(match rule {
            ConstantRule::Bits { ty, bits } => {
                format!("a constant of type {} cannot have the bits {bits:#x}", self.ty(*ty))
            }
            ConstantRule::Singleton { ty } => format!("{} has not exactly one value", self.ty(*ty)),
            ConstantRule::Type { of, given } => {
                format!("the type {} as a constant is not of type {}", self.ty(*of), self.ty(*given))
            }
            ConstantRule::Aggregate { ty, given } => {
                format!("a constant of type {} cannot be made of {given} fields", self.ty(*ty))
            }
            ConstantRule::Field { ty, index, wanted, given } => {
                let given = given.map_or("not an earlier constant".to_owned(), |t| self.ty(t));
                let (ty, wanted) = (self.ty(*ty), self.ty(*wanted));
                format!("field {} of a constant of type {ty} is {given} and not {wanted}", index + 1)
            }
            ConstantRule::Size { ty } => {
                format!("a constant of type {} nests too deep or has too many parts", self.ty(*ty))
            }
            ConstantRule::Data { number, count } => {
                format!("there are no constant bytes number {number}; the function has {count}")
            }
        })
    }

    fn ssa(&self, rule: &SsaRule, op: impl Fn() -> String) -> Text {
        match rule {
            SsaRule::NotDominated { operand, def, path } => {
                let operand = operand + 1;
                let text = if path.is_empty() {
                    Text::new(format!("operand {operand} of {} is used before it is defined", op()))
                } else {
                    let message = format!("operand {operand} of {} is not defined on every path to it", op());
                    Text::new(message).note(format!("a path without the definition: {}", self.path(path)))
                };
                text.at(Site::Inst(*def), "defined here")
            }
            SsaRule::NotPlaced { operand, .. } => {
                let message = format!("operand {} of {} is not defined anywhere", operand + 1, op());
                Text::new(message)
            }
            SsaRule::NotPredecessor { block, preds } => {
                let preds: Vec<String> = preds.iter().map(|&b| self.block(b)).collect();
                let preds = if preds.is_empty() { "none".to_owned() } else { preds.join(", ") };
                Text::new(format!("the φ names {}, which does not lead here", self.block(*block)))
                    .note(format!("predecessors: {preds}"))
            }
            SsaRule::EdgeTwice { block } => Text::new(format!("the φ names {} twice", self.block(*block))),
            SsaRule::EdgeNotDominated { block, def, path } => {
                let message = format!(
                    "the value that the φ takes from {} is not defined on every path",
                    self.block(*block)
                );
                Text::new(message)
                    .at(Site::Inst(*def), "defined here")
                    .note(format!("a path without the definition: {}", self.path(path)))
            }
            SsaRule::NotUpsilon { operand } => {
                Text::new(format!("operand {} of a φᶜ is not a ϒ", operand + 1))
            }
            SsaRule::PhiCNotInHandler => Text::new("a φᶜ is outside of a handler"),
            SsaRule::UpsilonUsed { upsilon } => {
                Text::new(format!("{} uses a ϒ, which only φᶜ may", op())).at(Site::Inst(*upsilon), "the ϒ")
            }
            SsaRule::Token => Text::new(format!("{} mixes tokens with other values", op())),
            SsaRule::NotPreserve => {
                Text::new("the operand of `gc_preserve_end` is not a `gc_preserve_begin`")
            }
        }
    }

    fn type_text(&self, rule: &TypeRule, op: impl Fn() -> String) -> Text {
        Text::new(match rule {
            TypeRule::Operand { operand, given, wanted } => {
                let (given, wanted) = (self.ty(*given), self.wanted(wanted));
                format!("operand {} of {} has the type {given}, not {wanted}", operand + 1, op())
            }
            TypeRule::Result { given, wanted } => {
                format!("{} returns {}, not {}", op(), self.wanted(wanted), self.ty(*given))
            }
            TypeRule::Unequal { left, operand, right } => {
                let (left, right) = (self.ty(*left), self.ty(*right));
                format!(
                    "{} takes operands of one type, but operand 1 is {left} and operand {} is {right}",
                    op(),
                    operand + 1
                )
            }
            TypeRule::Scalar(misuse) => misuse.to_string(),
            TypeRule::NoField { object, field } => {
                return Text::new(format!("{} has no field {}", self.ty(*object), self.field(*field)))
                    .note(self.fields_of(*object));
            }
            TypeRule::Immutable { object, field: Some(field) } => {
                format!("field {} of {} is `const`", self.field(*field), self.ty(*object))
            }
            TypeRule::Immutable { object, field: None } => format!("{} is immutable", self.ty(*object)),
            TypeRule::New { ty, why } => format!("{} makes no {}: {why}", op(), self.ty(*ty)),
            TypeRule::FieldCount { ty, given, fields } => {
                format!("{} has {fields} fields, but {given} values are given", self.ty(*ty))
            }
            TypeRule::ReturnCount { given, wanted } => {
                format!("{} has {given} values, but the function has {wanted} results", op())
            }
            TypeRule::StaticParameter { number, count } => {
                format!("there is no static parameter {number}: the `where` of the function has {count}")
            }
            TypeRule::Order { symbol } => format!("`:{}` is not a memory order", self.name(*symbol)),
            TypeRule::FailureOrder { success, failure } => {
                format!(
                    "`:{}` when it fails is stricter than `:{}` when it succeeds",
                    failure.name(),
                    success.name()
                )
            }
        })
    }

    fn fields_of(&self, object: Type) -> String {
        let types = &self.cx.types;
        let names: Vec<&str> = match (types.kind(object), types.fields(object)) {
            (TypeKind::NamedTuple { names, .. }, _) => names.iter().map(|&n| self.name(n)).collect(),
            (_, Some(fields)) => fields.iter().map(|f| self.name(f.name)).collect(),
            _ => return format!("it has {} fields", types.field_count(object).unwrap_or(0)),
        };
        format!("its fields: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }

    fn low(&self, rule: &LowRule) -> Text {
        Text::new(match rule {
            LowRule::Address { given } => format!("memory is not reached through a {}", self.ty(*given)),
            LowRule::MemoryClass { given } => format!("a {} pointer is not kept in memory", self.ty(*given)),
            LowRule::ConstantWritten => "constant memory is written".to_owned(),
            LowRule::Align { log2 } => format!("an alignment of 2^{log2} bytes does not exist"),
            LowRule::OutsideSlot { offset, bytes, size } => {
                let (bytes, size) = (counted(bytes, "byte"), counted(size, "byte"));
                format!("an access of {bytes} at offset {offset} is outside of its stack slot of {size}")
            }
            LowRule::SlotSize { size } => format!("a stack slot of {size} bytes is too large"),
            LowRule::Order { order } => format!("`{}` is not an order for this access", order.name()),
            LowRule::Atomic { given } => format!("a {} is not changed atomically like this", self.ty(*given)),
            LowRule::Class { from, to } => format!("a {} does not become a {}", self.ty(*from), self.ty(*to)),
            LowRule::ObjectType { given } => {
                format!("objects of type {} have no fixed size", self.ty(*given))
            }
            LowRule::TrackedSlot { given: None } => {
                "a slot for a reference has the size and alignment of an address".to_owned()
            }
            LowRule::TrackedSlot { given: Some(given) } => {
                format!("the slot holds a reference, no {}", self.ty(*given))
            }
            LowRule::NoLanes { op, lanes } => format!("`{op}` does not exist for lanes {}", lanes.name()),
            LowRule::Lane { lane, lanes } => format!("{} has no lane {lane}", lanes.name()),
            LowRule::CellOfThreads { name } => format!(
                "`{}` is thread-local: only `{}` takes the address of its cell",
                self.name(*name),
                RuntimeFn::ThreadCell
            ),
            LowRule::ReturnClass { given } => format!("a {} pointer is not returned", self.ty(*given)),
        })
    }

    fn exception(&self, rule: &ExceptionRule) -> Text {
        match rule {
            ExceptionRule::Join { first, first_depth, second, second_depth } => {
                let text = Text::new("the handlers in force depend on the way into the block");
                let note = |b: Block, depth: u32| {
                    format!("handlers in force on the edge from {}: {depth}", self.block(b))
                };
                let end = |b: Block| self.func.last_inst(b).map_or(Site::Block(b), Site::Inst);
                text.at(end(*first), "one edge")
                    .at(end(*second), "another edge")
                    .note(note(*first, *first_depth))
                    .note(note(*second, *second_depth))
            }
            ExceptionRule::Leave { operand, innermost } => {
                let text =
                    Text::new(format!("operand {} of `leave` is not the innermost handler", operand + 1));
                match innermost {
                    Some(enter) => text.at(Site::Inst(*enter), "the innermost handler"),
                    None => text.note("no handler is in force here"),
                }
            }
            ExceptionRule::NotEnter { operand } => {
                Text::new(format!("operand {} is not a token of `enter`", operand + 1))
            }
            ExceptionRule::ReturnInside { innermost } => {
                Text::new("the function returns while a handler is in force")
                    .at(Site::Inst(*innermost), "this handler")
            }
            ExceptionRule::PopOutside { enter } => {
                Text::new("`pop_exception` is outside of the handler whose exception it ends")
                    .at(Site::Inst(*enter), "installs the handler")
            }
            ExceptionRule::NoException => Text::new("`the_exception` is where no exception is being handled"),
        }
    }

    fn call(&self, rule: &CallRule) -> Text {
        match rule {
            CallRule::Refused { name, why } => Text::new(format!("`{name}` is not supported: {why}")),
            CallRule::UnknownMethod { function, args, candidates } => {
                let message = format!("{} has no method for {}", self.function(*function), self.tys(args));
                let mut text = Text::new(message);
                for candidate in candidates.iter().take(10) {
                    text = text.note(format!("there is {candidate}"));
                }
                text
            }
            CallRule::UnknownForeign { name } => {
                Text::new(format!("there is no C function `{}`", self.name(*name)))
            }
            CallRule::OperandCount { given, wanted } => {
                Text::new(format!("the callee takes {}, not {given}", counted(wanted, "argument")))
            }
            CallRule::SymbolSignature { symbol, params, results } => {
                let message = format!("`{}` has another signature than this call", self.name(*symbol));
                Text::new(message).note(format!("it is {} -> {}", self.tys(params), self.tys(results)))
            }
            CallRule::NotMethod => Text::new("`invoke` names a symbol and not a method"),
            CallRule::NotSymbol => Text::new("the call names a method and not a symbol"),
            CallRule::UnknownGlobal { name } => {
                Text::new(format!("there is no global variable `{}`", self.name(*name)))
            }
        }
    }
}
