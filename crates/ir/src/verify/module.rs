//! Checks a whole module: every function with its callees, and the initial values of globals.

use super::{Violation, ids, verify_func_in};
use crate::constant::Const;
use crate::entity::FuncId;
use crate::module::{Literal, Module};
use crate::names::Name;
use crate::types::{Type, Types};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModuleViolations {
    /// Functions with their violations, in the module's order.
    pub funcs: Vec<(FuncId, Vec<Violation>)>,
    /// Globals whose initial value is refused.
    pub globals: Vec<GlobalViolation>,
}

/// `module-global`: the initial value of a global variable is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GlobalViolation {
    /// The variable.
    pub name: Name,
    pub rule: GlobalRule,
}

/// A broken rule about the initial value of a global variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GlobalRule {
    /// A part belongs to another context.
    Unknown {
        /// `type` or `name`.
        kind: &'static str,
        number: u32,
    },
    /// It does not have the type of the variable, or a part does not have its own.
    Type {
        wanted: Type,
        /// The type of the initial value.
        given: Type,
    },
    /// Every thread begins with it, and it has an identity, so threads would share the object.
    SharedByThreads,
}

/// Checks all functions and globals of a module.
pub fn verify_module(module: &Module) -> Result<(), ModuleViolations> {
    let mut found = ModuleViolations::default();
    for (id, func) in module.funcs() {
        if let Err(violations) = verify_func_in(module, func) {
            found.funcs.push((id, violations));
        }
    }
    let types = &module.cx.types;
    for global in module.globals() {
        let (wanted, given) = (global.ty, global.init.ty());
        let rule = if let Some((kind, number)) = ids::in_global(&module.cx, global) {
            GlobalRule::Unknown { kind, number }
        } else if !types.is_subtype(given, wanted) || !fields_fit(types, &global.init) {
            GlobalRule::Type { wanted, given }
        } else if global.is_thread_local() && global.init.is_shared(types) {
            GlobalRule::SharedByThreads
        } else {
            continue;
        };
        found.globals.push(GlobalViolation { name: global.name, rule });
    }
    if found.funcs.is_empty() && found.globals.is_empty() { Ok(()) } else { Err(found) }
}

/// Whether the parts of aggregates and arrays have the types of the fields and elements.
fn fields_fit(types: &Types, literal: &Literal) -> bool {
    let mut work = vec![literal];
    while let Some(literal) = work.pop() {
        let (ty, fields) = match literal {
            Literal::Const(Const::Type { of, ty }) if types.type_of_type(*of) != *ty => return false,
            Literal::Const(_) => continue,
            Literal::Aggregate { ty, fields } => (ty, fields),
            Literal::Array { ty, dims, items } => {
                let Some((elem, count)) = types.array_parts(*ty) else { return false };
                let length = dims.iter().try_fold(1usize, |all, &one| all.checked_mul(one));
                if dims.len() != count as usize || length != Some(items.len()) {
                    return false;
                }
                if !items.iter().all(|item| types.is_subtype(item.ty(), elem)) {
                    return false;
                }
                work.extend(items);
                continue;
            }
        };
        if types.field_count(*ty) != Some(fields.len()) {
            return false;
        }
        for (n, field) in fields.iter().enumerate() {
            let wanted = types.field_type(*ty, n).unwrap_or(Type::BOTTOM);
            if !types.is_subtype(field.ty(), wanted) {
                return false;
            }
            work.push(field);
        }
    }
    true
}
