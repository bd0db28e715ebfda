//! The reference interpreter: it defines the meaning of functions by slow, simple, safe code.
//!
//! It runs high IR and low IR and is the oracle of every test, so it shares no code with code generation.
//! ([`brolga_ir::scalar`] defines the values of scalar operations.)
//!
//! ```text
//! Interp ─┬─ frames     one for each running function: values, position, use of the result
//!         ├─ handlers   one for each `enter` in force
//!         ├─ exceptions those being handled, innermost last
//!         ├─ heap       every object ever made              (heap.rs)
//!         ├─ globals    values of the globals read or written
//!         └─ memory     raw memory and C, through a trait    (memory.rs)
//! ```
//!
//! | file | content |
//! |---|---|
//! | `value`, `heap`, `bytes`, `memory`, `libc` | values, objects, their bytes, raw memory, C functions on it |
//! | `c_text`, `callback`, `jobs`, `process_end` | C functions that print, that call the program, and that end the process |
//! | `copies`, `identity` | entry points of Julia's run time: copies, and addresses, hashes and tables by identity |
//! | `check`, `compare`, `show`, `graph`, `error` | constants and tests of a text, equality, printing, copying values to another interpreter, outcomes of a call |
//! | `exec`, `shape` | frames, control flow, exceptions; checks of a function before its first run |
//! | `high`, `calls`, `fields`, `places`, `arrays`, `generic`, `foreign`, `pointers` | high IR by family of operations |
//! | `low` | low IR |
//!
//! **Safety.** A malformed function, a wild access, or a value that contradicts its type ends the call with
//! an [`InterpError`] that names function, block and statement. Nothing panics. The results of instructions,
//! the arguments of calls and π are checked against their types, so a miscompilation is detected at its first
//! wrong value.
//!
//! **Limits.** A call in the IR pushes a frame to a vector and uses no Rust stack; more than [`Options::max_depth`]
//! frames, or [`Options::max_stack_bytes`] in them, throw `StackOverflowError`. [`Options::max_steps`] bounds time,
//! [`Options::max_heap_bytes`] the objects (`OutOfMemoryError`), which are freed only with the interpreter.
//!
//! **Departures from Julia.** Uninitialised bits are zero. Finalizers never run. Reading an undefined element or field
//! throws `UndefRefError` exactly where Julia would find a null reference.

mod arrays;
mod bytes;
mod c_text;
mod callback;
mod calls;
mod check;
mod compare;
mod copies;
mod error;
mod exec;
mod fields;
mod foreign;
mod generic;
mod graph;
mod heap;
mod high;
mod identity;
mod jobs;
mod libc;
mod low;
mod memory;
mod places;
mod pointers;
mod process_end;
mod shape;
mod show;
mod value;

pub use check::Verdict;
pub use error::{At, Fault, InterpError, Outcome, ProcessEnd};
pub use memory::{ForeignCall, MemoryError, RawMemory, SimMemory};
pub use value::{ObjId, Struct, Token, Val};

use brolga_ir::Name;
use brolga_ir::constant::Address;
use brolga_ir::entity::{Block, Callee, FuncId};
use brolga_ir::func::Func;
use brolga_ir::module::{Literal, Module};
use brolga_ir::op::Level;
use brolga_ir::types::{LayoutError, Type, Types};
use cranelift_entity::EntityRef;
use error::{Eval, Stop};
use exec::{Frame, Handler, Then};
use heap::{Array, Data, Heap, Memory, Object, Text};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limits of an interpreter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether the program has no doors ([`brolga_ir::doors`]) and behaves as in an engine with closed doors:
    /// all bounds are checked, regardless of operands, and a would-be door throws when called as a value.
    pub checked: bool,
    /// Whether the program runs as on a processor with fused multiply-add: `have_fma` is true, and
    /// `muladd_float` rounds once.
    pub fma: bool,
    /// The maximum number of statements before [`Outcome::OutOfFuel`].
    pub max_steps: u64,
    /// The maximum number of active calls before `StackOverflowError`.
    pub max_depth: usize,
    /// The maximum size of the values of active calls, in bytes, before `StackOverflowError`.
    pub max_stack_bytes: u64,
    /// The maximum size of objects, in bytes, before `OutOfMemoryError`; raw memory has its own limits.
    pub max_heap_bytes: u64,
    /// The maximum fuel, in units, that priced functions ([`brolga_ir::fuel`]) may spend before
    /// [`Outcome::OutOfFuel`].
    pub max_fuel: u64,
}

impl Default for Options {
    fn default() -> Self {
        let (max_stack_bytes, max_heap_bytes) = (1 << 30, 1 << 30);
        Options {
            checked: false,
            fma: false,
            max_steps: u64::MAX,
            max_depth: 1 << 17,
            max_stack_bytes,
            max_heap_bytes,
            max_fuel: u64::MAX,
        }
    }
}

/// The destination of `print`.
pub trait Output {
    /// Writes bytes.
    fn write(&mut self, bytes: &[u8]);
}

impl Output for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// An interpreter of one module, with its own heap, globals and memory.
pub struct Interp<'m> {
    module: &'m Module,
    options: Options,
    memory: Box<dyn RawMemory + 'm>,
    output: Box<dyn Output + 'm>,
    heap: Heap,
    frames: Vec<Frame<'m>>,
    /// The size of the values of all frames.
    stack_bytes: u64,
    /// The size of the module's names and types, as charged to the heap's budget.
    table_bytes: usize,
    /// The frames that C functions wait for, by their positions, innermost last.
    c_frames: Vec<usize>,
    handlers: Vec<Handler>,
    /// The exceptions being handled, innermost last.
    exceptions: Vec<Val>,
    /// The values of globals that were read or written; others have their initial values.
    globals: FxHashMap<Name, Val>,
    /// String constants, each made once.
    strings: FxHashMap<Name, Val>,
    /// Methods chosen for invokes.
    invokes: FxHashMap<(FuncId, Callee), FuncId>,
    /// Functions that passed the check of [`shape`].
    checked: FxHashSet<FuncId>,
    addresses: low::Addresses,
    /// Whether the call being looked up is made in a world before the program.
    is_before_program: bool,
    /// Mutable structs whose address was taken, with type and address: their fields are stored at that
    /// address.
    exposed: FxHashMap<ObjId, (Type, u64)>,
    steps: u64,
    /// The fuel spent.
    fuel: u64,
    /// The last serial number of a token or stored ϒ: later ones have larger numbers.
    serial: u64,
    /// How often each block was entered, if counted.
    entered: Option<FxHashMap<(FuncId, Block), u64>>,
}

impl std::fmt::Debug for Interp<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interp")
            .field("options", &self.options)
            .field("frames", &self.frames.len())
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl<'m> Interp<'m> {
    /// A fresh interpreter: globals have their initial values. Output is dropped until
    /// [`Interp::set_output`].
    pub fn new(module: &'m Module, options: Options, memory: Box<dyn RawMemory + 'm>) -> Self {
        Interp {
            module,
            options,
            memory,
            output: Box::new(Discard),
            heap: Heap::new(options.max_heap_bytes),
            frames: Vec::new(),
            stack_bytes: 0,
            table_bytes: module.cx.bytes(),
            c_frames: Vec::new(),
            handlers: Vec::new(),
            exceptions: Vec::new(),
            globals: FxHashMap::default(),
            strings: FxHashMap::default(),
            invokes: FxHashMap::default(),
            checked: FxHashSet::default(),
            addresses: low::Addresses::default(),
            is_before_program: false,
            exposed: FxHashMap::default(),
            steps: 0,
            fuel: 0,
            serial: 0,
            entered: None,
        }
    }

    /// Sets the output of `print`.
    pub fn set_output(&mut self, output: Box<dyn Output + 'm>) {
        self.output = output;
    }

    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// The current value of a global variable; `None` if there is no such variable, or its initial value exceeds the
    /// limits.
    pub fn global(&mut self, name: Name) -> Option<Val> {
        self.global_value(name).ok()?
    }

    /// Starts counting how often each block is entered.
    pub fn count_blocks(&mut self) {
        self.entered.get_or_insert_default();
    }

    /// How often each block was entered since [`Interp::count_blocks`], sorted by function and block; blocks that were
    /// not entered are missing.
    pub fn block_counts(&self) -> Vec<(FuncId, Block, u64)> {
        let entered = self.entered.iter().flatten();
        let mut counts: Vec<_> = entered.map(|(&(func, block), &count)| (func, block, count)).collect();
        counts.sort_unstable();
        counts
    }

    /// The number of statements executed.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether the fuel limit was exceeded.
    pub fn is_out_of_fuel(&self) -> bool {
        self.fuel > self.options.max_fuel
    }

    /// The fuel spent: [`brolga_ir::fuel`].
    pub fn fuel_spent(&self) -> u64 {
        self.fuel
    }

    /// Calls a high function on arguments without the function object, which must be a singleton (not a
    /// closure).
    pub fn call(&mut self, func: FuncId, args: &[Val]) -> Result<Val, Outcome> {
        let results = self.finish(|interp| {
            let callee = interp.own_func(func, Level::High)?;
            let object = match callee.sig.params.first() {
                Some(object) if interp.types().is_singleton(object.ty) => Val::Singleton(object.ty),
                _ => {
                    return Err(
                        Fault::Unsupported("a method of objects called without one".to_owned()).into()
                    );
                }
            };
            let mut all = vec![object];
            all.extend_from_slice(args);
            interp.push_call(func, all, Then::Assign)
        })?;
        Ok(results.into_iter().next().unwrap_or(Val::NOTHING))
    }

    /// Calls a low function on bits.
    pub fn call_low(&mut self, func: FuncId, args: &[Val]) -> Result<Vec<Val>, Outcome> {
        self.finish(|interp| {
            interp.own_func(func, Level::Low)?;
            interp.push_call(func, args.to_vec(), Then::Assign)
        })
    }

    /// Calls the function with this name, choosing its method by the types of the arguments.
    pub fn call_named(&mut self, name: &str, args: &[Val]) -> Result<Val, Outcome> {
        let ty = self.types().function_of(name);
        self.call_value(Val::Singleton(ty), args)
    }

    /// Calls any value: a function, a closure, a type (its constructor).
    pub fn call_value(&mut self, callee: Val, args: &[Val]) -> Result<Val, Outcome> {
        let results = self.finish(|interp| interp.apply(callee, args.to_vec(), Then::Assign))?;
        Ok(results.into_iter().next().unwrap_or(Val::NOTHING))
    }

    // ----- making values -----

    /// A new string.
    pub fn string(&mut self, bytes: &[u8]) -> Result<Val, Outcome> {
        let made = self.new_string(bytes.to_vec());
        made.map_err(|stop| self.outcome_without_place(stop))
    }

    /// A new `Array` of the elements; the product of `dims` must be their number.
    pub fn array(&mut self, elem: Type, dims: &[i64], elements: &[Val]) -> Result<Val, Outcome> {
        let made = self.array_of(elem, dims, elements);
        made.map_err(|stop| self.outcome_without_place(stop))
    }

    /// A tuple of the values.
    pub fn tuple(&mut self, elements: &[Val]) -> Result<Val, Outcome> {
        let made = self.new_tuple(elements.to_vec());
        made.map_err(|stop| self.outcome_without_place(stop))
    }

    /// The bytes of a string; `None` for any other value.
    pub fn string_bytes(&mut self, val: &Val) -> Result<Option<Vec<u8>>, Outcome> {
        let Val::Object { id, .. } = *val else { return Ok(None) };
        let text = self.text(id);
        text.map_err(|stop| self.outcome_without_place(stop))
    }

    // ----- the memory of low functions -----

    /// The memory that `Ptr` values point to, for arguments and results passed through it.
    pub fn memory(&mut self) -> &mut dyn RawMemory {
        &mut *self.memory
    }

    /// The address of the record of a symbol or string. Makes the record if there is none yet.
    pub fn record_address(&mut self, address: Address) -> Result<u64, Outcome> {
        match self.address_of(address) {
            Ok(val) => Ok(val.as_bits().unwrap_or(0) as u64),
            Err(stop) => Err(self.outcome_without_place(stop)),
        }
    }

    /// The symbol or string whose record is at this address.
    pub fn record_at(&self, address: u64) -> Option<Name> {
        self.addresses.text_at(address)
    }

    // ----- shared by the families of operations -----

    /// A function of the module, which must have this level.
    fn own_func(&self, id: FuncId, level: Level) -> Eval<&'m Func> {
        if id.index() >= self.module.func_count() {
            return Err(Fault::ForeignId(id.to_string()).into());
        }
        let func = &self.module[id];
        if func.level != level {
            let what = format!("a function of {:?} IR called as one of {level:?} IR", func.level);
            return Err(Fault::Unsupported(what).into());
        }
        Ok(func)
    }

    fn types(&self) -> &'m Types {
        &self.module.cx.types
    }

    fn name(&self, text: &str) -> Name {
        self.module.cx.names.intern(text)
    }

    /// Reserves space for the names and types that running code has made. Must be called before it makes
    /// more.
    fn count_tables(&mut self) -> Eval<()> {
        let bytes = self.module.cx.bytes();
        let grown = bytes.saturating_sub(self.table_bytes);
        if grown > 0 {
            self.reserve((grown as u64).div_ceil(heap::UNIT))?;
            self.table_bytes = bytes;
        }
        Ok(())
    }

    fn type_text(&self, ty: Type) -> String {
        self.types().display(ty).to_string()
    }

    fn make(&mut self, ty: Type, object: Object) -> Eval<Val> {
        match self.heap.make(object) {
            Ok(id) => Ok(Val::Object { ty, id }),
            Err(heap::Full) => Err(self.out_of_memory()),
        }
    }

    fn reserve(&mut self, values: u64) -> Eval<()> {
        self.heap.reserve(values).map_err(|heap::Full| self.out_of_memory())
    }

    fn out_of_memory(&self) -> Stop {
        self.exception("OutOfMemoryError", Vec::new())
    }

    /// A builtin exception without an identity, ready to be thrown.
    fn exception(&self, name: &str, fields: Vec<Val>) -> Stop {
        match self.find_type(name) {
            Some(ty) => Stop::Throw(Val::aggregate(ty, fields.into_iter().map(Some).collect())),
            None => Fault::Unsupported(format!("the exception type `{name}` does not exist")).into(),
        }
    }

    /// An exception whose only field is a message.
    fn message(&mut self, name: &str, text: &str) -> Stop {
        match self.new_string(text.as_bytes().to_vec()) {
            Ok(text) => self.exception(name, vec![text]),
            Err(stop) => stop,
        }
    }

    fn find_type(&self, name: &str) -> Option<Type> {
        let decl = self.types().find_builtin(self.name(name))?;
        self.types().nominal(decl, &[]).ok()
    }

    fn new_string(&mut self, bytes: Vec<u8>) -> Eval<Val> {
        self.reserve(bytes.len() as u64 / 32)?;
        self.make(Type::STRING, Object::String(Text { bytes, address: None }))
    }

    fn string_constant(&mut self, name: Name) -> Eval<Val> {
        if let Some(val) = self.strings.get(&name) {
            return Ok(val.clone());
        }
        let val = self.new_string(self.module.cx.names.text(name).into())?;
        self.strings.insert(name, val.clone());
        Ok(val)
    }

    /// The bytes of a string object; `None` for other objects.
    fn text(&mut self, id: ObjId) -> Eval<Option<Vec<u8>>> {
        let Some(Object::String(text)) = self.heap.get(id) else { return Ok(None) };
        let mut bytes = text.bytes.clone();
        if let Some(address) = text.address {
            self.memory.load(address, 1, &mut bytes)?;
        }
        Ok(Some(bytes))
    }

    fn new_tuple(&mut self, elements: Vec<Val>) -> Eval<Val> {
        self.count_tables()?;
        let types: Vec<Type> = elements.iter().map(|v| v.type_of(self.types())).collect();
        let ty = self.made(self.types().tuple(&types))?;
        Ok(Val::aggregate(ty, elements.into_iter().map(Some).collect()))
    }

    /// A type made by running code. Throws `ErrorException` if it exceeds the limits of types or of their
    /// values.
    fn made(&mut self, ty: Result<Type, brolga_ir::types::TypeError>) -> Eval<Type> {
        self.count_tables()?;
        let types = self.types();
        let text = match ty {
            Err(error) => error.display(types).to_string(),
            Ok(ty) => match types.layout(ty) {
                // Values of a concrete type have a layout, or the run time lays them out.
                Err(error) if types.is_concrete(ty) && !matches!(error, LayoutError::Opaque(_)) => {
                    error.display(types).to_string()
                }
                Ok(_) | Err(_) => return Ok(ty),
            },
        };
        Err(self.message("ErrorException", &text))
    }

    fn literal(&mut self, literal: &Literal) -> Eval<Val> {
        match literal {
            Literal::Const(c) => self.simple_const(c),
            Literal::Aggregate { ty, fields } => {
                let fields = fields.iter().map(|f| self.literal(f)).collect::<Eval<Vec<_>>>()?;
                self.new_struct(*ty, fields)
            }
            Literal::Array { ty, dims, items } => {
                let elem = self.types().array_parts(*ty).map_or(Type::ANY, |(elem, _)| elem);
                let items = items.iter().map(|item| self.literal(item)).collect::<Eval<Vec<_>>>()?;
                let dims: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
                self.array_of(elem, &dims, &items)
            }
        }
    }

    /// Fresh memory for `length` elements, zero or undefined.
    fn new_memory(&mut self, elem: Type, length: u64) -> Eval<ObjId> {
        let types = self.types();
        let data = if bytes::has_bytes(types, elem) {
            let layout = types.layout(elem).map_err(|e| Fault::Type(e.display(types).to_string()))?;
            let (elem_size, align) = (u64::from(layout.size), u64::from(layout.align));
            let Some(size) = elem_size.checked_mul(length) else { return Err(self.out_of_memory()) };
            match self.memory.allocate(size, align.max(16)) {
                Ok(address) => Data::Raw { address, elem_size },
                Err(MemoryError::OutOfMemory { .. }) => return Err(self.out_of_memory()),
                Err(error) => return Err(error.into()),
            }
        } else {
            self.reserve(length)?;
            let first = bytes::fresh(types, elem, types.field_repr(elem));
            Data::Vals(vec![first; length as usize])
        };
        match self.heap.make(Object::Memory(Memory { elem, length, data, address: None })) {
            Ok(id) => Ok(id),
            Err(heap::Full) => Err(self.out_of_memory()),
        }
    }

    fn new_array(&mut self, elem: Type, dims: Vec<i64>) -> Eval<Val> {
        let ty = self.made(self.types().array(elem, dims.len() as u32))?;
        // Each intermediate product must fit as well.
        let length = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d).filter(|_| d >= 0));
        let Some(length) = length.and_then(|n| u64::try_from(n).ok()) else {
            // A vector reports its `Memory`'s length.
            let text = if dims.len() == 1 { arrays::INVALID_LENGTH } else { "invalid Array dimensions" };
            return Err(self.message("ArgumentError", text));
        };
        let memory = self.new_memory(elem, length)?;
        self.make(ty, Object::Array(Array { memory, offset: 0, dims }))
    }

    fn array_of(&mut self, elem: Type, dims: &[i64], elements: &[Val]) -> Eval<Val> {
        let array = self.new_array(elem, dims.to_vec())?;
        let Val::Object { id, .. } = array else { return Ok(array) };
        let Some(Array { memory, .. }) = self.heap.array(id).cloned() else { return Ok(array) };
        for (n, val) in elements.iter().enumerate() {
            self.set_element(memory, n as i64, val.clone())?;
        }
        Ok(array)
    }

    /// Runs the call that `start` pushes until it returns. Drops all frames, handlers and exceptions
    /// afterwards, even on error. on error.
    fn finish(&mut self, start: impl FnOnce(&mut Self) -> Eval<exec::Flow>) -> Result<Vec<Val>, Outcome> {
        let result = self.run_from(start);
        while self.pop_frame().is_some() {}
        self.handlers.clear();
        self.exceptions.clear();
        result
    }

    /// The outcome of a failure outside running functions.
    fn outcome_without_place(&self, stop: Stop) -> Outcome {
        match stop {
            Stop::Throw(val) => Outcome::Thrown(val),
            Stop::Fault(fault) => Outcome::Error(Box::new(InterpError { at: self.at(), fault })),
            Stop::OutOfFuel => Outcome::OutOfFuel,
            Stop::Ended(end) => Outcome::Ended(end),
        }
    }
}

struct Discard;

impl Output for Discard {
    fn write(&mut self, _: &[u8]) {}
}
