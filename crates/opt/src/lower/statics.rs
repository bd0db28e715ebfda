//! Static parameters.
//!
//! ```text
//! function f(x::Vector{Int8}) where {T = Int8}      $(Expr(:static_parameter, 1))  ==>  the type Int8
//! function f(x::Vector{T}) where {T}                                               ==>  call_args(brolga_static_parameter, where, 1, x)
//! ```
//!
//! A parameter with a value is a constant. The arguments determine an open one, and the run time computes it from their
//! types, as dispatch did to choose the method, so it is the same for all callers. Passes that copy a body to a call with exact
//! types insert the values (`passes/inline/copy.rs`).

use super::value::Val;
use super::{Lowering, Step};
use brolga_ir::constant::{Address, Const};
use brolga_ir::types::StaticBound;
use brolga_ir::{RuntimeFn, Type};

impl Lowering<'_> {
    pub(super) fn static_parameter(&mut self, number: u32) -> Step<()> {
        let Some(&param) = self.src.sig.statics.get(number) else { return Err(self.bad_operands()) };
        let result = self.src.result(self.at).map_or(Type::ANY, |value| self.src.ty(value));
        let val = match param.bound {
            StaticBound::Value(value) => self.static_value(value)?,
            StaticBound::Undefined => {
                let (always, name) = (self.truth(true), self.symbol(param.name));
                self.throw_if(always, RuntimeFn::ThrowUndefVar, &[name]);
                self.undefined(result)?
            }
            StaticBound::Open { .. } => self.bound_by_call(RuntimeFn::StaticParameter, number)?,
        };
        self.define(val)
    }

    /// The value of a parameter. Recursion follows the nesting of types.
    fn static_value(&mut self, value: Type) -> Step<Val> {
        let types = self.types;
        let Some((ty, elems)) = types.value_elements(value) else {
            return self.simple_constant(&types.param_constant(value));
        };
        let parts = elems.iter().map(|&elem| self.static_value(elem)).collect::<Step<Vec<Val>>>()?;
        self.aggregate(ty, &parts)
    }

    pub(super) fn static_defined(&mut self, number: u32) -> Step<()> {
        let Some(&param) = self.src.sig.statics.get(number) else { return Err(self.bad_operands()) };
        let val = match param.bound {
            StaticBound::Open { .. } => {
                let object = self.bound_by_call(RuntimeFn::StaticDefined, number)?;
                self.convert(object, Type::BOOL)?
            }
            known => {
                let defined = self.truth(matches!(known, StaticBound::Value(_)));
                Val::scalar(Type::BOOL, defined)
            }
        };
        self.define(val)
    }

    /// Calls the run time for the value that the arguments determine for a variable.
    fn bound_by_call(&mut self, entry: RuntimeFn, number: u32) -> Step<Val> {
        let (src, types) = (self.src, self.types);
        let Ok(statics) = src.sig.statics.to_type(types, src.sig.vararg) else {
            return Err(self.bad_operands());
        };
        let statics = self.permanent(Address::Type(statics));
        let number = self.simple_constant(&Const::Bits { ty: Type::INT64, bits: u128::from(number) })?;
        let mut all = vec![Val::scalar(Type::DATATYPE, statics), number];
        for &param in src.params().get(1..).unwrap_or_default() {
            all.push(self.val(param)?);
        }
        self.call_args(entry, &all)
    }
}
