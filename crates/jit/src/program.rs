//! From low IR to a loaded unit: generate, link.
//!
//! ```text
//!   Source (low Func, its type) ──Generator──► CompiledFunction, constants ──► LinkUnit ──Jit::load──► Unit
//! ```
//!
//! This path is safe: code comes from our own code generation, and the recorded type of every function that can be
//! looked up is compared with the native signature of the function itself.
//!
//! Calls between the functions of one build are near. Cost: Cranelift's; one generator serves all functions.
//!
//! The two halves are also separate: [`Jit::compile`] only needs the functions, so any number of threads may call it
//! at once; the [`Compiled`] unit lists the references of the code, which can be provided before [`Jit::link`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use brolga_codegen::callback::compile_callback;
use brolga_codegen::compile::{CompileOptions, Limits};
use brolga_codegen::compiled::{Symbol, UnitCode};
use brolga_codegen::entry::boxed_signature;
use brolga_codegen::generate::{GenerateError, Generator};
use brolga_codegen::isa::{TargetIsa, Tier};
use brolga_codegen::linkage::{CallKind, CallLinkage};
use brolga_codegen::sig::{FunctionType, Signature};
use brolga_codegen::translate::{abi_of, signature_of};
use brolga_instances::Moving;
use brolga_ir::func::CalleeData;
use brolga_ir::{Callee, Context, Func, LowType, Op, PtrClass, RuntimeKind, Type, Value};
use brolga_runtime::events::Stage;
use brolga_runtime::objects::{CodeEntry, MethodTable};

use crate::cell::{CellOwner, FindCell, IndirectCell, NoCell};
use crate::engine::Jit;
use crate::entry::trampoline::EntryError;
use crate::link::foreign::{Foreign, Outside};
use crate::link::globals::Globals;
use crate::link::linker::{DataObject, LinkError, LinkUnit};
use crate::load::Program;
use crate::tiering::counting::LoopEntry;
use crate::tiering::profile::Cells;
use crate::unit::Unit;

/// Constant bytes are aligned like the widest scalar.
const CONSTANT_ALIGN: u32 = 16;

/// A low function to build.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// The function, verified.
    pub func: &'a Func,
    /// Its type at typed calls; `None` for a function that is only called by others. Its symbol is ignored:
    /// the function's own name is the linked one.
    pub ty: Option<Arc<FunctionType>>,
}

/// The links of a unit beside the runtime.
#[derive(Clone, Default)]
pub struct Linkage<'a> {
    /// The units whose functions it may call.
    pub visible: &'a [Unit],
    /// The program's global variables; by default variables of its own.
    pub globals: Option<&'a Globals>,
    /// The method table of dynamic calls that begin in the unit; by default the runtime's own. Nested calls use the
    /// same table in any unit.
    pub table: Option<&'a MethodTable>,
    /// C symbols for requests without a library: they precede those that the runtime finds.
    pub foreign: Option<&'a BTreeMap<String, Foreign>>,
    /// Whether a call of a missing C symbol looks it up again, and throws if it is still missing. Always so where
    /// [`foreign`](Linkage::foreign) is not given.
    pub defers_foreign: bool,
    /// The source of other C symbols.
    pub outside: Outside,
    /// The source of the cells that its code names.
    pub indirect: Option<&'a dyn FindCell>,
    /// The continuations of its loops. The unit keeps them.
    pub loops: &'a [LoopEntry],
    /// The cells of its profile, if it counts, one for each number of a site. The unit keeps them.
    pub cells: Option<&'a Cells>,
    /// The counter of the code until it can be evicted ([`Jit::unmade`]), if it is not to be evictable from the beginning.
    pub new: Option<&'a Moving>,
}

/// Options of code generation. A [`Tier`] alone means code that reaches other units by their addresses, and does not count.
#[derive(Clone, Copy)]
pub struct Style<'a> {
    /// The effort.
    pub tier: Tier,
    /// The call kinds of functions of other units.
    pub others: &'a dyn Fn(&str) -> CallKind,
    /// Which functions count their entries, in the counter of their own cell. They are called through it also where they could
    /// be called directly, so that callers reach their replacements.
    pub counted: &'a dyn Fn(&str) -> bool,
    /// Functions that code without a type, such as boxed entries, reaches like functions of other units, so that
    /// its calls reach their replacements.
    pub apart: &'a dyn Fn(&str) -> bool,
    /// Whether functions that are called through words have C entries of their own; the entries of all others are in the
    /// unit that takes the address.
    pub has_c_entries: bool,
    /// Whether they profile branches and dynamic calls with sites, in the cells that they are linked to.
    pub is_profiled: bool,
    /// Whether to end the generation; called in each function at each [`Step`](brolga_codegen::compile::Step).
    pub stop: &'a dyn Fn() -> bool,
}

impl From<Tier> for Style<'static> {
    fn from(tier: Tier) -> Self {
        Style {
            tier,
            others: &|_| CallKind::Far,
            counted: &|_| false,
            apart: &|_| false,
            has_c_entries: false,
            is_profiled: false,
            stop: &|| false,
        }
    }
}

impl std::fmt::Debug for Style<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Style").field("tier", &self.tier).finish_non_exhaustive()
    }
}

/// The reason why a build failed. Nothing of it remains.
#[derive(thiserror::Error, Debug)]
pub enum BuildError {
    /// A function did not become machine code.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The unit could not be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Code counts in cells that the profile does not have; a fault of the code that assigned the sites.
    #[error("the code counts in {needed} cells, and there are {given}")]
    Cells {
        /// The number that its sites need.
        needed: usize,
        /// How many there are.
        given: usize,
    },
    /// The recorded type of a function differs from its code's, or from a call's: a fault of the recorder or the caller.
    #[error("`{name}` is recorded as {recorded:?}, and its code has {actual:?}")]
    Signature {
        name: String,
        /// The signature of the recorded type.
        recorded: Signature,
        /// The function's own signature.
        actual: Signature,
    },
}

impl From<NoCell> for BuildError {
    fn from(error: NoCell) -> BuildError {
        match error {
            NoCell::Memory(error) => BuildError::Link(error.into()),
            NoCell::Entry(EntryError::Link(error)) => BuildError::Link(error),
            NoCell::Entry(EntryError::Compile(error)) => GenerateError::from(error).into(),
        }
    }
}

/// A unit of compiled functions that is not linked yet.
pub struct Compiled {
    unit: LinkUnit,
    types: Vec<Arc<FunctionType>>,
    cx: Arc<Context>,
    needs_heap: bool,
    /// The number of cells that its sites need; 0 if it does not count.
    cells: usize,
    /// The signatures of the functions.
    signatures: BTreeMap<String, Option<Signature>>,
    /// The signatures that its calls assume of functions that it does not define.
    calls: BTreeSet<(String, Signature)>,
    /// The words of the functions whose C entries it takes the addresses of.
    c_callees: BTreeSet<Symbol>,
}

impl Compiled {
    /// The undefined symbols of its code, each once, in order.
    pub fn imports(&self) -> BTreeSet<&Symbol> {
        let own: BTreeSet<&str> = self.unit.functions.iter().map(|function| function.name.as_str()).collect();
        let data: BTreeSet<&str> = self.unit.data.iter().map(|object| object.name.as_str()).collect();
        let symbols = self.unit.functions.iter().flat_map(|function| &function.symbols);
        symbols
            .filter(|symbol| match symbol {
                Symbol::Function(name) => !own.contains(name.as_str()),
                Symbol::Data(name) => !data.contains(name.as_str()),
                _ => true,
            })
            .chain(&self.c_callees)
            .collect()
    }

    /// Its functions and constants, in the order of the sources.
    pub fn link_unit(&self) -> &LinkUnit {
        &self.unit
    }

    /// The signature of a function among the sources, by its symbol.
    pub fn signature(&self, symbol: &str) -> Option<&Signature> {
        self.signatures.get(symbol)?.as_ref()
    }

    /// Whether its code handles objects.
    pub fn needs_heap(&self) -> bool {
        self.needs_heap
    }

    /// The inputs of linking, in a form without addresses.
    pub fn code(&self) -> UnitCode {
        UnitCode {
            functions: self.unit.functions.clone(),
            constants: self.unit.data.iter().map(|data| (data.name.clone(), data.bytes.clone())).collect(),
            signatures: self.signatures.clone(),
            calls: self.calls.clone(),
            c_callees: self.c_callees.clone(),
            needs_heap: self.needs_heap,
            cells: self.cells,
        }
    }

    /// The unit that [`Compiled::code`] was taken from, in a process that may be another one. `types` are the functions that
    /// can be looked up. Machine code cannot be checked: the caller vouches that a code generator of this version generated
    /// it.
    ///
    /// # Errors
    /// The type of a function differs from its code's.
    pub fn of_code(
        cx: &Arc<Context>,
        code: UnitCode,
        types: Vec<Arc<FunctionType>>,
    ) -> Result<Compiled, BuildError> {
        let UnitCode { functions, constants, signatures, calls, c_callees, needs_heap, cells } = code;
        for ty in &types {
            let actual = signatures.get(&ty.symbol).cloned().flatten().unwrap_or_default();
            if actual != ty.signature {
                let (name, recorded) = (ty.symbol.clone(), ty.signature.clone());
                return Err(BuildError::Signature { name, recorded, actual });
            }
        }
        let data = constants.into_iter().map(|(name, bytes)| DataObject {
            name,
            bytes,
            align: CONSTANT_ALIGN,
            writable: false,
            relocs: Vec::new(),
        });
        let unit = LinkUnit { functions, data: data.collect() };
        Ok(Compiled { unit, types, cx: cx.clone(), needs_heap, cells, signatures, calls, c_callees })
    }

    /// One unit of several, which are of one context. Duplicate constants and entries for C are merged.
    pub fn joined(cx: &Arc<Context>, units: impl IntoIterator<Item = Compiled>) -> Compiled {
        let mut all = Compiled {
            unit: LinkUnit::default(),
            types: Vec::new(),
            cx: cx.clone(),
            needs_heap: false,
            cells: 0,
            signatures: BTreeMap::new(),
            calls: BTreeSet::new(),
            c_callees: BTreeSet::new(),
        };
        let (mut functions, mut data) = (BTreeSet::new(), BTreeSet::new());
        for one in units {
            let LinkUnit { functions: own, data: own_data } = one.unit;
            all.unit.functions.extend(own.into_iter().filter(|own| functions.insert(own.name.clone())));
            all.unit.data.extend(own_data.into_iter().filter(|own| data.insert(own.name.clone())));
            all.types.extend(one.types);
            all.needs_heap |= one.needs_heap;
            all.cells = all.cells.max(one.cells);
            all.signatures.extend(one.signatures);
            all.calls.extend(one.calls);
            all.c_callees.extend(one.c_callees);
        }
        all
    }

    /// The bytes of machine code in it.
    pub fn code_bytes(&self) -> usize {
        self.unit.functions.iter().map(|function| function.code.len()).sum()
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.unit.functions.iter().map(|function| &function.name)).finish()
    }
}

impl Jit {
    /// Builds a unit from low functions. `visible` are the units whose functions it may call. Functions with objects have
    /// their roots placed already.
    pub fn build(
        &self,
        cx: &Arc<Context>,
        sources: &[Source<'_>],
        tier: Tier,
        visible: &[Unit],
    ) -> Result<Unit, BuildError> {
        self.build_program(cx, sources, tier, &Linkage { visible, ..Linkage::default() })
    }

    /// Builds a unit that shares global variables with others, and whose methods can be called by dispatch.
    pub fn build_program(
        &self,
        cx: &Arc<Context>,
        sources: &[Source<'_>],
        tier: Tier,
        linkage: &Linkage<'_>,
    ) -> Result<Unit, BuildError> {
        let compiled = self.compile(cx, sources, tier)?;
        self.link(&compiled, linkage)
    }

    /// The first half of a build: machine code. Threads compile concurrently.
    pub fn compile<'a>(
        &self,
        cx: &Arc<Context>,
        sources: &[Source<'_>],
        style: impl Into<Style<'a>>,
    ) -> Result<Compiled, BuildError> {
        let names = || joined(sources.iter().map(|source| cx.names.text(source.func.name)));
        let _span = self.runtime().events().span(Stage::Generate, names);
        self.generators().with(|generator| compile_with(generator, self.isa(), cx, sources, style.into()))
    }
}

/// Machine code of low functions for an instruction set that may differ from an engine's, such as for code in files.
pub fn compile_for<'a>(
    isa: &TargetIsa,
    limits: Limits,
    cx: &Arc<Context>,
    sources: &[Source<'_>],
    style: impl Into<Style<'a>>,
) -> Result<Compiled, BuildError> {
    compile_with(&mut Generator::new(limits), isa, cx, sources, style.into())
}

/// The names of functions for an event; of many, the first ones and their number.
fn joined<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 4;
    let number = names.len();
    let mut text = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if number > SHOWN {
        text.push_str(&format!(" and {} more", number - SHOWN));
    }
    text
}

fn compile_with(
    generator: &mut Generator,
    isa: &TargetIsa,
    cx: &Arc<Context>,
    sources: &[Source<'_>],
    style: Style<'_>,
) -> Result<Compiled, BuildError> {
    let Style { tier, others, counted, apart, has_c_entries, is_profiled, stop } = style;
    let mut types = Vec::new();
    for source in sources {
        types.extend(recorded_type(cx, source)?);
    }
    let local: BTreeSet<&str> = sources.iter().map(|source| cx.names.text(source.func.name)).collect();
    let options = CompileOptions { tier, listing: false };
    let mut unit = LinkUnit::default();
    let is_near = |name: &str| local.contains(name) && !counted(name);
    let call_kind = |name: &str| if is_near(name) { CallKind::Near } else { others(name) };
    let call_kind_from = |source: &Source<'_>, name: &str| {
        if source.ty.is_none() && apart(name) { others(name) } else { call_kind(name) }
    };
    let generate_one = |source: &Source<'_>| {
        let name = cx.names.text(source.func.name);
        let call_kind = |callee: &str| call_kind_from(source, callee);
        let linkage =
            CallLinkage { call_kind: &call_kind, counter: counted(name).then_some(name), is_profiled };
        let reached = &mut |_| if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        generator.generate_in_steps(cx, source.func, isa, options, linkage, reached)
    };
    for generated in sources.iter().map(generate_one).collect::<Result<Vec<_>, _>>()? {
        unit.functions.push(generated.function);
        unit.functions.extend(generated.body);
        unit.data.extend(generated.constants.into_iter().map(constant));
    }
    let calls = sources
        .iter()
        .flat_map(|source| outward_calls(cx, source.func, &|name| call_kind_from(source, name)));
    let calls = calls.collect();
    let mut c_callees = BTreeSet::new();
    for (name, signature) in called_back(cx, sources) {
        if has_c_entries && (!is_near(&name) || apart(&name)) {
            c_callees.insert(Symbol::IndirectCell(name));
            continue;
        }
        // A function that counts its entries is called through its cell, so that callers reach its replacement.
        let made = compile_callback(&name, &signature, call_kind(&name), isa);
        unit.functions.extend(made.map_err(GenerateError::Compile)?);
    }
    let needs_heap = sources.iter().any(|source| needs_heap(source.func));
    let cells = sources.iter().filter(|_| is_profiled).map(|source| Cells::of_sites(source.func)).max();
    let cells = cells.unwrap_or(0);
    let signature =
        |source: &Source<'_>| (cx.names.text(source.func.name).to_owned(), signature_of(source.func));
    let signatures = sources.iter().map(signature).collect();
    Ok(Compiled { unit, types, cx: cx.clone(), needs_heap, cells, signatures, calls, c_callees })
}

impl Jit {
    /// The second half of a build: loads compiled code into executable memory. A unit may be linked more than once.
    pub fn link(&self, compiled: &Compiled, linkage: &Linkage<'_>) -> Result<Unit, BuildError> {
        let names = || joined(compiled.types.iter().map(|ty| ty.symbol.as_str()));
        let _span = self.runtime().events().span(Stage::Link, names);
        let loops = linkage.loops.iter().map(|entry| Ok((entry, CellOwner::of_loop(self, entry.clone())?)));
        let loops = loops.collect::<Result<Vec<_>, LinkError>>()?;
        let indirect = find_indirect(compiled, linkage, &loops);
        check_calls(compiled, linkage, &indirect)?;
        if let Some(given) = linkage.cells.map(Cells::count).filter(|&given| given < compiled.cells) {
            return Err(BuildError::Cells { needed: compiled.cells, given });
        }
        let own = Globals::new(self.runtime());
        let globals = linkage.globals.unwrap_or(&own);
        let program = Program {
            cx: &compiled.cx,
            needs_heap: compiled.needs_heap,
            globals,
            table: linkage.table.unwrap_or(self.runtime().methods()),
            foreign: linkage.foreign,
            defers_foreign: linkage.defers_foreign || linkage.foreign.is_none(),
            outside: linkage.outside,
            indirect: &indirect,
            c_callees: &compiled.c_callees,
            cells: linkage.cells,
            new: linkage.new,
        };
        let loops = loops.into_iter().map(|(_, owner)| owner).collect();
        let types = compiled.types.iter().cloned();
        // SAFETY: L1, the code was generated from low functions. L2, `recorded_type` compared the signatures. No other code creates
        // or changes a `Compiled`.
        Ok(unsafe { self.load_program(&compiled.unit, types, linkage.visible, Some(program), loops) }?)
    }
}

impl Jit {
    /// As [`Jit::link`], for a unit whose function `symbol` is a boxed entry, by which the run time calls a method.
    pub fn link_boxed(
        &self,
        compiled: &Compiled,
        symbol: &str,
        linkage: &Linkage<'_>,
    ) -> Result<CodeEntry, BuildError> {
        check_boxed(compiled, symbol)?;
        let unit = self.link(compiled, linkage)?;
        Ok(self.boxed_code(&unit, symbol)?)
    }
}

/// The functions that C may call, as the sources take their addresses.
fn called_back(cx: &Context, sources: &[Source<'_>]) -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for source in sources {
        let func = source.func;
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            if let Op::CFunction(callee) = func.op(inst)
                && let Some((name, signature)) = callee_signature(cx, func, callee)
            {
                found.insert(name, signature);
            }
        }
    }
    found
}

/// The symbol of a callee and its signature.
fn callee_signature(cx: &Context, func: &Func, callee: Callee) -> Option<(String, Signature)> {
    let CalleeData::Symbol { symbol, params, results } = func.callee(callee) else { return None };
    let abi = |list: &[Type]| list.iter().filter_map(|ty| ty.as_low().map(abi_of)).collect::<Vec<_>>();
    Some((cx.names.text(*symbol).to_owned(), Signature::new(abi(params), abi(results))))
}

/// The functions of other units that a function calls, with the signatures by which it calls them.
fn outward_calls(
    cx: &Context,
    func: &Func,
    call_kind: &dyn Fn(&str) -> CallKind,
) -> Vec<(String, Signature)> {
    let mut calls = Vec::new();
    for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
        let (Op::CallSymbol(callee) | Op::CFunction(callee)) = func.op(inst) else { continue };
        let CalleeData::Symbol { symbol, .. } = func.callee(callee) else { continue };
        if matches!(call_kind(cx.names.text(*symbol)), CallKind::Far | CallKind::Cell) {
            calls.extend(callee_signature(cx, func, callee));
        }
    }
    calls
}

/// The cells that code names.
fn find_indirect<'a>(
    compiled: &'a Compiled,
    linkage: &Linkage<'_>,
    loops: &[(&'a LoopEntry, CellOwner)],
) -> BTreeMap<&'a str, Result<IndirectCell, String>> {
    let find = |name: &str| match linkage.indirect {
        Some(cells) => cells.cell(name),
        None => Err("there are no cells".to_owned()),
    };
    let mut found = BTreeMap::new();
    for (entry, owner) in loops {
        let names = [entry.ty.symbol.as_str(), &*entry.check];
        found.extend(names.map(|name| (name, Ok(owner.cell()))));
    }
    let named = compiled.unit.functions.iter().flat_map(|function| &function.symbols);
    for symbol in named.chain(&compiled.c_callees) {
        if let Symbol::IndirectCell(name) | Symbol::Counter(name) = symbol
            && !found.contains_key(name.as_str())
        {
            found.insert(name, find(name));
        }
    }
    found
}

/// Checks that calls of other units use the signatures of the functions there.
fn check_calls(
    compiled: &Compiled,
    linkage: &Linkage<'_>,
    indirect: &BTreeMap<&str, Result<IndirectCell, String>>,
) -> Result<(), BuildError> {
    for (name, actual) in &compiled.calls {
        let recorded = match indirect.get(name.as_str()) {
            Some(cell) => cell.as_ref().ok().map(|cell| cell.ty().signature.clone()),
            None if compiled.signatures.contains_key(name) => None,
            None => {
                let unit = linkage.visible.iter().find(|unit| unit.loaded().function(name).is_some());
                unit.and_then(|unit| unit.signature(name))
            }
        };
        if let Some(recorded) = recorded.filter(|recorded| recorded != actual) {
            return Err(BuildError::Signature { name: name.clone(), recorded, actual: actual.clone() });
        }
    }
    Ok(())
}

/// The code of a boxed entry has the signature of boxed entries.
fn check_boxed(compiled: &Compiled, symbol: &str) -> Result<(), BuildError> {
    let boxed = boxed_signature();
    match compiled.signatures.get(symbol) {
        // Linking reports a missing one.
        Some(actual) if actual.as_ref() != Some(&boxed) => Err(BuildError::Signature {
            name: symbol.to_owned(),
            recorded: boxed,
            actual: actual.clone().unwrap_or_default(),
        }),
        _ => Ok(()),
    }
}

/// Whether a function handles objects, or calls code that allocates.
fn needs_heap(func: &Func) -> bool {
    let is_object = |value| {
        let low = func.ty(Value::from_u32(value)).as_low();
        matches!(low, Some(LowType::Ptr(class)) if class != PtrClass::Raw)
    };
    let calls = |op| match op {
        Op::CallRuntime(entry) => !matches!(entry.kind(), RuntimeKind::Throws | RuntimeKind::Prints),
        Op::ThreadAddr | Op::CFunction(_) => true,
        _ => false,
    };
    (0..func.value_count() as u32).any(is_object)
        || func.blocks().flat_map(|block| func.block_insts(block)).any(|inst| calls(func.op(inst)))
}

/// The type under which a function can be looked up, if it can.
fn recorded_type(cx: &Context, source: &Source<'_>) -> Result<Option<Arc<FunctionType>>, BuildError> {
    let Some(ty) = &source.ty else { return Ok(None) };
    let symbol = cx.names.text(source.func.name);
    match signature_of(source.func) {
        Some(actual) if actual == ty.signature && ty.symbol == symbol => Ok(Some(ty.clone())),
        Some(actual) if actual == ty.signature => {
            let ty = FunctionType::clone(ty);
            Ok(Some(Arc::new(FunctionType { symbol: symbol.to_owned(), ..ty })))
        }
        actual => Err(BuildError::Signature {
            name: symbol.to_owned(),
            recorded: ty.signature.clone(),
            actual: actual.unwrap_or_default(),
        }),
    }
}

fn constant((symbol, bytes): (Symbol, Box<[u8]>)) -> DataObject {
    let name = match symbol {
        Symbol::Data(name) => name,
        other => other.to_string(),
    };
    DataObject { name, bytes: bytes.into_vec(), align: CONSTANT_ALIGN, writable: false, relocs: Vec::new() }
}
