//! Hand-written Cranelift IR of a kernel, compiled by `cranelift-jit` at Cranelift's best setting: the code generator
//! alone, without an optimiser before it.

use cranelift_codegen::ir::{ExternalName, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module};
use std::path::Path;

use crate::{Contender, here};

/// The kernel, if there is a file for it.
pub(crate) fn contender(name: &str) -> Result<Option<Contender>, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("benches/clif/{name}.clif"));
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    let functions =
        cranelift_reader::parse_functions(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut flags = settings::builder();
    for (name, value) in
        [("opt_level", "speed"), ("preserve_frame_pointers", "true"), ("use_colocated_libcalls", "false")]
    {
        flags.set(name, value).map_err(|e| e.to_string())?;
    }
    let isa = cranelift_native::builder()
        .map_err(str::to_owned)?
        .finish(settings::Flags::new(flags))
        .map_err(|e| e.to_string())?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, cranelift_module::default_libcall_names()));
    let own = |f: &UserFuncName| match f {
        UserFuncName::Testcase(name) => name.to_string().trim_start_matches('%').to_owned(),
        UserFuncName::User(name) => name.to_string(),
    };
    let names: Vec<String> = functions.iter().map(|f| own(&f.name)).collect();
    let mut ids = Vec::new();
    for (func, name) in functions.iter().zip(&names) {
        let id = module.declare_function(name, Linkage::Export, &func.signature);
        ids.push(id.map_err(|e| e.to_string())?);
    }
    for (mut func, &id) in functions.into_iter().zip(&ids) {
        let imports: Vec<_> = func.dfg.ext_funcs.iter().map(|(r, data)| (r, data.clone())).collect();
        for (reference, data) in imports {
            let ExternalName::TestCase(callee) = &data.name else { continue };
            let callee = callee.to_string();
            let callee = callee.trim_start_matches('%');
            let target = match names.iter().position(|n| n == callee) {
                Some(own) => ids[own],
                None => {
                    let signature = func.dfg.signatures[data.signature].clone();
                    module.declare_function(callee, Linkage::Import, &signature).map_err(|e| e.to_string())?
                }
            };
            let declared = module.declare_func_in_func(target, &mut func);
            let name = func.dfg.ext_funcs[declared].name.clone();
            func.dfg.ext_funcs[reference].name = name;
        }
        let mut context = cranelift_codegen::Context::for_function(func);
        module.define_function(id, &mut context).map_err(|e| format!("{name}: {e:?}"))?;
    }
    module.finalize_definitions().map_err(|e| e.to_string())?;
    let run = names.iter().position(|n| n == "run").ok_or("no function `run`")?;
    let code = module.get_finalized_function(ids[run]);
    // SAFETY: `run` is declared as (i64, i64) -> f64 in the host's convention, and the module is never freed.
    let run = unsafe { std::mem::transmute::<*const u8, extern "C" fn(i64, i64) -> f64>(code) };
    Ok(Some(here("clif", move |a, b| {
        let _loaded = &module;
        Ok(run(a, b))
    })))
}
