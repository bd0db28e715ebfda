//! Calls: the callee exists, accepts these operands, and returns the asserted type.
//!
//! A method is looked up in the module, then among the functions of Base that have no body. A missing one
//! breaks no rule: the call throws when reached (`complete.rs`). Without a module the call is only checked
//! against its own description of the callee.

use super::{Checker, TypeRule};
use crate::base_fn::BaseFn;
use crate::entity::{Foreign, FuncId, Inst};
use crate::func::CalleeData;
use crate::intrinsic::Arity;
use crate::module::Module;
use crate::names::Name;
use crate::op::Level;
use crate::types::{Type, TypeKind};

/// Rules about callees and other names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallRule {
    /// `call-refused`: the operation is known but not supported.
    Refused { name: &'static str, why: &'static str },
    /// `call-unknown`: the function has no method for these types. Calls of it throw; C gets no address of
    /// it.
    UnknownMethod {
        /// The type of the function object.
        function: Type,
        args: Vec<Type>,
        /// The symbols of its methods.
        candidates: Vec<String>,
    },
    /// `call-foreign`: there is no C function with this name. Calls of it throw.
    UnknownForeign { name: Name },
    /// `call-arity`: the number of operands differs from the callee's.
    OperandCount {
        /// The number of operands.
        given: usize,
        /// The accepted numbers.
        wanted: Arity,
    },
    /// `call-symbol`: the function with this symbol has a different signature.
    SymbolSignature {
        symbol: Name,
        /// Its arguments.
        params: Vec<Type>,
        results: Vec<Type>,
    },
    /// `call-callee`: an `invoke` names a symbol.
    NotMethod,
    /// `call-callee`: a call of a symbol names a method.
    NotSymbol,
    /// `call-global`: there is no global variable with this name.
    UnknownGlobal { name: Name },
}

impl Checker<'_> {
    pub(super) fn invoke(&mut self, inst: Inst, function: Type, params: &[Type], result: Type) {
        self.operand_fits(inst, 0, function);
        let given = self.func.args(inst).len() - 1;
        if given != params.len() {
            let wanted = Arity::exactly(params.len().min(255) as u8);
            self.at(inst, CallRule::OperandCount { given, wanted });
            return;
        }
        for (n, &param) in params.iter().enumerate() {
            self.operand_may_fit(inst, n + 1, param);
        }
        self.result_compatible(inst, result);
        let Some(module) = self.module else { return };
        if let Some(id) = module.find_method(function, params) {
            let callee = &module[id];
            // A call may assert any type for a callee that never returns.
            if let [returned] = callee.sig.results[..]
                && returned != Type::BOTTOM
            {
                self.result_compatible(inst, returned);
            }
        } else if let Some(base) = self.base_function(function)
            && !base.arity().allows(given)
        {
            self.at(inst, CallRule::OperandCount { given, wanted: base.arity() });
        }
        // A missing method is refused when the call is reached: `complete.rs` lists it.
    }

    pub(super) fn c_function(&mut self, inst: Inst, function: Type, params: &[Type]) {
        self.operand_fits(inst, 0, function);
        self.address_result(inst);
        let Some(module) = self.module else { return };
        if module.find_method(function, params).is_none() {
            let candidates = candidates(module, function);
            self.at(inst, CallRule::UnknownMethod { function, args: params.to_vec(), candidates });
        }
    }

    pub(super) fn address_result(&mut self, inst: Inst) {
        if let Some(given) = self.result_type(inst)
            && given != Type::BOTTOM
            && self.types.pointee(given).is_none()
        {
            self.at(inst, super::TypeRule::Result { given, wanted: "a `Ptr`".into() });
        }
    }

    fn base_function(&self, function: Type) -> Option<BaseFn> {
        match self.types.kind(function) {
            TypeKind::Function(name) => BaseFn::from_name(self.cx.names.text(name.name)),
            _ => None,
        }
    }

    pub(super) fn foreign_call(&mut self, inst: Inst, foreign: Foreign) {
        let func = self.func;
        let data = func.foreign(foreign);
        let first = usize::from(data.name.is_none());
        let given = func.args(inst).len();
        if given < first + data.params.len() {
            let wanted = Arity::at_least((first + data.params.len()).min(255) as u8);
            self.at(inst, CallRule::OperandCount { given, wanted });
            return;
        }
        if first == 1 {
            let address = self.arg_type(inst, 0);
            let is_address = match func.level {
                Level::High => {
                    self.types.pointee(address).is_some() || matches!(address, Type::UINT64 | Type::INT64)
                }
                Level::Low => address == Type::PTR,
            };
            if !is_address {
                self.bad_operand(inst, 0, "the address of a C function");
            }
        }
        for (n, &param) in data.params.iter().enumerate() {
            let operand = first + n;
            let given = self.arg_type(inst, operand);
            match func.level {
                // C does not specify what a pointer points to.
                Level::High if self.types.pointee(param).is_some() && self.types.pointee(given).is_some() => {
                }
                Level::High => self.operand_fits(inst, operand, param),
                // A struct in memory is passed by its address.
                Level::Low if self.types.tuple_elements(param).is_some() => {
                    if given != Type::PTR {
                        self.bad_operand(inst, operand, "the address of a struct");
                    }
                }
                Level::Low if given != param => self.bad_operand(inst, operand, param),
                Level::Low => {}
            }
        }
        match func.level {
            Level::High => self.result_compatible(inst, data.result),
            Level::Low => {
                let given: Vec<Type> = func.results(inst).map(|v| func.ty(v)).collect();
                let wanted = data.low_results(self.types);
                if given.len() > wanted.len().max(1) {
                    let (least, most) = (wanted.len(), wanted.len());
                    self.at(inst, super::StructureRule::ResultCount { given: given.len(), least, most });
                } else if given != wanted {
                    let given = given.first().copied().unwrap_or(Type::NOTHING);
                    self.at(inst, TypeRule::Result { given, wanted: data.result.into() });
                }
            }
        }
    }

    pub(super) fn call_symbol(&mut self, inst: Inst, callee: &CalleeData) {
        let CalleeData::Symbol { symbol, params, results } = callee else {
            return self.at(inst, CallRule::NotSymbol);
        };
        self.exact_call(inst, params, results);
        let Some(module) = self.module else { return };
        let named = module.methods(self.types.function(*symbol)).iter().map(|&id| &module[id]);
        if let Some(known) = named.into_iter().find(|f| f.level == Level::Low) {
            let expected: Vec<Type> = known.sig.params.iter().map(|p| p.ty).collect();
            if expected != **params || known.sig.results != **results {
                let rule = CallRule::SymbolSignature {
                    symbol: *symbol,
                    params: expected,
                    results: known.sig.results.clone(),
                };
                self.at(inst, rule);
            }
        }
    }
}

/// The symbols of a function's methods; if it has none, of functions with its name in other modules.
pub(super) fn candidates(module: &Module, function: Type) -> Vec<String> {
    let symbol = |id: FuncId| module[id].symbol(&module.cx);
    match (module.methods(function), module.cx.types.kind(function)) {
        ([], TypeKind::Function(function)) => {
            let names = &module.cx.names;
            module.named(names.intern(names.text(function.name))).map(symbol).collect()
        }
        (methods, _) => methods.iter().map(|&id| symbol(id)).collect(),
    }
}
