//! The doors: everything by which a program can break memory safety, as one list.
//!
//! ```text
//! verified function ── standing(op) ──► Safe       no values of the operands break memory safety
//!                                       Refused    the verifier rejects it
//!                                       Door(d)    always a door
//!                                       Asks(d)    a door, unless the statement is proved harmless
//! ```
//!
//! A program without doors is *checked*: every execution has one of the outcomes of docs/ir.md. Engines and sessions accept only checked
//! programs unless the embedder has opened the doors. The matches below have no default arm, so a new
//! operation has to be declared before the crate compiles.
//!
//! **Bounds.** A check that a statement turns off is not a door: an engine without doors checks anyway. Its
//! lowering never reads the operand ([`Builtin::bounds_operands`]) and drops a check only by its own proof.
//! The run time, which executes builtins that are called as values, always checks. An option that turns all
//! checks off is a door ([`Door::Bounds`]).
//!
//! **Allow-list.** [`ALLOWED`] holds the C functions that only compute with floats, [`CHARACTERS`] the
//! functions on characters, and [`RUNTIME`] the functions of Julia's run time that check their arguments. The
//! types that the program declares have to match the list, so no function is called with unexpected
//! registers.
//!
//! **Values of `Ptr`** are not doors: an address that is never read is a number. No library code outside the
//! program accepts one.
//!
//! Cost: one walk over the function.
//!
//! Not done: data races. If two threads write one mutable object concurrently, a reader may see parts of both
//! writes, and a `MemoryRef` in a field is two words. An embedder that shares objects between threads must
//! run untrusted programs on only one of them.

mod door;

pub use door::Door;

use crate::builtin::Builtin;
use crate::context::Context;
use crate::entity::{FuncId, Inst};
use crate::func::Func;
use crate::intrinsic::{Intrinsic, Shape};
use crate::module::Module;
use crate::op::{Level, Op};
use crate::types::Type;
use crate::verify::{Rule, Site, Violation};

/// Whether an operation is a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It cannot break memory safety, whatever its operands.
    Safe,
    /// The verifier refuses it wherever it occurs.
    Refused,
    Door(Door),
    /// It is a door unless the statement is proved harmless.
    Asks(Door),
}

/// Whether an intrinsic of high IR is a door.
pub fn standing_of_intrinsic(intrinsic: Intrinsic) -> Standing {
    match intrinsic.shape() {
        // Overflow wraps, shift counts may be too large, and division by zero throws; a `Bool` keeps its
        // lowest bit.
        Shape::IntUnary
        | Shape::IntBinary
        | Shape::IntDivide
        | Shape::Shift
        | Shape::IntCompare
        | Shape::CheckedPair
        | Shape::FloatUnary
        | Shape::FloatBinary
        | Shape::FloatTernary
        | Shape::FloatCompare
        | Shape::Convert(_)
        | Shape::Query
        | Shape::AtomicFence => Standing::Safe,
        // The address is not dereferenced.
        Shape::PtrOffset => Standing::Safe,
        Shape::PtrLoad
        | Shape::PtrStore
        | Shape::AtomicLoad
        | Shape::AtomicStore
        | Shape::AtomicSwap
        | Shape::AtomicModify
        | Shape::AtomicReplace => Standing::Door(Door::Pointer),
        // `llvmcall`, and `cglobal` as a value.
        Shape::Foreign => Standing::Refused,
    }
}

/// Whether a builtin is a door. Builtins with a bounds check are safe because engines without doors make the check.
pub fn standing_of_builtin(builtin: Builtin) -> Standing {
    match builtin {
        // Without doors the run time sets the parts of an array, and checks that they fit.
        Builtin::Setfield
        | Builtin::Egal
        | Builtin::Typeof
        | Builtin::Sizeof
        | Builtin::Subtype
        | Builtin::Isa
        | Builtin::Typeassert
        | Builtin::ApplyType
        | Builtin::Fieldtype
        | Builtin::Nfields
        | Builtin::Isdefined
        | Builtin::Tuple
        | Builtin::Getfield
        | Builtin::Swapfield
        | Builtin::Modifyfield
        | Builtin::Replacefield
        | Builtin::Setfieldonce
        | Builtin::Getglobal
        | Builtin::Setglobal
        | Builtin::Swapglobal
        | Builtin::Modifyglobal
        | Builtin::Replaceglobal
        | Builtin::Setglobalonce
        | Builtin::Isdefinedglobal
        | Builtin::GetBindingType
        | Builtin::Memorynew
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
        | Builtin::Arraysize
        | Builtin::ApplyIterate
        | Builtin::Invoke
        | Builtin::Invokelatest
        | Builtin::InvokeInWorld
        | Builtin::Applicable
        | Builtin::Throw
        | Builtin::ThrowMethoderror
        | Builtin::Ifelse
        | Builtin::Donotdelete
        | Builtin::Compilerbarrier
        | Builtin::Blackbox
        | Builtin::Finalizer
        | Builtin::CurrentScope => Standing::Safe,
        Builtin::Svec
        | Builtin::Typevar
        | Builtin::Structtype
        | Builtin::Abstracttype
        | Builtin::Primitivetype
        | Builtin::Typebody
        | Builtin::Setsuper
        | Builtin::EquivTypedef
        | Builtin::Expr
        | Builtin::SvecLen
        | Builtin::SvecRef
        | Builtin::ComputeSparams
        | Builtin::OpaqueClosureCall
        | Builtin::Defaultctors
        | Builtin::SetBindingType
        | Builtin::IntrinsicCall => Standing::Refused,
    }
}

/// Whether an operation is a door.
pub fn standing(op: Op) -> Standing {
    match op {
        Op::Intrinsic(intrinsic) => standing_of_intrinsic(intrinsic),
        Op::Builtin(builtin) => standing_of_builtin(builtin),
        Op::ForeignCall(_) => Standing::Asks(Door::Foreign),
        Op::CFunction(_) => Standing::Door(Door::Callback),
        Op::CGlobal(_) => Standing::Door(Door::Foreign),
        // Types that rows assert are tested at run time, and an undefined value throws where it is used. An
        // engine without doors checks that an array has the elements that its size claims.
        Op::New(_)
        | Op::SplatNew(_)
        | Op::Phi
        | Op::Copy
        | Op::Goto
        | Op::Branch
        | Op::Return
        | Op::Unreachable
        | Op::Enter
        | Op::Leave
        | Op::GcPreserveBegin
        | Op::GcPreserveEnd
        | Op::Call
        | Op::Invoke(_)
        | Op::Pi
        | Op::Upsilon
        | Op::PhiC
        | Op::GetGlobal(_)
        | Op::TheException
        | Op::PopException
        | Op::ThrowUndefIfNot(_)
        | Op::BoundsCheck(_)
        | Op::LoopInfo(_)
        | Op::CodeCoverage
        | Op::Spend(_)
        | Op::StaticParameter(_)
        | Op::StaticDefined(_) => Standing::Safe,
        Op::Load(_)
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
        | Op::LaneSelect => Standing::Door(Door::LowIr),
    }
}

/// C functions on floats that programs may call without a door: the name, the type of all arguments and of
/// the result, and the number of arguments.
pub const ALLOWED: &[(&str, Type, usize)] = &[
    ("acos", Type::FLOAT64, 1),
    ("acosh", Type::FLOAT64, 1),
    ("asin", Type::FLOAT64, 1),
    ("asinh", Type::FLOAT64, 1),
    ("atan", Type::FLOAT64, 1),
    ("atan2", Type::FLOAT64, 2),
    ("atanh", Type::FLOAT64, 1),
    ("cbrt", Type::FLOAT64, 1),
    ("ceil", Type::FLOAT64, 1),
    ("copysign", Type::FLOAT64, 2),
    ("cos", Type::FLOAT64, 1),
    ("cosh", Type::FLOAT64, 1),
    ("exp", Type::FLOAT64, 1),
    ("exp2", Type::FLOAT64, 1),
    ("expm1", Type::FLOAT64, 1),
    ("fabs", Type::FLOAT64, 1),
    ("floor", Type::FLOAT64, 1),
    ("fmax", Type::FLOAT64, 2),
    ("fmin", Type::FLOAT64, 2),
    ("fmod", Type::FLOAT64, 2),
    ("hypot", Type::FLOAT64, 2),
    ("log", Type::FLOAT64, 1),
    ("log10", Type::FLOAT64, 1),
    ("log1p", Type::FLOAT64, 1),
    ("log2", Type::FLOAT64, 1),
    ("pow", Type::FLOAT64, 2),
    ("rint", Type::FLOAT64, 1),
    ("round", Type::FLOAT64, 1),
    ("sin", Type::FLOAT64, 1),
    ("sinh", Type::FLOAT64, 1),
    ("sqrt", Type::FLOAT64, 1),
    ("tan", Type::FLOAT64, 1),
    ("tanh", Type::FLOAT64, 1),
    ("trunc", Type::FLOAT64, 1),
    ("cosf", Type::FLOAT32, 1),
    ("expf", Type::FLOAT32, 1),
    ("logf", Type::FLOAT32, 1),
    ("powf", Type::FLOAT32, 2),
    ("sinf", Type::FLOAT32, 1),
    ("sqrtf", Type::FLOAT32, 1),
    ("tanf", Type::FLOAT32, 1),
];

/// Functions on characters that programs may call without a door: they accept any `UInt32`. The name and the
/// result type.
pub const CHARACTERS: &[(&str, Type)] = &[
    ("utf8proc_category", Type::INT32),
    ("utf8proc_charwidth", Type::INT32),
    ("utf8proc_islower", Type::INT32),
    ("utf8proc_isupper", Type::INT32),
    ("utf8proc_tolower", Type::UINT32),
    ("utf8proc_totitle", Type::UINT32),
    ("utf8proc_toupper", Type::UINT32),
];

/// Functions of Julia's run time that programs may call without a door: they check their arguments, and the
/// row checks their results.
pub const RUNTIME: &[&str] = &[
    "jl_alloc_array_1d",
    "jl_alloc_array_2d",
    "jl_alloc_array_3d",
    "jl_alloc_genericmemory",
    "jl_array_copy",
    "jl_array_del_at",
    "jl_array_del_beg",
    "jl_array_del_end",
    "jl_array_grow_at",
    "jl_array_grow_beg",
    "jl_array_grow_end",
    "jl_array_sizehint",
    "jl_genericmemory_copy",
    "jl_get_world_counter",
    "jl_new_array",
    "jl_rethrow",
    "jl_rethrow_other",
    "jl_types_equal",
];

/// The doors in the first `own` functions of a verified module, in its order.
pub fn of(module: &Module, own: usize) -> Vec<(FuncId, Vec<Violation>)> {
    let functions = module.funcs().take(own);
    let found = functions.map(|(id, func)| (id, of_func(&module.cx, func)));
    found.filter(|(_, doors)| !doors.is_empty()).collect()
}

/// The doors of a verified function. A low function has one, itself.
pub fn of_func(cx: &Context, func: &Func) -> Vec<Violation> {
    let found = |site, door| Violation { site, rule: Rule::Door(door) };
    if func.level == Level::Low {
        return vec![found(Site::Func, Door::LowIr)];
    }
    let mut doors = Vec::new();
    for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
        match standing(func.op(inst)) {
            Standing::Safe | Standing::Refused => {}
            Standing::Asks(_) if is_harmless(cx, func, inst) => {}
            Standing::Door(door) | Standing::Asks(door) => doors.push(found(Site::Inst(inst), door)),
        }
    }
    doors
}

/// Whether a statement that [asks](Standing::Asks) is harmless.
fn is_harmless(cx: &Context, func: &Func, inst: Inst) -> bool {
    let types = &cx.types;
    match func.op(inst) {
        Op::ForeignCall(foreign) => {
            let data = func.foreign(foreign);
            let Some(name) = data.name.map(|name| cx.names.text(name)) else { return false };
            if RUNTIME.contains(&name) {
                let plain = |ty: &Type| types.pointee(*ty).is_none();
                return data.params.iter().all(plain) && plain(&data.result) && data.variadic_after.is_none();
            }
            if let Some(&(_, result)) = CHARACTERS.iter().find(|(character, _)| *character == name) {
                return data.result == result
                    && *data.params == [Type::UINT32]
                    && data.variadic_after.is_none();
            }
            let allowed = ALLOWED.iter().find(|(allowed, ..)| *allowed == name);
            allowed.is_some_and(|&(_, ty, count)| {
                data.variadic_after.is_none()
                    && data.result == ty
                    && data.params.len() == count
                    && data.params.iter().all(|&param| param == ty)
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
