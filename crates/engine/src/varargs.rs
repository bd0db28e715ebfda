//! Instances of methods that collect their arguments, for the argument types of calls.
//!
//! ```text
//! function Base.string(a::Vararg{String})                     function Base.string(a1::String, a2::String)
//!     … getfield(a, i) …                                          a = tuple(a1, a2)
//!                                               ──►               … getfield(a, i) …
//! %3 = invoke Base.string(%1::String, %2::String)             %3 = invoke Base.string(%1::String, %2::String)
//! ```
//!
//! Julia infers such a method once for each list of types and prints the calls of that instance, along with the signature of the method. The
//! method itself has no types for its tuple: each `getfield` of it is a call of the builtin, and the tuple is an object. The instance is a method
//! of exactly those types, so an `invoke` and a dynamic call find it instead of the method.
//!
//! Invariant: dispatch keeps its meaning. An instance is made only where [`Module::find_method`] returns the method for exactly these
//! concrete types, so the method is already the most specific one for them.
//!
//! Cost: a walk over the calls; at most [`MAX_INSTANCES`] copies of a method, each of at most [`MAX_INSTS`] instructions. Not done: methods
//! with static parameters; programs of a session, whose methods may be replaced.

use std::collections::BTreeMap;

use brolga_ir::func::CalleeData;
use brolga_ir::verify::verify_func_in;
use brolga_ir::{Func, FuncId, Inst, Level, Module, Op, Param, Type};

/// The maximum number of instances of one method: Julia also stops specialising after a few.
const MAX_INSTANCES: usize = 8;

/// The maximum size of a copied body: a longer one gains little from the types of a tuple, and copies cost compile time.
const MAX_INSTS: usize = 1000;

/// Adds instances of the methods of a module for the calls in it.
pub(crate) fn instantiate(module: &mut Module) {
    // Argument types by method, in the order of the calls.
    let mut wanted: BTreeMap<FuncId, Vec<Vec<Type>>> = BTreeMap::new();
    for (_, func) in module.funcs() {
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            if let Some((id, types)) = collecting_call(module, func, inst) {
                let lists = wanted.entry(id).or_default();
                if lists.len() < MAX_INSTANCES && !lists.contains(&types) {
                    lists.push(types);
                }
            }
        }
    }
    for (id, lists) in wanted {
        for types in lists {
            if let Some(instance) = instance(module, &module[id], &types) {
                // A method of exactly these types would have been found instead.
                let _added = module.add_func(instance);
            }
        }
    }
}

/// The collecting method that a call resolves to, and its concrete argument types.
fn collecting_call(module: &Module, func: &Func, inst: Inst) -> Option<(FuncId, Vec<Type>)> {
    let Op::Invoke(callee) = func.op(inst) else { return None };
    let CalleeData::Method { function, args, .. } = func.callee(callee) else { return None };
    let given: Vec<Type> = func.args(inst).iter().skip(1).map(|&v| func.ty(v)).collect();
    let types = &module.cx.types;
    if given != **args || !given.iter().all(|&ty| types.is_concrete(ty)) {
        return None;
    }
    let id = module.find_method(*function, args)?;
    let method = &module[id];
    let size: usize = method.blocks().map(|block| method.block_insts(block).count()).sum();
    let fits = method.sig.vararg
        && method.level == Level::High
        && !method.sig.statics.is_open()
        && size <= MAX_INSTS
        && method.entry().is_some_and(|entry| method.block_insts(entry).all(|i| method.op(i) != Op::Phi));
    fits.then_some((id, given))
}

/// The method for exactly these types.
fn instance(module: &Module, method: &Func, given: &[Type]) -> Option<Func> {
    let mut func = method.clone();
    // The function object is the first parameter, and the last one collects.
    let rest = given.get(func.sig.params.len().checked_sub(2)?..)?;
    let tuple = module.cx.types.tuple_of_values(rest).ok()?;
    let params: Vec<Param> = rest.iter().map(|&ty| Param { name: None, ty }).collect();
    let made = func.spread_rest(&params, tuple);
    // A row may assume another type of a tuple element than the instance has: that call throws when it is reached, as before.
    (made && verify_func_in(module, &func).is_ok()).then_some(func)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_ir::Context;
    use brolga_ir::diag::SourceFile;
    use brolga_ir::text;

    fn instances(text: &str) -> Vec<String> {
        let source = SourceFile::new("program", text).unwrap();
        let (unit, findings) = text::read(&source, &Context::new());
        assert!(!findings.has_errors(), "{findings:?}");
        let mut module = unit.module;
        let own = module.func_count();
        instantiate(&mut module);
        module.funcs().skip(own).map(|(_, func)| func.symbol(&module.cx)).collect()
    }

    const FIRST: &str = "function first(a::Vararg{Any})::Any\n1 ─ %1 = Core.getfield(a, 1)::Any\n\
                         └──      return %1\nend\n";

    #[test]
    fn a_call_with_concrete_types_gets_an_instance() {
        let two = "function f(x::Int64, s::String)::Any\n1 ─ %1 = invoke Main.first(x::Int64, s::String)::Any\n\
                   │   %2 = invoke Main.first(s::String)::Any\n└──      return %1\nend\n";
        assert_eq!(instances(&format!("{FIRST}{two}")), ["first(Int64, String)", "first(String)"]);
        // Its types are available only at run time.
        let open =
            "function f(x::Any)::Any\n1 ─ %1 = invoke Main.first(x::Any)::Any\n└──      return %1\nend\n";
        assert!(instances(&format!("{FIRST}{open}")).is_empty());
    }

    #[test]
    fn a_method_of_the_types_stays() {
        let own = "function first(x::Int64)::Any\n1 ─      return x\nend\n";
        let call =
            "function f(x::Int64)::Any\n1 ─ %1 = invoke Main.first(x::Int64)::Any\n└──      return %1\nend\n";
        assert!(instances(&format!("{FIRST}{own}{call}")).is_empty());
    }

    #[test]
    fn a_method_has_so_many_instances_at_most() {
        let types =
            ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64"];
        let callers: Vec<String> = types
            .iter()
            .map(|ty| {
                format!(
                    "function f(x::{ty})::Any\n1 ─ %1 = invoke Main.first(x::{ty})::Any\n└──      return %1\nend\n"
                )
            })
            .collect();
        assert_eq!(instances(&format!("{FIRST}{}", callers.concat())).len(), MAX_INSTANCES);
    }
}
