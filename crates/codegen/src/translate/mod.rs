//! Low IR to Cranelift IR.
//!
//! ```text
//!   Func (low, verified) ──Translator──> clif Function  +  the symbols of its external names
//! ```
//!
//! One walk in reverse postorder, so that every operand is translated before its use in any layout order.
//! Blocks without a path from the entry have no counterpart.
//!
//! | low IR | CLIF |
//! |---|---|
//! | φ | block parameters; an edge that is missing passes zero |
//! | constants | made at their uses, once per block |
//! | `Bool` (i8, 0 or 1) | `icmp`/`fcmp` results, which are the same |
//! | regions | alias regions, see `memory` |
//! | calls of compiled code | `tail` convention, through the signature rule of `sig.rs` |
//! | a throw | a routine that records the exception, then `brolga_unwind` or a branch to the handler, in a cold block |
//!
//! **Branches.** Cranelift hoists nothing out of a loop whose body comes after a side exit in dominator order, so the
//! successor that leaves the innermost loop goes first in every `brif`, with the comparison inverted. A comparison is
//! translated again at the branch that tests it: fused with it, it costs nothing, and the first copy dies if nothing
//! else reads it.
//!
//! **Safety.** The input is verified low IR; anything else (an operand without a value, a type that does not
//! fit) is a [`TranslateError`], never a guess. Nothing here recurses. Cost: linear, one visit of each instruction.
//!
//! | file | what it translates |
//! |---|---|
//! | `int` | integer arithmetic, comparisons, checked pairs, division |
//! | `float` | float arithmetic and comparisons, `Float16` through `Float32` |
//! | `convert` | between integers and floats of any width |
//! | `memory` | loads, stores, slots, copies, atomics |
//! | `call` | compiled code, routines of the run time, C functions |
//! | `exception` | handlers, and where an exception continues |
//! | `vector` | operations on lanes |
//! | `cells` | calls through indirection cells, counted entries, OSR checks |
//! | `pointer` | calls through pointers that may be C entries |
//! | `profile` | counts of branches and of operand types |
//! | `dispatch` | dynamic calls |
//! | `ladder` | chains of comparisons, as tables of jumps |
//! | `wide` | loops in 256 bits |

mod call;
mod cells;
mod convert;
mod dispatch;
mod exception;
mod float;
mod int;
mod ladder;
mod memory;
mod pointer;
mod profile;
mod vector;
mod wide;

use brolga_ir::analysis::{Cfg, DomTree, Handlers, Loops, Rpo};
use brolga_ir::builtin::Builtin;
use brolga_ir::constant::{Address, Const};
use brolga_ir::func::ValueDef;
use brolga_ir::intrinsic::{Intrinsic, Shape};
use brolga_ir::{Block, Context, Func, Inst, Level, LowType, Name, Op, PtrClass, RuntimeFn, Type, Value};
use cranelift_codegen::ir::{self as clif, BlockArg, GlobalValueData, InstBuilder, types};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use rustc_hash::FxHashMap;

use crate::compiled::{NamedType, Symbol};
use crate::isa::TargetIsa;
use crate::linkage::CallLinkage;
use crate::origin::Origins;
use crate::sig::{Abi, Signature};
use crate::thread;
use crate::wide::WideCode;

/// Why a function could not be translated. Apart from [`TranslateError::Foreign`] and [`TranslateError::Unsupported`]
/// the caller is at fault: it handed over a function that was not verified.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum TranslateError {
    /// The function is not low IR.
    #[error("`{name}` is high IR; only low IR becomes machine code")]
    NotLow { name: String },
    /// The function has no blocks, or a block does not end in a terminator.
    #[error("`{name}` has a block without a terminator")]
    Unterminated { name: String },
    /// An operand has no value here.
    #[error("in `{name}`, an operand of {inst} is not defined before its use")]
    Undefined { name: String, inst: Inst },
    /// The types of the operands or results do not fit the operation.
    #[error("in `{name}`, the types of {inst} do not fit its operation")]
    Types { name: String, inst: Inst },
    /// A call of a C function that this host's C convention does not define.
    #[error(
        "in `{name}`, the call of C function `{callee}` passes {what}, which is not supported on this host"
    )]
    Foreign {
        name: String,
        /// The C function.
        callee: String,
        /// The value that cannot be passed.
        what: &'static str,
    },
    /// The code generator has no such operation.
    #[error("in `{name}`, {inst} is {what}, which the code generator does not have")]
    Unsupported {
        name: String,
        inst: Inst,
        /// The operation.
        what: &'static str,
    },
}

/// Options of a translation.
#[derive(Clone, Copy, Debug)]
pub struct TranslateOptions {
    /// Compare the stack pointer with the thread's limit at the entry of functions that call.
    pub stack_check: bool,
    /// Look for loops and order branches by them. Worth it only where Cranelift optimises.
    pub order_branches: bool,
    /// Have all throws that leave the function continue in one place: less to compile, and one jump more.
    pub share_unwind: bool,
    /// Store the variables of the source in the frame at each assignment, so that debuggers always find them.
    pub keep_variables: bool,
}

impl Default for TranslateOptions {
    fn default() -> Self {
        TranslateOptions {
            stack_check: true,
            order_branches: true,
            share_unwind: false,
            keep_variables: false,
        }
    }
}

/// The parts of a translation beside the function in Cranelift's IR, for [`Compiler::compile`](crate::compile::Compiler::compile).
#[derive(Debug)]
pub struct Translated {
    /// The symbol of the external name `u0:N`, by N.
    pub symbols: Vec<Symbol>,
    /// Constant bytes that the function refers to, under their symbols.
    pub data: Vec<(Symbol, Box<[u8]>)>,
    /// The variables that are kept in the frame, by the numbers of their stack slots.
    pub homes: Vec<(Name, u32)>,
    /// Code that follows the function's own: the external name `u2:N`, by N.
    pub wide_loops: Vec<WideCode>,
    /// The source locations.
    pub(crate) origins: Origins,
}

/// Translates functions one after the other. Scratch memory is kept between them; one translator per thread.
#[derive(Default)]
pub struct Translator {
    scratch: FunctionBuilderContext,
}

impl Translator {
    /// A translator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Translates `func` into `out`, which is cleared first.
    ///
    /// `linkage` determines how it reaches separately compiled code.
    pub fn translate(
        &mut self,
        cx: &Context,
        func: &Func,
        isa: &TargetIsa,
        options: TranslateOptions,
        linkage: CallLinkage<'_>,
        out: &mut clif::Function,
    ) -> Result<Translated, TranslateError> {
        let name = cx.names.text(func.name).to_owned();
        let (Level::Low, Some(entry)) = (func.level, func.entry()) else {
            return Err(match func.level {
                Level::High => TranslateError::NotLow { name },
                Level::Low => TranslateError::Unterminated { name },
            });
        };
        out.clear();
        let Some(signature) = signature_of(func) else {
            let inst = func.first_inst(entry).unwrap_or(Inst::from_u32(0));
            return Err(TranslateError::Types { name, inst });
        };
        out.signature = signature.clif();
        if !func.value_names().is_empty() {
            out.dfg.collect_debug_info();
        }
        let regions = memory::alias_regions(func, out);
        let cfg = Cfg::compute(func);
        let rpo = Rpo::compute(&cfg);
        let needs_loops = options.order_branches || linkage.is_profiled;
        let loops = needs_loops.then(|| Loops::compute(&cfg, &rpo, &DomTree::compute(&cfg)));
        let mut t = Translation {
            b: FunctionBuilder::new(out, &mut self.scratch),
            cx,
            func,
            cfg: &cfg,
            name,
            values: SecondaryMap::with_capacity(func.value_count()),
            consts: FxHashMap::default(),
            blocks: SecondaryMap::with_capacity(func.block_count()),
            passed: SecondaryMap::with_capacity(func.block_count()),
            symbols: Vec::new(),
            symbol_ids: FxHashMap::default(),
            imports: FxHashMap::default(),
            data: Vec::new(),
            regions,
            loops,
            handlers: Handlers::compute(func, &cfg, &rpo),
            inside: None,
            record: None,
            pads: SecondaryMap::new(),
            isa,
            exits: 0,
            linkage,
            result_pointer: None,
            overflow: None,
            unwind: None,
            shares_unwind: options.share_unwind,
            slots: SecondaryMap::new(),
            words: None,
            apart: None,
            asked: None,
            answered: None,
            uses: None,
            named: FxHashMap::default(),
            homes: Vec::new(),
            home_of: FxHashMap::default(),
            in_ladder: EntitySet::new(),
            replaced: EntitySet::new(),
            wide_loops: Vec::new(),
            origins: Origins::new(func),
            loop_memory: None,
            leaving: None,
        };
        if options.keep_variables {
            func.value_names().iter().for_each(|name| t.named.entry(name.value).or_default().push(name.name));
        }
        // Cranelift keeps differences to the first word it sees, and -1 means "no location".
        t.b.func.params.ensure_base_srcloc(clif::SourceLoc::new(0));
        let done = t.function(rpo.blocks(), &signature, options);
        let Translation { mut b, symbols, data, homes, wide_loops, origins, .. } = t;
        match done {
            Ok(()) => {
                b.seal_all_blocks();
                b.finalize(isa.frontend_config());
                let homes = homes.into_iter().map(|(name, slot)| (name, slot.as_u32())).collect();
                Ok(Translated { symbols, data, homes, wide_loops, origins })
            }
            Err(error) => {
                // Only `finalize` clears the scratch memory, and it requires filled blocks: replace the memory.
                self.scratch = FunctionBuilderContext::new();
                Err(error)
            }
        }
    }
}

/// The native signature of a low function; `None` if a type is not a low type.
pub fn signature_of(func: &Func) -> Option<Signature> {
    let abi = |ty: Type| ty.as_low().map(abi_of);
    Some(Signature {
        params: func.sig.params.iter().map(|p| abi(p.ty)).collect::<Option<_>>()?,
        results: func.sig.results.iter().map(|&ty| abi(ty)).collect::<Option<_>>()?,
    })
}

/// How a low type crosses a call.
pub fn abi_of(low: LowType) -> Abi {
    match low {
        LowType::I8 => Abi::I8,
        LowType::I16 => Abi::I16,
        LowType::I32 => Abi::I32,
        LowType::I64 => Abi::I64,
        LowType::I128 => Abi::I128,
        LowType::F16 => Abi::F16,
        LowType::F32 => Abi::F32,
        LowType::F64 => Abi::F64,
        LowType::Ptr(PtrClass::Tracked) => Abi::Object,
        LowType::Ptr(_) => Abi::Ptr,
        LowType::V128 => Abi::V128,
    }
}

/// The symbol of constant bytes of a function.
fn data_symbol(func: &str, number: u32) -> Symbol {
    Symbol::Data(format!("{func}#{number}"))
}

type Done = Result<(), TranslateError>;

/// The argument of a block for φ `number` of its successor `to`.
#[derive(Clone, Copy)]
struct Passed {
    to: Block,
    number: usize,
    value: Value,
}

/// The function being translated.
struct Translation<'a> {
    b: FunctionBuilder<'a>,
    cx: &'a Context,
    func: &'a Func,
    cfg: &'a Cfg,
    name: String,
    /// The translation of arguments and results.
    values: SecondaryMap<Value, PackedOption<clif::Value>>,
    /// The constants already materialized in the current block.
    consts: FxHashMap<Value, clif::Value>,
    blocks: SecondaryMap<Block, PackedOption<clif::Block>>,
    passed: SecondaryMap<Block, Vec<Passed>>,
    symbols: Vec<Symbol>,
    symbol_ids: FxHashMap<Symbol, u32>,
    imports: FxHashMap<Symbol, clif::FuncRef>,
    data: Vec<(Symbol, Box<[u8]>)>,
    regions: memory::AliasRegions,
    loops: Option<Loops>,
    handlers: Handlers,
    /// The `enter` of the innermost handler in force at the place being translated.
    inside: Option<Inst>,
    record: Option<thread::Handler>,
    pads: SecondaryMap<Inst, exception::Pads>,
    isa: &'a TargetIsa,
    /// The number of calls that record an exit from compiled code.
    exits: u32,
    linkage: CallLinkage<'a>,
    result_pointer: Option<clif::Value>,
    overflow: Option<clif::Block>,
    /// Where code without a handler in force branches to when an exception is pending.
    unwind: Option<clif::Block>,
    /// Whether throws without a handler in force do, too.
    shares_unwind: bool,
    slots: SecondaryMap<brolga_ir::Slot, PackedOption<clif::StackSlot>>,
    /// The alias region of indirection cells and counters.
    words: Option<clif::AliasRegion>,
    /// The word through which operands of throws are copied.
    apart: Option<clif::StackSlot>,
    /// The OSR check on whose answer the next instruction branches.
    asked: Option<String>,
    /// The exception check that the call before it has made redundant.
    answered: Option<Inst>,
    /// Where values are used, if requested.
    uses: Option<SecondaryMap<Value, Uses>>,
    /// The variables that are kept in the frame, by value.
    named: FxHashMap<Value, Vec<Name>>,
    /// Where they are kept, in the order of their first assignments.
    homes: Vec<(Name, clif::StackSlot)>,
    /// The same by name.
    home_of: FxHashMap<Name, clif::StackSlot>,
    /// Blocks of visited ladders, except their first.
    in_ladder: EntitySet<Block>,
    /// The blocks that a table of jumps replaces.
    replaced: EntitySet<Block>,
    /// The code of loops that follow the function.
    wide_loops: Vec<WideCode>,
    origins: Origins,
    /// The stack slot for calling them.
    loop_memory: Option<clif::StackSlot>,
    /// The values that are used outside of their blocks, if requested.
    leaving: Option<EntitySet<Value>>,
}

/// Where a value is used.
#[derive(Clone, Copy, Default)]
enum Uses {
    #[default]
    None,
    One(Inst),
    More,
}

impl Translation<'_> {
    fn function(&mut self, rpo: &[Block], signature: &Signature, options: TranslateOptions) -> Done {
        for &block in rpo {
            let made = self.b.create_block();
            if self.func.is_cold(block) {
                self.b.set_cold_block(made);
            }
            self.blocks[block] = made.into();
        }
        let Some(&entry) = rpo.first() else {
            return Err(TranslateError::Unterminated { name: self.name.clone() });
        };
        self.collect_edges(rpo);
        self.entry(entry, signature, options)?;
        if !self.named.is_empty() {
            self.func.params().to_vec().into_iter().for_each(|param| self.keep(param));
        }
        for &block in rpo {
            // A ladder's blocks come after its first.
            if self.replaced.contains(block) {
                continue;
            }
            if block != entry {
                let made = self.block(block)?;
                self.b.switch_to_block(made);
            }
            self.consts.clear();
            self.inside = self.handlers.at_head(block);
            if options.order_branches && self.wide_loop(block)? {
                continue;
            }
            self.insts(block)?;
        }
        self.inside = None;
        self.pad_blocks()?;
        self.overflow_block();
        self.unwind_block();
        if !options.keep_variables {
            self.label_values();
        }
        Ok(())
    }

    /// Stores a value in the frame for each source variable that has it.
    fn keep(&mut self, value: Value) {
        let (Some(names), Some(made)) = (self.named.get(&value), self.values[value].expand()) else { return };
        for name in names.clone() {
            let home = match self.home_of.get(&name) {
                Some(&home) => home,
                None => {
                    let data = clif::StackSlotData::new(clif::StackSlotKind::ExplicitSlot, 16, 4);
                    let home = self.b.create_sized_stack_slot(data);
                    self.homes.push((name, home));
                    self.home_of.insert(name, home);
                    home
                }
            };
            self.b.ins().stack_store(types::I64, made, home, 0);
        }
    }

    /// Labels the values that are variables of the source by their numbers (`variables.rs`).
    fn label_values(&mut self) {
        for (label, name) in self.func.value_names().iter().enumerate() {
            if let Some(value) = self.values[name.value].expand() {
                self.b.set_val_label(value, clif::ValueLabel::from_u32(label as u32));
            }
        }
    }

    /// Arguments, the thread, and the stack check, ahead of the first block's instructions.
    fn entry(&mut self, entry: Block, signature: &Signature, options: TranslateOptions) -> Done {
        let made = self.block(entry)?;
        self.b.append_block_params_for_function_params(made);
        self.b.switch_to_block(made);
        let mut given = self.b.block_params(made).to_vec().into_iter();
        if signature.returns_through_memory() {
            self.result_pointer = given.next();
        }
        for (&param, value) in self.func.params().iter().zip(given) {
            self.values[param] = value.into();
        }
        let ops = || self.func.blocks().flat_map(|b| self.func.block_insts(b)).map(|i| self.func.op(i));
        // A throw alone needs no check: it finds the reserve below the limit.
        let checks = options.stack_check
            && ops().any(|op| match op {
                Op::CallSymbol(_) | Op::ForeignCall(_) => true,
                Op::CallRuntime(f) => f.returns(),
                _ => false,
            });
        if checks {
            let thread = self.thread();
            let overflow = self.b.create_block();
            self.b.set_cold_block(overflow);
            self.overflow = Some(overflow);
            thread::check_stack(&mut self.b, thread, overflow);
        }
        self.count_entry();
        self.fill_record();
        Ok(())
    }

    fn overflow_block(&mut self) {
        if let Some(block) = self.overflow {
            self.b.switch_to_block(block);
            // The last throw, and often the only one.
            self.shares_unwind &= self.unwind.is_some();
            self.throw_stack_overflow();
        }
    }

    fn insts(&mut self, block: Block) -> Done {
        let func = self.func;
        if func.terminator(block).is_none() {
            return Err(TranslateError::Unterminated { name: self.name.clone() });
        }
        let mut phis = Vec::new();
        for inst in func.block_insts(block) {
            let place = func.place(inst);
            self.b.set_srcloc(self.origins.word(place));
            let is_phi = func.op(inst) == Op::Phi;
            if !is_phi {
                // Parameters of a block precede its instructions.
                phis.drain(..).for_each(|phi| self.keep(phi));
            }
            self.inst(block, inst)?;
            if !self.named.is_empty() && !func.op(inst).is_terminator() {
                match is_phi {
                    true => phis.extend(func.results(inst)),
                    false => func.results(inst).for_each(|result| self.keep(result)),
                }
            }
        }
        Ok(())
    }

    /// The instruction that uses a value, if it is used once.
    fn only_use(&mut self, value: Value) -> Option<Inst> {
        if let Uses::One(inst) = self.uses_of(value) { Some(inst) } else { None }
    }

    /// Whether any instruction uses a value.
    fn is_used(&mut self, value: Value) -> bool {
        !matches!(self.uses_of(value), Uses::None)
    }

    fn uses_of(&mut self, value: Value) -> Uses {
        let func = self.func;
        let uses = self.uses.get_or_insert_with(|| {
            let mut uses = SecondaryMap::with_capacity(func.value_count());
            for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
                for &value in func.args(inst) {
                    uses[value] =
                        if matches!(uses[value], Uses::None) { Uses::One(inst) } else { Uses::More };
                }
            }
            uses
        });
        uses[value]
    }

    /// One of two values. 128 bits are chosen by halves: Cranelift makes a minimum or maximum of a whole choice between
    /// two compared values, and has no instructions for one of that width.
    fn choose(&mut self, cond: clif::Value, yes: clif::Value, no: clif::Value) -> clif::Value {
        if self.b.func.dfg.value_type(yes) != types::I128 || self.b.func.dfg.value_type(no) != types::I128 {
            return self.b.ins().select(cond, yes, no);
        }
        let ((yes_low, yes_high), (no_low, no_high)) = (self.b.ins().isplit(yes), self.b.ins().isplit(no));
        let low = self.b.ins().select(cond, yes_low, no_low);
        let high = self.b.ins().select(cond, yes_high, no_high);
        self.b.ins().iconcat(low, high)
    }

    fn inst(&mut self, block: Block, inst: Inst) -> Done {
        match self.func.op(inst) {
            Op::Phi => self.phi(block, inst),
            Op::Copy => {
                let value = self.arg(inst, 0)?;
                self.define(inst, &[value])
            }
            Op::Intrinsic(op) => self.intrinsic(inst, op),
            Op::Builtin(Builtin::Ifelse) => {
                let (cond, yes, no) = (self.arg(inst, 0)?, self.arg(inst, 1)?, self.arg(inst, 2)?);
                let chosen = self.choose(cond, yes, no);
                self.define(inst, &[chosen])
            }
            Op::Goto => self.jump(block, inst),
            Op::Branch => self.branch(block, inst),
            Op::Return => self.return_(inst),
            Op::Enter => self.enter(block, inst),
            Op::Leave => self.leave(inst),
            Op::Unreachable => {
                // The call before it does not return; reaching this is a defect and stops at once.
                self.trap();
                Ok(())
            }
            Op::Load(access) => self.load(inst, access),
            Op::Store(access) => self.store(inst, access),
            Op::AtomicLoad(_) => self.atomic_load(inst),
            Op::AtomicStore(_) => self.atomic_store(inst),
            Op::AtomicRmw(op, _) => self.atomic_rmw(inst, op),
            Op::AtomicCas(_) => self.atomic_cas(inst),
            Op::SlotAddr(slot) => self.slot_addr(inst, slot),
            Op::MemCopy => self.mem_copy(inst),
            Op::CallSymbol(callee) => self.call_symbol(inst, callee),
            Op::CallRuntime(RuntimeFn::Apply) => self.apply(inst),
            Op::CallRuntime(RuntimeFn::CarriedException) => self.carried_exception(inst),
            Op::CallRuntime(RuntimeFn::ExceptionDepth) => self.exception_depth(inst),
            Op::CallRuntime(entry) => self.call_runtime(inst, entry),
            Op::ForeignCall(foreign) => self.foreign_call(inst, foreign),
            Op::CFunction(callee) => self.c_function(inst, callee),
            Op::CGlobal(name) => self.c_global(inst, name),
            Op::PointerFromObjref => {
                let object = self.arg(inst, 0)?;
                self.define(inst, &[object])
            }
            Op::Lanes(op, lanes) => self.lanes(inst, op, lanes),
            Op::Splat(lanes) => self.splat(inst, lanes),
            Op::ExtractLane(lanes, lane) => self.extract_lane(inst, lanes, lane),
            Op::InsertLane(lanes, lane) => self.insert_lane(inst, lanes, lane),
            Op::LaneSelect => self.lane_select(inst),
            Op::ThreadAddr => {
                let thread = self.thread();
                self.define(inst, &[thread])
            }
            Op::Safepoint => self.safepoint(inst),
            _ => Err(TranslateError::NotLow { name: self.name.clone() }),
        }
    }

    fn intrinsic(&mut self, inst: Inst, op: Intrinsic) -> Done {
        match op.shape() {
            Shape::IntUnary
            | Shape::IntBinary
            | Shape::IntDivide
            | Shape::Shift
            | Shape::IntCompare
            | Shape::CheckedPair
            | Shape::PtrOffset => self.int(inst, op),
            Shape::FloatUnary | Shape::FloatBinary | Shape::FloatTernary | Shape::FloatCompare => {
                self.float(inst, op)
            }
            Shape::Convert(kind) => self.convert(inst, kind),
            Shape::AtomicFence => {
                self.b.ins().fence();
                Ok(())
            }
            Shape::Query => {
                // As in the interpreter, so that a program does not depend on the executing tier; `fma_float` is
                // exact everywhere.
                let no = self.b.ins().iconst(types::I8, 0);
                self.define(inst, &[no])
            }
            Shape::PtrLoad
            | Shape::PtrStore
            | Shape::AtomicLoad
            | Shape::AtomicStore
            | Shape::AtomicSwap
            | Shape::AtomicModify
            | Shape::AtomicReplace
            | Shape::Foreign => Err(TranslateError::NotLow { name: self.name.clone() }),
        }
    }

    // ----- control -----

    fn phi(&mut self, block: Block, inst: Inst) -> Done {
        let ty = self.result_type(inst)?;
        let made = self.block(block)?;
        let param = self.b.append_block_param(made, abi_of(ty).clif());
        self.define(inst, &[param])
    }

    /// Records for every block the arguments for its successors' φs, so that the cost of an edge does not depend on the
    /// other predecessors.
    fn collect_edges(&mut self, rpo: &[Block]) {
        let func = self.func;
        for &to in rpo {
            let phis = func.block_insts(to).take_while(|&i| func.op(i) == Op::Phi);
            for (number, phi) in phis.enumerate() {
                for (from, value) in func.phi_edges(phi) {
                    self.passed[from].push(Passed { to, number, value });
                }
            }
        }
    }

    /// The arguments that `from` passes to the φs of `to`.
    fn edge(&mut self, from: Block, to: Block) -> Result<Vec<BlockArg>, TranslateError> {
        let func = self.func;
        let phis: Vec<Inst> = func.block_insts(to).take_while(|&i| func.op(i) == Op::Phi).collect();
        let mut args: Vec<Option<BlockArg>> = vec![None; phis.len()];
        for n in 0..self.passed[from].len() {
            let passed = self.passed[from][n];
            if passed.to == to {
                args[passed.number] = Some(self.value(phis[passed.number], passed.value)?.into());
            }
        }
        let filled = args.into_iter().zip(phis).map(|(arg, phi)| match arg {
            Some(arg) => Ok(arg),
            None => {
                let ty = self.result_type(phi)?;
                Ok(self.zero(ty).into())
            }
        });
        filled.collect()
    }

    fn jump(&mut self, block: Block, inst: Inst) -> Done {
        let &[target] = self.func.inst_blocks(inst) else { return self.bad(inst) };
        let args = self.edge(block, target)?;
        let target = self.block(target)?;
        self.b.ins().jump(target, &args);
        Ok(())
    }

    fn branch(&mut self, block: Block, inst: Inst) -> Done {
        if let Some(check) = self.asked.take() {
            return self.branch_on_osr_check(block, inst, check);
        }
        let &[yes, no] = self.func.inst_blocks(inst) else { return self.bad(inst) };
        if self.ladder(block)? {
            return Ok(());
        }
        self.count_branch(block, inst)?;
        let (yes_args, no_args) = (self.edge(block, yes)?, self.edge(block, no)?);
        // Cranelift lays out the first successor last: the loop exit, else the successor that is taken less often. Outside
        // of loops a cold successor goes second all the same: registers are allocated in this order, and the values it reads
        // would be live until the end of the function.
        let likely = self.func.branch_weights(inst).is_some_and(|weights| weights.yes() > weights.no());
        let invert = match self.loops.as_ref().and_then(|loops| Some((loops, loops.loop_of(block)?))) {
            Some((loops, own)) => match (!loops.contains(own, yes), !loops.contains(own, no)) {
                (false, true) => true,
                (true, false) => false,
                _ => likely,
            },
            None => match (self.func.is_cold(yes), self.func.is_cold(no)) {
                (true, false) => true,
                (false, true) => false,
                _ => likely,
            },
        };
        let cond = self.condition(inst, invert)?;
        let (yes, no) = (self.block(yes)?, self.block(no)?);
        if invert {
            self.b.ins().brif(cond, no, &no_args, yes, &yes_args);
        } else {
            self.b.ins().brif(cond, yes, &yes_args, no, &no_args);
        }
        Ok(())
    }

    /// The condition of a branch, or its opposite.
    fn condition(&mut self, inst: Inst, invert: bool) -> Result<clif::Value, TranslateError> {
        let Some(&cond) = self.func.args(inst).first() else { return self.bad(inst) };
        let compare = self.func.def_inst(cond).and_then(|def| match self.func.op(def) {
            Op::Intrinsic(op) => Some((def, op)),
            _ => None,
        });
        match compare {
            Some((def, op)) if op.shape() == Shape::IntCompare => self.int_compare(def, op, invert),
            Some((def, op)) if op.shape() == Shape::FloatCompare && self.is_plain_compare(def, op) => {
                self.float_compare(def, op, invert)
            }
            _ => {
                let value = self.value(inst, cond)?;
                Ok(if invert {
                    self.b.ins().icmp_imm_u(clif::condcodes::IntCC::Equal, value, 0)
                } else {
                    value
                })
            }
        }
    }

    fn return_(&mut self, inst: Inst) -> Done {
        let values = self.args(inst)?;
        self.leave_all();
        match self.result_pointer {
            Some(pointer) => {
                let kinds: Vec<Abi> = self.low_types(inst)?.into_iter().map(abi_of).collect();
                for (value, (abi, offset)) in values.into_iter().zip(crate::sig::word_offsets(&kinds)) {
                    self.b.ins().store(abi.word_flags(), value, pointer, offset);
                }
                self.b.ins().return_(&[]);
            }
            None => {
                self.b.ins().return_(&values);
            }
        }
        Ok(())
    }

    // ----- values -----

    fn block(&self, block: Block) -> Result<clif::Block, TranslateError> {
        self.blocks[block].expand().ok_or_else(|| TranslateError::Unterminated { name: self.name.clone() })
    }

    /// The translation of a value; a constant is materialized here.
    fn value(&mut self, user: Inst, value: Value) -> Result<clif::Value, TranslateError> {
        let undefined = || TranslateError::Undefined { name: self.name.clone(), inst: user };
        if let ValueDef::Const(_) = self.func.value_def(value) {
            if let Some(&made) = self.consts.get(&value) {
                return Ok(made);
            }
            let made = self.constant(user, value)?;
            self.consts.insert(value, made);
            return Ok(made);
        }
        self.values[value].expand().ok_or_else(undefined)
    }

    fn constant(&mut self, user: Inst, value: Value) -> Result<clif::Value, TranslateError> {
        let Some(low) = self.func.ty(value).as_low() else { return self.bad(user) };
        let bits = match self.func.as_const(value) {
            Some(Const::Bits { bits, .. }) => *bits,
            Some(Const::Undef(_)) => 0,
            Some(&Const::Address(address)) => return Ok(self.address(address)),
            _ => return self.bad(user),
        };
        Ok(self.bits(low, bits))
    }

    fn bits(&mut self, low: LowType, bits: u128) -> clif::Value {
        match low {
            LowType::F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
            LowType::F64 => self.b.ins().f64const(f64::from_bits(bits as u64)),
            LowType::I128 => {
                let lo = self.b.ins().iconst(types::I64, bits as u64 as i64);
                let hi = self.b.ins().iconst(types::I64, (bits >> 64) as u64 as i64);
                self.b.ins().iconcat(lo, hi)
            }
            LowType::V128 => self.vector_constant(bits),
            // `iconst` requires the bits above the width to be clear.
            _ => self.b.ins().iconst(abi_of(low).clif(), bits as u64 as i64),
        }
    }

    fn zero(&mut self, low: LowType) -> clif::Value {
        self.bits(low, 0)
    }

    pub(super) fn address(&mut self, address: Address) -> clif::Value {
        let text = |name| self.cx.names.text(name).to_owned();
        let named = |ty| NamedType { name: self.cx.types.display(ty).to_string().into(), ty };
        let symbol = match address {
            Address::Type(ty) => Symbol::Type(named(ty)),
            Address::Instance(ty) => Symbol::Instance(named(ty)),
            Address::Boxed(ty, bits) => {
                Symbol::Boxed { ty: named(ty), low: bits as u64, high: (bits >> 64) as u64 }
            }
            Address::Symbol(name) => Symbol::Interned(text(name)),
            Address::Module(name) => Symbol::Module(text(name)),
            Address::String(name) => Symbol::Text(text(name).into_bytes()),
            Address::Global(name) => Symbol::Global(text(name)),
            Address::Foreign(name) => Symbol::Foreign { name: text(name), library: None, weak: false },
            Address::Data(number) => {
                let symbol = data_symbol(&self.name, number);
                if let Some(bytes) = self.func.data().get(number as usize)
                    && !self.symbol_ids.contains_key(&symbol)
                {
                    self.data.push((symbol.clone(), bytes.clone()));
                }
                symbol
            }
        };
        self.symbol_address(symbol)
    }

    /// The address of a symbol.
    pub(super) fn symbol_address(&mut self, symbol: Symbol) -> clif::Value {
        let name = self.external_name(symbol);
        let global = self.b.create_global_value(GlobalValueData::Symbol {
            name: clif::ExternalName::user(name),
            offset: 0.into(),
            colocated: false,
            tls: false,
        });
        self.b.ins().symbol_value(types::I64, global)
    }

    fn external_name(&mut self, symbol: Symbol) -> clif::UserExternalNameRef {
        let next = self.symbols.len() as u32;
        let number = *self.symbol_ids.entry(symbol).or_insert_with_key(|symbol| {
            self.symbols.push(symbol.clone());
            next
        });
        self.b.func.declare_imported_user_function(clif::UserExternalName::new(0, number))
    }

    fn arg(&mut self, inst: Inst, n: usize) -> Result<clif::Value, TranslateError> {
        match self.func.args(inst).get(n) {
            Some(&value) => self.value(inst, value),
            None => self.bad(inst),
        }
    }

    fn args(&mut self, inst: Inst) -> Result<Vec<clif::Value>, TranslateError> {
        (0..self.func.args(inst).len()).map(|n| self.arg(inst, n)).collect()
    }

    fn low_type(&self, inst: Inst, n: usize) -> Result<LowType, TranslateError> {
        match self.func.args(inst).get(n).and_then(|&v| self.func.ty(v).as_low()) {
            Some(low) => Ok(low),
            None => self.bad(inst),
        }
    }

    fn low_types(&self, inst: Inst) -> Result<Vec<LowType>, TranslateError> {
        (0..self.func.args(inst).len()).map(|n| self.low_type(inst, n)).collect()
    }

    fn result_type(&self, inst: Inst) -> Result<LowType, TranslateError> {
        match self.func.results(inst).next().and_then(|v| self.func.ty(v).as_low()) {
            Some(low) => Ok(low),
            None => self.bad(inst),
        }
    }

    fn define(&mut self, inst: Inst, made: &[clif::Value]) -> Done {
        let results = self.func.results(inst);
        if results.len() > made.len() {
            return self.bad(inst);
        }
        for (result, &value) in results.zip(made) {
            let fits = self.func.ty(result).as_low().map(|low| abi_of(low).clif());
            if fits != Some(self.b.func.dfg.value_type(value)) {
                return self.bad(inst);
            }
            self.values[result] = value.into();
        }
        Ok(())
    }

    fn bad<T>(&self, inst: Inst) -> Result<T, TranslateError> {
        Err(TranslateError::Types { name: self.name.clone(), inst })
    }

    fn unsupported<T>(&self, inst: Inst, what: &'static str) -> Result<T, TranslateError> {
        Err(TranslateError::Unsupported { name: self.name.clone(), inst, what })
    }

    /// The thread. Reading its register is one move, which costs less than keeping it live across a function.
    fn thread(&mut self) -> clif::Value {
        thread::current_thread(&mut self.b)
    }
}

/// The trap code of statements that are never reached.
pub const UNREACHABLE_TRAP: u8 = 1;
