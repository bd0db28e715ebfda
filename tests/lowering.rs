//! Low IR means what the high IR meant that it was lowered from.
//!
//! The reference interpreter runs both and the outcomes are compared: results bit for bit, exceptions by type, output byte
//! for byte. Each call becomes a high function of its own that calls with constant arguments, so that lowering passes the
//! arguments and only results have to be read back from registers.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use brolga::fuzz::generate::{self, Features};
use brolga::fuzz::rng::Rng;
use brolga::fuzz::values;
use brolga_ir::abi::{self, LeafRole};
use brolga_ir::cursor::Cursor;
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::func::CalleeData;
use brolga_ir::interp::{
    ForeignCall, Interp, MemoryError, Options, Outcome, Output, RawMemory, SimMemory, Val,
};
use brolga_ir::module::Literal;
use brolga_ir::text::{Term, read, show_func};
use brolga_ir::types::{FieldRepr, Layout, Type, TypeKind, Types};
use brolga_ir::verify::verify_func;
use brolga_ir::{Const, Context, Func, FuncId, Level, Module, Op, Param, Signature, Value};
use brolga_opt::lower::{self, lower_module};

/// Memory that the test can read after the run.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<SimMemory>>);

impl RawMemory for Shared {
    fn allocate(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        self.0.borrow_mut().allocate(size, align)
    }
    fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.0.borrow_mut().free(address)
    }
    fn load(&mut self, address: u64, align: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.0.borrow_mut().load(address, align, out)
    }
    fn store(&mut self, address: u64, align: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.0.borrow_mut().store(address, align, bytes)
    }
    fn copy(&mut self, to: u64, from: u64, size: u64) -> Result<(), MemoryError> {
        self.0.borrow_mut().copy(to, from, size)
    }
    fn call(&mut self, call: &ForeignCall<'_>) -> Result<u128, MemoryError> {
        self.0.borrow_mut().call(call)
    }
}

/// What was printed.
#[derive(Clone, Default)]
struct Printed(Rc<RefCell<Vec<u8>>>);

impl Output for Printed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}

// ----- calls as functions -----

fn constant(func: &mut Func, literal: &Literal) -> Value {
    match literal {
        Literal::Const(data) => func.constant(data.clone()),
        Literal::Aggregate { ty, fields } => {
            let fields = fields.iter().map(|f| constant(func, f)).collect();
            func.constant(Const::Aggregate { ty: *ty, fields })
        }
    }
}

/// A function without arguments that calls `callee` with these. `None` if its function object is no plain function.
fn entry(module: &Module, callee: FuncId, args: &[Literal], number: usize) -> Option<Func> {
    let cx = &module.cx;
    let sig = &module.func(callee).sig;
    let (object, params) = sig.params.split_first()?;
    if sig.vararg || params.len() != args.len() || !cx.types.is_singleton(object.ty) {
        return None;
    }
    let name = cx.names.intern(&format!("entry {number}"));
    let result = sig.results[0];
    let this = Param { name: None, ty: cx.types.function(name) };
    let mut func =
        Func::new(name, Level::High, Signature { params: vec![this], results: vec![result], vararg: false });
    let data =
        CalleeData::Method { function: object.ty, args: params.iter().map(|p| p.ty).collect(), result };
    let method = func.add_callee(data);
    let mut operands = vec![func.constant(Const::Singleton(object.ty))];
    operands.extend(args.iter().map(|a| constant(&mut func, a)));
    let mut at = Cursor::new(&mut func);
    at.append_block();
    let value = at.ins_value(Op::Invoke(method), &operands, result);
    at.ret(&[value]);
    Some(func)
}

// ----- results as text -----

fn text_of_bits(types: &Types, ty: Type, bits: u128) -> String {
    format!("{}({bits:#x})", types.display(ty))
}

/// A value of the high interpreter.
fn text_of_val(interp: &mut Interp<'_>, types: &Types, val: &Val) -> String {
    match val {
        Val::Bits { ty, bits } => text_of_bits(types, *ty, *bits),
        Val::Symbol(name) => format!("{:?}", types.names().text(*name)),
        Val::Struct(fields) => {
            let mut text = format!("{}(", types.display(fields.ty()));
            for field in fields.fields() {
                match field {
                    Some(field) => text.push_str(&text_of_val(interp, types, field)),
                    None => text.push('?'),
                }
                text.push(',');
            }
            text + ")"
        }
        Val::Type(ty) => format!("Type{{{}}}()", types.display(*ty)),
        other => match interp.string_bytes(other).ok().flatten() {
            Some(bytes) => format!("{:?}", String::from_utf8_lossy(&bytes)),
            None => format!("{}()", types.display(other.ty(types))),
        },
    }
}

/// The bytes of a permanent record.
fn record(memory: &mut Shared, address: u64) -> String {
    let mut length = [0; 8];
    memory.load(address, 8, &mut length).expect("a record");
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    memory.load(address + 8, 1, &mut bytes).expect("a record");
    format!("{:?}", String::from_utf8_lossy(&bytes))
}

/// A value as it lies in memory.
fn text_of_bytes(types: &Types, memory: &mut Shared, ty: Type, bytes: &[u8]) -> String {
    let number = |range: std::ops::Range<usize>| {
        let mut word = [0; 16];
        word[..range.len()].copy_from_slice(&bytes[range]);
        u128::from_le_bytes(word)
    };
    if ty == Type::STRING || ty == Type::SYMBOL {
        return record(memory, number(0..8) as u64);
    }
    if let TypeKind::Union(members) = types.kind(ty) {
        let (payload, _) = types.union_extent(members).expect("a union of bits");
        let member = members[usize::from(bytes[payload as usize])];
        return text_of_bytes(types, memory, member, bytes);
    }
    let layout: &Layout = types.layout(ty).expect("a layout");
    if types.primitive(ty).is_some() {
        return text_of_bits(types, ty, number(0..layout.size as usize));
    }
    if types.is_singleton(ty) {
        return format!("{}()", types.display(ty));
    }
    let mut text = format!("{}(", types.display(ty));
    for field in &layout.fields {
        let range = field.offset as usize..(field.offset + field.size) as usize;
        assert!(field.repr != FieldRepr::Pointer || matches!(field.ty, Type::STRING | Type::SYMBOL));
        let _ = write!(text, "{},", text_of_bytes(types, memory, field.ty, &bytes[range]));
    }
    text + ")"
}

/// The result of a low function as the value of the high type that it stands for.
fn text_of_leaves(types: &Types, memory: &mut Shared, ty: Type, leaves: &[Val]) -> String {
    let form = abi::form(types, ty).expect("a native result");
    let mut bytes = vec![0; form.size as usize];
    assert_eq!(leaves.len(), form.leaves.len());
    for (leaf, val) in form.leaves.iter().zip(leaves) {
        assert_ne!(leaf.role, LeafRole::Address);
        let word = val.as_bits().expect("a register").to_le_bytes();
        bytes[leaf.offset as usize..(leaf.offset + leaf.bytes) as usize]
            .copy_from_slice(&word[..leaf.bytes as usize]);
    }
    text_of_bytes(types, memory, ty, &bytes)
}

fn text_of_outcome(types: &Types, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Thrown(val) => format!("throws {}", types.display(val.ty(types))),
        Outcome::Error(error) => format!("cannot go on: {error:?}"),
        Outcome::OutOfFuel => "never ends".to_owned(),
    }
}

// ----- both runs -----

const LIMITS: Options =
    Options { max_steps: 3_000_000, max_depth: 2_000, max_heap_bytes: 1 << 26, max_stack_bytes: 1 << 26 };

fn run_high(module: &Module, id: FuncId) -> (String, Vec<u8>) {
    let printed = Printed::default();
    let mut interp = Interp::new(module, LIMITS, Box::new(Shared::default()));
    interp.set_output(Box::new(printed.clone()));
    let text = match interp.call(id, &[]) {
        Ok(val) => text_of_val(&mut interp, &module.cx.types, &val),
        Err(outcome) => text_of_outcome(&module.cx.types, &outcome),
    };
    (text, printed.0.take())
}

fn run_low(module: &Module, id: FuncId, result: Type) -> (String, Vec<u8>) {
    let types = &module.cx.types;
    let (printed, mut memory) = (Printed::default(), Shared::default());
    let mut args = Vec::new();
    let form = abi::form(types, result).expect("a native result");
    let mut hidden = None;
    if form.is_memory() {
        let address = memory.allocate(u64::from(form.size), u64::from(form.align)).expect("memory");
        hidden = Some(address);
        args.push(Val::bits(types, Type::PTR, address.into()));
    }
    let limits = Options { max_steps: 100 * LIMITS.max_steps, ..LIMITS };
    let mut interp = Interp::new(module, limits, Box::new(memory.clone()));
    interp.set_output(Box::new(printed.clone()));
    let text = match (interp.call_low(id, &args), hidden) {
        (Ok(_), Some(address)) => {
            let mut bytes = vec![0; form.size as usize];
            memory.load(address, 1, &mut bytes).expect("the result");
            text_of_bytes(types, &mut memory, result, &bytes)
        }
        (Ok(leaves), None) => text_of_leaves(types, &mut memory, result, &leaves),
        (Err(outcome), _) => text_of_outcome(types, &outcome),
    };
    (text, printed.0.take())
}

/// How many calls were compared, and how many could not be because something they reach is refused.
#[derive(Default, Debug)]
struct Tally {
    compared: usize,
    refused: usize,
}

/// Runs the calls on both levels.
fn compare(origin: &str, module: &Module, calls: &[(FuncId, Vec<Literal>)]) -> Tally {
    let mut high = module.clone();
    let mut entries = Vec::new();
    for (number, (callee, args)) in calls.iter().enumerate() {
        if let Some(func) = entry(module, *callee, args, number) {
            entries.push((*callee, high.add_func(func).expect("a new name")));
        }
    }
    let mut low = Module::new(module.cx.clone());
    let mut lowered = vec![None; high.func_count()];
    for (id, result) in lower_module(&high, &lower::Options::default()) {
        if let Ok(func) = result {
            if let Err(violations) = verify_func(&module.cx, &func) {
                let text = show_func(&module.cx, &func);
                panic!("{origin}: {}\n{violations:?}\n{text}", module.cx.names.text(func.name));
            }
            lowered[id.as_u32() as usize] = Some(low.add_func(func).expect("a symbol of its own"));
        }
    }
    let mut tally = Tally::default();
    for (callee, id) in entries {
        let Some(low_id) = lowered[id.as_u32() as usize] else {
            tally.refused += 1;
            continue;
        };
        let result = high.func(id).sig.results[0];
        let (low_text, low_output) = run_low(&low, low_id, result);
        if low_text.contains("UnknownFunction") {
            tally.refused += 1;
            continue;
        }
        let (high_text, high_output) = run_high(&high, id);
        if high_text == "never ends" {
            continue;
        }
        tally.compared += 1;
        assert!(
            (&low_text, &low_output) == (&high_text, &high_output),
            "{origin}: {}\nhigh: {high_text} {high_output:?}\nlow:  {low_text} {low_output:?}\n{}\n{}",
            high.symbol(callee),
            show_func(&high.cx, high.func(callee)),
            lowered[callee.as_u32() as usize]
                .map_or_else(String::new, |c| show_func(&low.cx, low.func(c)).to_string())
        );
    }
    tally
}

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect()
}

fn literal_of(term: &Term) -> Option<Literal> {
    match term {
        Term::Const(data) => Some(Literal::Const(data.clone())),
        Term::Aggregate { ty, fields } => {
            let fields = fields.iter().map(literal_of).collect::<Option<_>>()?;
            Some(Literal::Aggregate { ty: *ty, fields })
        }
        Term::Bytes(_) | Term::Array { .. } => None,
    }
}

#[test]
fn checks_of_corpus_and_examples_agree() {
    let mut total = Tally::default();
    let all = ["tests/corpus", "examples", "tests/lowering"].into_iter().flat_map(files);
    for (name, text) in all {
        let source = SourceFile::new(&*name, &*text).unwrap();
        let (unit, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
        let calls: Vec<_> = unit
            .checks
            .iter()
            .filter_map(|check| {
                let args = check.call.args.iter().map(literal_of).collect::<Option<Vec<_>>>()?;
                let types: Vec<Type> = check.call.args.iter().map(Term::ty).collect();
                let callee = unit.module.find_method(check.call.callee.ty(), &types)?;
                Some((callee, args))
            })
            .collect();
        let tally = compare(&name, &unit.module, &calls);
        total.compared += tally.compared;
    }
    assert!(total.compared >= 50, "{total:?}");
}

/// Random calls of generated modules.
fn generated(seeds: std::ops::Range<u64>) -> Tally {
    let options = generate::Options { features: Features::NATIVE, ..generate::Options::default() };
    let mut total = Tally::default();
    for seed in seeds {
        let module = generate::generate(seed, &options);
        let mut rng = Rng::new(seed);
        let mut calls = Vec::new();
        for (id, func) in module.funcs() {
            let types: Vec<Type> = func.sig.params.iter().skip(1).map(|p| p.ty).collect();
            for _ in 0..2 {
                calls.extend(values::arguments(&mut rng, &module.cx, &types).map(|args| (id, args)));
            }
        }
        let tally = compare(&format!("seed {seed}"), &module, &calls);
        total.compared += tally.compared;
        total.refused += tally.refused;
    }
    total
}

#[test]
fn generated_functions_agree() {
    let tally = generated(0..1000);
    assert!(tally.compared > 9000 && tally.refused * 20 < tally.compared, "{tally:?}");
}
