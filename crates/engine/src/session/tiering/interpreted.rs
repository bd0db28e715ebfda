//! Tier 0: functions that are interpreted until they have code.
//!
//! The reference interpreter has its own memory and heap. So only functions that need neither can run on it without an observable
//! difference: functions whose parameters and results are numbers (or tuples and structs of them) and that compute only with numbers, and
//! their callees of the same kind, if their program has the bodies. All others start in tier 1:
//!
//! | refused | because |
//! |---|---|
//! | loads, stores, C functions, global variables, `print` | the interpreter has its own memory |
//! | values that are objects, types among them | it has its own heap |
//! | calls of replaceable functions, of host functions, or resolved at run time | such calls must be observable |
//! | handlers, `muladd` and other operations whose result depends on the machine | compiled code has its own results |
//!
//! Code is requested after half of the calls that may be interpreted, or after [`WORK`] statements, which a function with a loop reaches sooner
//! (`crates/jit/src/tiering/interpret.rs`).
//!
//! A call that throws, or does not end within [`MAX_STEPS`] statements, is repeated as code: it has had no effect yet.
//!
//! Cost: one walk over each function when it is defined; an interpreter for each call.

use std::collections::BTreeSet;
use std::sync::Arc;

use brolga_codegen::sig::Abi;
use brolga_codegen::translate::abi_of;
use brolga_interp::{Interp, Options, SimMemory};
use brolga_ir::abi::{NativeSignature, form};
use brolga_ir::effects::effects;
use brolga_ir::func::CalleeData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, FuncId, Inst, Level, Module, Op, Value};
use brolga_jit::{Interpret, Interpreter};

use crate::bridge;
use crate::session::input::BodySource;

/// The maximum number of statements of a call: some tens of microseconds, about as long as compiling the smallest function.
const MAX_STEPS: u64 = 2_000;
/// The number of statements of all calls together after which code is requested: they take longer than compiling it.
const WORK: u64 = 10_000;
/// The maximum nesting of calls.
const MAX_DEPTH: usize = 64;
/// The interpreter's heap limit: admitted functions do not allocate.
const MAX_BYTES: u64 = 1 << 16;

/// A function that can be interpreted.
#[derive(Clone)]
pub(crate) struct InterpretedBody {
    signature: Arc<NativeSignature>,
    source: BodySource,
    calls: u32,
}

impl InterpretedBody {
    /// A function of a module, whose first `own` functions are its own, if it can be interpreted. `alone` is set if it does not
    /// see the bodies of the others.
    pub(crate) fn new(
        module: &Module,
        own: &[FuncId],
        id: FuncId,
        alone: bool,
        calls: u32,
        source: &BodySource,
    ) -> Option<InterpretedBody> {
        let signature = NativeSignature::new(&module.cx.types, &module[id].sig).ok()?;
        let has_body = |callee: FuncId| callee == id || !alone || !own.contains(&callee);
        if calls == 0 || !computes_only(module, id, &has_body) {
            return None;
        }
        Some(InterpretedBody { signature: Arc::new(signature), source: source.clone(), calls })
    }

    pub(crate) fn interpreter(&self) -> Interpreter {
        Interpreter { source: Arc::new(self.clone()), calls: self.calls, work: WORK }
    }
}

impl Interpret for InterpretedBody {
    fn interpret(&self, words: &mut [u128]) -> Option<u64> {
        let BodySource { input, id } = &self.source;
        let options = Options {
            max_steps: MAX_STEPS,
            max_depth: MAX_DEPTH,
            max_stack_bytes: MAX_BYTES,
            max_heap_bytes: MAX_BYTES,
            ..Options::default()
        };
        let mut interp = Interp::new(input.module(), options, Box::new(SimMemory::default()));
        bridge::interpret(&mut interp, *id, &self.signature, words)?;
        Some(interp.steps())
    }
}

/// Whether a function and its callees only compute with numbers.
fn computes_only(module: &Module, root: FuncId, has_body: &dyn Fn(FuncId) -> bool) -> bool {
    let (mut seen, mut pending) = (BTreeSet::from([root]), vec![root]);
    while let Some(id) = pending.pop() {
        let func = &module[id];
        let is_simple = func.level == Level::High && func.entry().is_some() && !func.sig.vararg;
        if !is_simple || !has_body(id) || !has_numbers_only(module, func) {
            return false;
        }
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            match callee(module, func, inst) {
                Callee::Nothing => {}
                Callee::Known(id) => pending.extend(seen.insert(id).then_some(id)),
                Callee::Refused => return false,
            }
        }
    }
    true
}

fn has_numbers_only(module: &Module, func: &Func) -> bool {
    let types = &module.cx.types;
    (0..func.value_count() as u32).all(|value| {
        let form = form(types, func.ty(Value::from_u32(value)));
        form.is_ok_and(|form| {
            !form.is_memory()
                && form.leaves.iter().all(|leaf| !matches!(abi_of(leaf.low), Abi::Object | Abi::Ptr))
        })
    })
}

/// The callee of an instruction.
enum Callee {
    Nothing,
    Known(FuncId),
    Refused,
}

fn callee(module: &Module, func: &Func, inst: Inst) -> Callee {
    match func.op(inst) {
        Op::Phi | Op::Copy | Op::Pi | Op::Goto | Op::Branch | Op::Return | Op::LoopInfo(_) => Callee::Nothing,
        Op::Intrinsic(Intrinsic::MuladdFloat | Intrinsic::HaveFma) => Callee::Refused,
        Op::Intrinsic(_) | Op::Builtin(_) => {
            let effects = effects(func, &module.cx.types, inst);
            let computes = effects.consistent && (effects.reads | effects.writes).is_empty();
            if computes { Callee::Nothing } else { Callee::Refused }
        }
        Op::Invoke(callee) => match func.callee(callee) {
            CalleeData::Method { function, args, .. } => {
                module.find_method(*function, args).map_or(Callee::Refused, Callee::Known)
            }
            CalleeData::Symbol { .. } => Callee::Refused,
        },
        _ => Callee::Refused,
    }
}
