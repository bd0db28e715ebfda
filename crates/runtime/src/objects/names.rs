//! Names of functions, which determine calls without a method.

use brolga_ir::base_fn::BaseFn;
use brolga_ir::builtin::Builtin;
use brolga_ir::function_name::bare_name;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::TypeKind;

use crate::heap::{Object, TypeDesc};

use super::relations::as_type;

/// The name under which a function without a method is looked up among the operators; `None` if it is
/// something else first.
pub(super) fn operator_name(callee: Object) -> Option<String> {
    if as_type(callee).is_some() {
        return None;
    }
    let name = function_name(callee.desc())?;
    let bare = bare_name(&name);
    let is_other = Builtin::from_name(bare).is_some()
        || Intrinsic::from_name(bare).is_some()
        || BaseFn::from_name(&name).is_some();
    (!is_other).then(|| bare.to_owned())
}

/// The name of the function with this type.
pub(super) fn function_name(desc: &TypeDesc) -> Option<String> {
    let cx = desc.context();
    match cx.types.kind(desc.ty()?) {
        TypeKind::Function(name) => Some(cx.names.text(name.name).to_owned()),
        _ => None,
    }
}
