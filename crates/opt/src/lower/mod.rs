//! Lowers high IR to low IR: the only pass that handles both levels.
//!
//! ```text
//! function f(p::Tuple{Int64, Float64}, x::Int8)::Int64       f(i64, f64, i8) -> i64
//! %1 = getfield(p, 1)::Int64                            ──►  (a leaf of p, no instruction)
//! %2 = checked_sdiv_int(%1, 3)::Int64                        v1 = sdiv_int %p.0, 3
//! return %2                                                  return v1
//! ```
//!
//! **Values.** Every high value becomes its leaves, the registers of `brolga_ir::abi`. Objects become references; large
//! pointer-free values become the address of memory that does not change while the value is live. The result of a
//! statement may have a narrower type than the statement declares (see `value`). The slot of a value in memory form is
//! written once for each execution of its statement. A loop-carried value goes through a φ, and a φ in memory form has two
//! slots of its own: predecessors copy into the first, the head of the block copies the first to the second. So no copy
//! overwrites a value that another φ still reads, in any permutation.
//!
//! **Control.** Blocks keep their order; a check that may throw splits its block, and the throw goes to the end of the function.
//! Blocks are visited in reverse postorder, so a value is lowered before its uses; the operands of φs are lowered last,
//! at the ends of the predecessors. Unreachable blocks are dropped.
//!
//! **Asserted types are tested**: a row may declare a narrower result type than its operation has, and an operand of an `invoke` may
//! have a wider type than the parameter. No test is emitted if operand types or dominating tests prove the assertion
//! (`crate::asserted`).
//!
//! **Safepoints.** Each loop header has one (the target of a retreating edge, so every cycle has one), and so has the
//! entry of each function that calls compiled code, for recursion. A function without loops and calls has none.
//!
//! **Objects.** Every operation that the interpreter supports has a native form: inline where the types allow it, else
//! a call of the run time with objects as operands (`dynamic`). Roots are placed later, on low IR.
//!
//! **Refused operations** are those that neither inline code nor the run time supports. All errors are collected, each
//! with the operation's name; see `error`. Uses of a refused value are refused without another error.
//!
//! **Dropped**, because compiled code does not need them: coverage, loop notes, `donotdelete`, finalizers.
//!
//! Cost: one visit of each statement and φ edge. The lowered form of a statement is bounded by its operands and the limits named in
//! `abi`, `identity` and `aggregate`. Recursion follows the nesting of types only.
//!
//! | file | what it lowers |
//! |---|---|
//! | `scalar`, `atomic` | intrinsics |
//! | `aggregate`, `identity`, `object`, `array`, `places`, `opaque` | builtins |
//! | `call`, `c_struct`, `c_function`, `base`, `dynamic` | calls, throws, printing |
//! | `statics` | static parameters |
//! | `strings` | copies of bytes between strings, vectors and memories |
//! | `handler` | exception handlers |
//! | `value`, `union`, `boxes`, `memory`, `addr`, `element` | the forms of values and of the places that hold them |
//! | `mixed` | φs of objects that are numbers on some paths |
//! | `walk` | blocks, φs, terminators, safepoints |
//! | `entry_reads` | loads at the entry, which prove to loop passes that headers of array parameters are readable |
//! | `build` | emission of low instructions |

mod addr;
mod aggregate;
mod array;
mod atomic;
mod base;
mod boxes;
mod build;
mod c_function;
mod c_struct;
mod call;
mod dynamic;
mod element;
mod ends;
mod entry_reads;
mod error;
mod handler;
mod identity;
mod memory;
mod mixed;
mod object;
#[cfg(test)]
mod object_tests;
mod opaque;
mod places;
mod scalar;
mod statics;
mod strings;
#[cfg(test)]
mod tests;
mod union;
mod value;
mod walk;

pub use call::is_julia_function;
pub use dynamic::{boxed_entry, boxed_symbol};
pub use error::{At, LowerError, LowerErrors, Refusal};

use crate::asserted::Tests;
use crate::options::{CheckBounds, CpuFeatures, OptLevel};
use crate::replace::sized;
use brolga_ir::abi::{Form, NativeSignature, NotNative, Position};
use brolga_ir::builtin::Builtin;
use brolga_ir::func::{Place, Signature, ValueName};
use brolga_ir::signature::func_symbol;
use brolga_ir::types::Layout;
use brolga_ir::{Arch, Block, Context, Func, FuncId, Inst, Level, Module, Name, Op, Type, Types, Value};
use call::Target;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use handler::CatchSlots;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use value::Val;
use walk::PendingPhi;

/// Options of lowering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether safepoints are placed. Without them a thread cannot be stopped inside compiled code.
    pub safepoints: bool,
    /// Whether a function with loops loads the first dimension of its array parameters, and of arrays in them, at its
    /// entry. The value is not used; the load proves to loop passes that the header is readable, so they can hoist
    /// loads of it that a check dominates.
    pub entry_reads: bool,
    /// Whether `setfield!` sets the parts of an array in place. Otherwise the run time sets them, if the doors are
    /// open.
    pub array_parts: bool,
    /// Whether bounds are checked.
    pub check_bounds: CheckBounds,
    /// The architecture, whose C convention determines how structs are passed.
    pub arch: Arch,
    /// The processor: `have_fma` queries it, and `muladd_float` rounds as it does.
    pub cpu: CpuFeatures,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            safepoints: true,
            entry_reads: false,
            array_parts: true,
            check_bounds: CheckBounds::Auto,
            arch: Arch::HOST,
            cpu: CpuFeatures::default(),
        }
    }
}

impl Options {
    /// The options for a level of optimisation.
    pub fn of(level: OptLevel) -> Self {
        Self { entry_reads: level >= OptLevel::O2, ..Self::default() }
    }

    /// The options for a level of optimisation and for the options of the passes.
    pub fn with(level: OptLevel, options: &crate::Options) -> Self {
        Self {
            array_parts: !options.checked,
            check_bounds: options.bounds(),
            arch: options.arch,
            cpu: options.cpu,
            ..Self::of(level)
        }
    }
}

/// A callee that is not in the module.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a> {
    /// The function, which needs no body.
    pub func: &'a Func,
    /// Its symbol for the linker.
    pub symbol: Name,
}

/// The low form of a high function of `module`. A low function is returned unchanged.
pub fn lower(module: &Module, func: &Func, options: &Options) -> Result<Func, LowerErrors> {
    lower_beside(module, &[], func, options)
}

/// As [`lower`], for a function that also calls functions outside the module, each found by the type of its function object.
pub fn lower_beside(
    module: &Module,
    beside: &[Beside<'_>],
    func: &Func,
    options: &Options,
) -> Result<Func, LowerErrors> {
    Unit::new(module, beside).lower(func, options)
}

/// The low forms of all functions of a module, in order.
pub fn lower_module(module: &Module, options: &Options) -> Vec<(FuncId, Result<Func, LowerErrors>)> {
    let unit = Unit::new(module, &[]);
    module.funcs().map(|(id, func)| (id, unit.lower(func, options))).collect()
}

/// A module, and callees outside of it.
struct Unit<'a> {
    module: &'a Module,
    /// Callees outside the module.
    beside: &'a [Beside<'a>],
}

impl<'a> Unit<'a> {
    fn new(module: &'a Module, beside: &'a [Beside<'a>]) -> Self {
        Self { module, beside }
    }

    fn lower(&self, func: &Func, options: &Options) -> Result<Func, LowerErrors> {
        if func.level == Level::Low {
            return Ok(func.clone());
        }
        let cx = &self.module.cx;
        let symbol = match func.sig.params.is_empty() {
            false => func_symbol(cx, &func.sig),
            true => cx.names.text(func.name).to_owned(),
        };
        let (sig, refused) = match NativeSignature::new(&cx.types, &func.sig) {
            Ok(sig) => (Some(sig), Vec::new()),
            Err(refused) => (None, refused),
        };
        let low = sig.as_ref().map_or_else(Signature::default, NativeSignature::low);
        let out = Func::sized_like(cx.names.intern(&symbol), Level::Low, low, func);
        let mut lowering = Lowering::new(self, func, out);
        lowering.array_parts = options.array_parts;
        lowering.check_bounds = options.check_bounds;
        lowering.arch = options.arch;
        lowering.cpu = options.cpu;
        lowering.refuse_signature(refused);
        lowering.params(sig.is_some());
        lowering.body(*options);
        lowering.debug_names();
        if lowering.errors.is_empty() {
            Ok(lowering.out)
        } else {
            Err(LowerErrors { function: symbol, errors: lowering.errors })
        }
    }
}

/// An error was recorded, so the value or statement has no lowered form.
#[derive(Clone, Copy, Debug)]
struct Reported;

/// The result of a step of lowering.
type Step<T> = Result<T, Reported>;

/// The lowered form of a high value.
#[derive(Clone, Copy, Debug, Default)]
enum Known {
    /// The value has no lowered form yet.
    #[default]
    Nothing,
    /// Its leaves are a range of the pool.
    Leaves { ty: Type, start: u32, count: u8 },
    /// A φ of a web (`mixed`): its three leaves in the pool.
    Mixed { start: u32, web: u32 },
    /// It has no native form, which was reported.
    Refused,
    /// An exception whose only use is a throw, which constructs it.
    Thrown,
    /// A token of `enter`, and the number of exceptions being handled before it.
    Handler { token: Value, depth: Value },
    /// A token of `gc_preserve_begin`, if there was anything to preserve.
    Preserved(Option<Value>),
}

/// The state of lowering one function.
struct Lowering<'a> {
    unit: &'a Unit<'a>,
    cx: &'a Context,
    types: &'a Types,
    src: &'a Func,
    out: Func,
    /// See [`Options::array_parts`].
    array_parts: bool,
    /// See [`Options::check_bounds`].
    check_bounds: CheckBounds,
    /// See [`Options::arch`].
    arch: Arch,
    /// See [`Options::cpu`].
    cpu: CpuFeatures,
    forms: FxHashMap<Type, Result<Rc<Form>, NotNative>>,
    known: SecondaryMap<Value, Known>,
    pool: Vec<Value>,
    /// The numbers of constants that are stored as bytes.
    data: FxHashMap<Value, u32>,
    targets: FxHashMap<FuncId, Target>,
    /// The low blocks in which a high block begins, and ends with its terminator.
    heads: SecondaryMap<Block, PackedOption<Block>>,
    tails: SecondaryMap<Block, PackedOption<Block>>,
    phis: Vec<PendingPhi>,
    webs: mixed::Webs,
    /// The current block, and the instruction before which code is inserted, if not at the end.
    cur: Block,
    before: Option<Inst>,
    /// The current statement, and its place.
    at: Inst,
    place: Place,
    /// References that are not null in the rest of this block.
    defined: FxHashMap<Value, Block>,
    /// By the first leaf of a value: the object that it was unboxed from, and the value.
    unboxed: FxHashMap<Value, (Value, Val)>,
    /// The number of uses of each high value; see `is_thrown_once`.
    uses: Option<SecondaryMap<Value, u32>>,
    /// The source's values that leave the function or get another name, once they were asked for.
    handed_on: Option<EntitySet<Value>>,
    /// The slots of each φᶜ, and the φᶜ that name each ϒ.
    catches: FxHashMap<Inst, Rc<CatchSlots>>,
    upsilons: FxHashMap<Inst, Vec<Inst>>,
    /// The tests that dominate each block of the high function.
    tests: Tests,
    /// Whether the function calls compiled code.
    calls: bool,
    /// The calls that return arrays, in their order.
    array_results: Vec<(Inst, entry_reads::ArrayLeaf)>,
    errors: Vec<LowerError>,
}

impl<'a> Lowering<'a> {
    fn new(unit: &'a Unit<'a>, src: &'a Func, out: Func) -> Self {
        let cx: &Context = &unit.module.cx;
        Lowering {
            unit,
            cx,
            types: &cx.types,
            src,
            out,
            array_parts: true,
            check_bounds: CheckBounds::Auto,
            arch: Arch::HOST,
            cpu: CpuFeatures::default(),
            forms: FxHashMap::default(),
            known: sized(src.value_count()),
            pool: Vec::new(),
            data: FxHashMap::default(),
            targets: FxHashMap::default(),
            heads: SecondaryMap::with_capacity(src.block_count()),
            tails: SecondaryMap::with_capacity(src.block_count()),
            phis: Vec::new(),
            webs: mixed::Webs::default(),
            cur: Block::from_u32(0),
            before: None,
            at: Inst::from_u32(0),
            place: Place::default(),
            defined: FxHashMap::default(),
            unboxed: FxHashMap::default(),
            uses: None,
            handed_on: None,
            catches: FxHashMap::default(),
            upsilons: FxHashMap::default(),
            tests: Tests::none(),
            calls: false,
            array_results: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The names for debuggers of values that one register carries.
    fn debug_names(&mut self) {
        self.out.set_file(self.src.file());
        self.out.share_inlined_calls(self.src);
        for &name in self.src.value_names() {
            let Known::Leaves { start, count: 1, .. } = self.known[name.value] else { continue };
            if let Some(&value) = self.pool.get(start as usize) {
                self.out.name_value(ValueName { value, ..name });
            }
        }
    }

    /// The layout of a concrete type; an error if it has none.
    fn layout(&mut self, ty: Type) -> Step<&'a Layout> {
        let types = self.types;
        types.layout(ty).map_err(|why| self.not_native(NotNative::NoLayout(why)))
    }
}

impl Lowering<'_> {
    // ----- errors -----

    fn report(&mut self, why: Refusal) -> Reported {
        let error = LowerError { at: At::Inst(self.at), place: self.src.place(self.at), why };
        if self.errors.last() != Some(&error) {
            self.errors.push(error);
        }
        Reported
    }

    fn refuse_signature(&mut self, refused: Vec<(Position, NotNative)>) {
        let first = self.src.entry().and_then(|b| self.src.first_inst(b));
        let place = first.map_or_else(Place::default, |i| self.src.place(i));
        for (position, why) in refused {
            let at = match position {
                Position::Argument(n) => At::Argument(n),
                Position::Result => At::Result,
            };
            let why = self.refusal_of(why);
            self.errors.push(LowerError { at, place, why });
        }
    }

    /// The name of the current operation, for messages.
    fn op_name(&self) -> String {
        match self.src.op(self.at) {
            Op::Intrinsic(op) => op.to_string(),
            Op::Builtin(op) => op.to_string(),
            Op::Phi => "φ".to_owned(),
            Op::Pi => "π".to_owned(),
            Op::New(ty) => format!("%new({})", self.types.display(ty)),
            Op::SplatNew(ty) => format!("%splatnew({})", self.types.display(ty)),
            Op::Invoke(_) => "invoke".to_owned(),
            Op::ForeignCall(_) => "foreigncall".to_owned(),
            Op::CFunction(_) => "cfunction".to_owned(),
            Op::CGlobal(_) => "cglobal".to_owned(),
            Op::StaticParameter(_) => "static_parameter".to_owned(),
            Op::Branch => "goto if not".to_owned(),
            Op::Return => "return".to_owned(),
            other => format!("{other:?}"),
        }
    }

    // ----- statements -----

    fn inst(&mut self, op: Op) -> Step<()> {
        match op {
            Op::Intrinsic(op) => self.intrinsic(op),
            Op::Builtin(op) => self.builtin(op),
            Op::Copy | Op::Pi => self.pass_on(),
            Op::Invoke(callee) => self.invoke(callee),
            Op::ForeignCall(foreign) => self.foreign_call(foreign),
            Op::CFunction(callee) => self.c_function(callee),
            Op::CGlobal(name) => self.c_global(name),
            Op::New(ty) => self.new_struct(ty),
            Op::SplatNew(ty) => self.splat_new(ty),
            Op::GetGlobal(name) => self.global(name),
            Op::ThrowUndefIfNot(name) => self.throw_undef_if_not(name),
            Op::BoundsCheck(asked) => {
                let on = self.truth(self.check_bounds.settled(asked));
                self.define(Val::scalar(Type::BOOL, on))
            }
            Op::GcPreserveBegin => self.preserve(),
            Op::GcPreserveEnd => self.end_preserve(),
            Op::LoopInfo(_) | Op::CodeCoverage => self.define(Val::ghost(Type::NOTHING)),
            Op::Spend(units) => self.spend(units),
            Op::Goto | Op::Branch | Op::Return | Op::Unreachable | Op::Enter => self.terminator(op),
            Op::Leave => self.leave(),
            Op::TheException => self.the_exception(),
            Op::PopException => self.pop_exception(),
            Op::Upsilon => self.upsilon(),
            Op::PhiC => self.phi_c(),
            Op::Call => self.dynamic_call(),
            Op::StaticParameter(number) => self.static_parameter(number),
            Op::StaticDefined(number) => self.static_defined(number),
            Op::Phi
            | Op::Load(_)
            | Op::Store(_)
            | Op::AtomicLoad(_)
            | Op::AtomicStore(_)
            | Op::AtomicRmw(..)
            | Op::AtomicCas(_)
            | Op::SlotAddr(_)
            | Op::MemCopy
            | Op::CallSymbol(_)
            | Op::CallRuntime(_)
            | Op::Safepoint
            | Op::Alloc(_)
            | Op::AllocStack(_)
            | Op::TypeOf
            | Op::WriteBarrier
            | Op::GcLoaded
            | Op::PointerFromObjref
            | Op::CallArgs(_)
            | Op::ThreadAddr
            | Op::Lanes(..)
            | Op::Splat(_)
            | Op::ExtractLane(..)
            | Op::InsertLane(..)
            | Op::LaneSelect => {
                Err(self.report(Refusal::Malformed { what: "an operation of low IR is in a high function" }))
            }
        }
    }

    /// Lowers `π` and copies: the operand, with the result's type. If dominating tests prove the asserted type, the operand is
    /// converted without a test.
    fn pass_on(&mut self) -> Step<()> {
        let (value, src) = (self.arg(0)?, self.src);
        let (types, block) = (self.types, src.inst_block(self.at));
        if let (Some(mixed), Some(block), Some(result)) = (self.mixed(value), block, src.result(self.at)) {
            let (given, wanted) = (src.ty(value), src.ty(result));
            let known = self.tests.narrowed(src, types, value, block, given);
            if types.is_subtype(known, wanted)
                && let Some(val) = self.mixed_as(mixed, given, wanted)?
            {
                return self.define(val);
            }
        }
        let val = self.val(value)?;
        let Some(result) = src.result(self.at) else { return Ok(()) };
        let wanted = src.ty(result);
        let known = block.map_or(val.ty, |block| self.tests.narrowed(src, types, value, block, val.ty));
        let proven = !types.is_subtype(val.ty, wanted) && types.is_subtype(known, wanted);
        let val = if proven { self.convert(val, wanted)? } else { val };
        self.define(val)
    }

    fn builtin(&mut self, op: Builtin) -> Step<()> {
        match op {
            Builtin::Egal => self.egal(),
            Builtin::Typeof => self.typeof_(),
            Builtin::Isa => self.isa(),
            Builtin::Typeassert => self.typeassert(),
            Builtin::Subtype => self.subtype(),
            Builtin::Sizeof => self.sizeof(),
            Builtin::Nfields => self.nfields(),
            Builtin::Fieldtype => self.fieldtype(),
            Builtin::Isdefined => self.isdefined(),
            Builtin::Tuple => self.tuple(),
            Builtin::Getfield => self.getfield(),
            Builtin::Throw => self.throw_statement(),
            Builtin::Ifelse => self.ifelse(),
            Builtin::Donotdelete => self.donotdelete(),
            Builtin::Finalizer | Builtin::CurrentScope => self.define(Val::ghost(Type::NOTHING)),
            Builtin::Compilerbarrier => {
                let val = self.operand(1)?;
                self.define(val)
            }
            Builtin::Blackbox => self.blackbox(),
            Builtin::Setfield
            | Builtin::Swapfield
            | Builtin::Modifyfield
            | Builtin::Replacefield
            | Builtin::Setfieldonce => self.change_field(op),
            op if op.is_of_global() => self.global_builtin(op),
            Builtin::Memorynew
            | Builtin::Memoryrefnew
            | Builtin::Memoryrefget
            | Builtin::Memoryrefset
            | Builtin::Memoryrefswap
            | Builtin::Memoryrefmodify
            | Builtin::Memoryrefreplace
            | Builtin::Memoryrefsetonce
            | Builtin::Memoryrefoffset
            | Builtin::MemoryrefIsassigned
            | Builtin::Arrayref
            | Builtin::Arrayset
            | Builtin::Arraylen
            | Builtin::Arraysize => self.array_builtin(op),
            Builtin::ApplyIterate
            | Builtin::Invoke
            | Builtin::Invokelatest
            | Builtin::InvokeInWorld
            | Builtin::Applicable => self.calling_builtin(op),
            _ => self.call_builtin(op),
        }
    }
}
