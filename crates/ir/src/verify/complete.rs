//! The methods and C functions that a module calls but lacks.
//!
//! The verifier accepts such calls, because they are often unreachable. One that is reached throws: `MethodError` for a
//! method, `CompileError` for a C function.

use super::calls::candidates;
use super::{CallRule, Site, Violation};
use crate::base_fn::BaseFn;
use crate::entity::FuncId;
use crate::func::CalleeData;
use crate::module::Module;
use crate::names::Name;
use crate::op::Op;
use crate::types::TypeKind;

/// The calls of each function whose callee is missing, in module order. `has_symbol` tells which C functions
/// exist.
pub fn missing_callees(module: &Module, has_symbol: impl Fn(&str) -> bool) -> Vec<(FuncId, Vec<Violation>)> {
    let cx = &module.cx;
    let unknown = |name: Option<Name>| {
        let name = name.filter(|&name| !has_symbol(cx.names.text(name)))?;
        Some(CallRule::UnknownForeign { name })
    };
    let mut found = Vec::new();
    for (id, func) in module.funcs() {
        let mut missing = Vec::new();
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            let rule = match func.op(inst) {
                Op::Invoke(callee) => match func.callee(callee) {
                    CalleeData::Method { function, args, .. } => {
                        let is_base = match cx.types.kind(*function) {
                            TypeKind::Function(name) => BaseFn::from_name(cx.names.text(name.name)).is_some(),
                            _ => false,
                        };
                        let is_known = is_base || module.find_method(*function, args).is_some();
                        (!is_known).then(|| CallRule::UnknownMethod {
                            function: *function,
                            args: args.to_vec(),
                            candidates: candidates(module, *function),
                        })
                    }
                    CalleeData::Symbol { .. } => None,
                },
                Op::ForeignCall(foreign) => unknown(func.foreign(foreign).name),
                Op::CGlobal(name) => unknown(Some(name)),
                _ => None,
            };
            missing.extend(rule.map(|rule| Violation { site: Site::Inst(inst), rule: rule.into() }));
        }
        if !missing.is_empty() {
            found.push((id, missing));
        }
    }
    found
}
