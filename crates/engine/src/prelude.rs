//! Methods of Base for the core types, in the IR's own text.
//!
//! A dump has the methods that a program was seen to call, not those that a call by dispatch could reach. So a program that names a
//! function of the prelude and has no method of it gets those of the prelude:
//!
//! ```text
//! %5 = Base.length(%4)::Any        the program has no `length`      length(Array), length(Tuple), length(String)
//! %6 = invoke Base.length(s)…      it has `length(MyList)`          nothing: its methods are all
//! ```
//!
//! The methods stand behind the program's own. Programs of a session get none: what one defines the others see.
//!
//! Cost: a walk over the constants of the program; the text is read when something of it is needed.

use std::collections::BTreeSet;

use brolga_ir::diag::SourceFile;
use brolga_ir::func::Place;
use brolga_ir::{Const, Module, Type, TypeKind, text};

const TEXT: &str = include_str!("prelude.jlir");

/// Adds the methods of the prelude that a module asks for.
pub(crate) fn complete(module: &mut Module) {
    let mut read: Option<Module> = None;
    let mut seen = 0;
    loop {
        let wanted = wanted(module, seen);
        seen = module.func_count();
        if wanted.is_empty() {
            return;
        }
        if read.is_none() {
            let Ok(source) = SourceFile::new("prelude", TEXT) else { return };
            read = Some(text::read(&source, &module.cx).0.module);
        }
        for (_, func) in read.iter().flat_map(|prelude| prelude.funcs()) {
            let callee = func.sig.params.first().map(|object| object.ty);
            if callee.is_some_and(|callee| wanted.contains(&callee)) {
                let mut func = func.clone();
                // There is no line of the program to show for it.
                let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
                insts.into_iter().for_each(|inst| func.set_place(inst, Place::default()));
                // Two methods with one signature the text has not.
                let _added = module.add_func(func);
            }
        }
    }
}

/// The functions without methods in a module that its functions from a number on name and that the prelude has.
fn wanted(module: &Module, from: usize) -> BTreeSet<Type> {
    let mut wanted = BTreeSet::new();
    for (_, func) in module.funcs().skip(from) {
        for inst in func.blocks().flat_map(|block| func.block_insts(block)) {
            for &value in func.args(inst) {
                let Some(&Const::Singleton(ty)) = func.as_const(value) else { continue };
                let TypeKind::Function(name) = *module.cx.types.kind(ty) else { continue };
                if module.methods(ty).is_empty() && has(module.cx.names.text(name)) {
                    wanted.insert(ty);
                }
            }
        }
    }
    wanted
}

/// Whether the text has a function.
fn has(name: &str) -> bool {
    TEXT.lines().any(|line| {
        let rest = line.strip_prefix("function ").and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with('('))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_ir::Context;
    use brolga_ir::verify::verify_module;

    #[test]
    fn the_text_is_right_and_calls_nothing_that_it_has_not() {
        let source = SourceFile::new("prelude", TEXT).unwrap();
        let (unit, findings) = text::read(&source, &Context::new());
        assert!(!findings.has_errors(), "{findings:?}");
        assert_eq!(verify_module(&unit.module), Ok(()));
        let missing = brolga_ir::verify::missing_callees(&unit.module, |name| {
            brolga_opt::lower::is_julia_function(name) || name == "pow"
        });
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_program_gets_what_it_names_and_has_not() {
        let add = |text: &str| {
            let source = SourceFile::new("program", text).unwrap();
            let (unit, findings) = text::read(&source, &Context::new());
            assert!(!findings.has_errors(), "{findings:?}");
            let mut module = unit.module;
            let own = module.func_count();
            complete(&mut module);
            let added = module.funcs().skip(own);
            added.map(|(_, func)| func.symbol(&module.cx)).collect::<Vec<_>>()
        };
        let call = "function f(x::Any)::Any\n1 ─ %1 = Base.isempty(x)::Any\n└──      return %1\nend\n";
        assert_eq!(add(call), ["isempty(Array)", "isempty(Tuple)", "isempty(String)"]);
        let own = "function isempty(x::Int64)::Bool\n1 ─      return false\nend\n";
        assert!(add(&format!("{own}{call}")).is_empty());
        // What a method of the prelude calls comes with it.
        let root = "function f(x::Int64)::Any\n1 ─ %1 = Base.sqrt(x)::Any\n└──      return %1\nend\n";
        assert_eq!(add(root), ["sqrt(Float64)", "sqrt(Float32)", "sqrt(Int64)"]);
        assert!(add("function f()::Nothing\n1 ─      return nothing\nend\n").is_empty());
    }
}
