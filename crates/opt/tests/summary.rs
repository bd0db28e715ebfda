//! What is found out about calls of functions, by their text.

use brolga_ir::diag::SourceFile;
use brolga_ir::effects::{Effects, Regions};
use brolga_ir::text::read;
use brolga_ir::{Context, Module};
use brolga_opt::summary::summarise_module;

const TEXT: &str = "
function pure(x::Int64)::Int64
1 ─ %1 = Base.mul_int(x, x)::Int64
└──      return %1
end
function through(x::Int64)::Int64
1 ─ %1 = invoke Main.pure(x::Int64)::Int64
└──      return %1
end
function throws(x::Int64)::Int64
1 ─ %1 = invoke Main.pure(x::Int64)::Int64
│   %2 = Base.checked_sdiv_int(1, %1)::Int64
└──      return %2
end
function even(n::Int64)::Bool
1 ─ %1 = Base.eq_int(n, 0)::Bool
└──      goto #3 if not %1
2 ─      return true
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.odd(%4::Int64)::Bool
└──      return %5
end
function odd(n::Int64)::Bool
1 ─ %1 = Base.eq_int(n, 0)::Bool
└──      goto #3 if not %1
2 ─      return false
3 ─ %4 = Base.sub_int(n, 1)::Int64
│   %5 = invoke Main.even(%4::Int64)::Bool
└──      return %5
end
function writes(r::Base.RefValue{Int64})::Int64
1 ─      Base.setfield!(r, :x, 1)::Int64
└──      return 1
end
function unknown(x::Int64)::Any
1 ─ %1 = dynamic Main.pure(x)::Any
└──      return %1
end
";

fn module() -> Module {
    let source = SourceFile::new("t", TEXT).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors());
    let mut module = unit.module;
    summarise_module(&mut module);
    module
}

fn of(module: &Module, name: &str) -> Effects {
    let id = module.named(module.cx.names.intern(name)).next().unwrap();
    module.func(id).summary.unwrap()
}

#[test]
fn summaries_say_what_bodies_do() {
    let module = module();
    let pure = Effects { may_safepoint: true, ..Effects::PURE };
    assert_eq!(of(&module, "pure"), pure);
    assert_eq!(of(&module, "through"), pure);
    let throws = of(&module, "throws");
    assert!(!throws.nothrow && throws.consistent && throws.terminates && throws.effect_free);
    for name in ["even", "odd"] {
        assert_eq!(of(&module, name), Effects { terminates: false, ..pure }, "{name}");
    }
    let writes = of(&module, "writes");
    assert!(writes.writes == Regions::FIELDS && !writes.effect_free && writes.nothrow);
    assert_eq!(of(&module, "unknown"), Effects::ANY);
}
