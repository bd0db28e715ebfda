//! The names that a function uses, of functions and global variables, and the targets of its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::builtin::Builtin;
use brolga_ir::constant::Address;
use brolga_ir::func::CalleeData;
use brolga_ir::{Const, Context, Func, Module, Name, Op, Type, TypeKind, Value};
use brolga_linking::DylibId;

/// The dylibs of the methods that a program's calls resolve to, by symbol.
pub(crate) type Bindings = BTreeMap<Arc<str>, DylibId>;

/// The function objects that a function calls or has as values.
pub(crate) fn functions_in(cx: &Context, func: &Func) -> BTreeSet<Type> {
    let called = func.callees().filter_map(|(_, callee)| match callee {
        CalleeData::Method { function, .. } => Some(*function),
        CalleeData::Symbol { .. } => None,
    });
    let values = (0..func.value_count() as u32).map(|value| func.ty(Value::from_u32(value)));
    let all: BTreeSet<Type> = called.chain(values).collect();
    all.into_iter().filter(|&ty| matches!(cx.types.kind(ty), TypeKind::Function(_))).collect()
}

/// Whether a function uses a global variable of its program.
pub(crate) fn uses_variable(module: &Module, func: &Func) -> bool {
    !module.globals().is_empty() && variables(func).any(|name| module.global(name).is_some())
}

/// The names of global variables in a function.
pub(crate) fn variables(func: &Func) -> impl Iterator<Item = Name> {
    let of_inst = |inst| match func.op(inst) {
        Op::GetGlobal(name) => Some(name),
        Op::Builtin(op) if op.is_of_global() || op == Builtin::Isdefined => {
            match func.args(inst).get(1).and_then(|&name| func.as_const(name)) {
                Some(Const::Symbol(name)) => Some(*name),
                _ => None,
            }
        }
        _ => None,
    };
    let addresses =
        (0..func.value_count() as u32).filter_map(|value| match func.as_const(Value::from_u32(value)) {
            Some(Const::Address(Address::Global(name))) => Some(*name),
            _ => None,
        });
    func.blocks().flat_map(|block| func.block_insts(block)).filter_map(of_inst).chain(addresses)
}
