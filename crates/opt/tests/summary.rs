//! Findings about calls of functions, by their text.

use brolga_ir::diag::SourceFile;
use brolga_ir::effects::{ArgFlow, Effects, Regions, Summary};
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
function bump(r::Base.RefValue{Int64}, x::Int64)::Nothing
1 ─ %1 = Base.getfield(r, :x)::Int64
│   %2 = Base.add_int(%1, x)::Int64
│        Base.setfield!(r, :x, %2)::Int64
└──      return nothing
end
function scratch(x::Int64)::Int64
1 ─ %1 = %new(Base.RefValue{Int64}, x)::Base.RefValue{Int64}
│        invoke Main.bump(%1::Base.RefValue{Int64}, x::Int64)::Nothing
│   %3 = Base.getfield(%1, :x)::Int64
└──      return %3
end
function fresh(x::Int64)::Base.RefValue{Int64}
1 ─ %1 = %new(Base.RefValue{Int64}, x)::Base.RefValue{Int64}
│        Base.setfield!(%1, :x, 7)::Int64
└──      return %1
end
function same(r::Base.RefValue{Int64}, c::Bool, s::Base.RefValue{Int64})::Base.RefValue{Int64}
1 ─      goto #3 if not c
2 ─      goto #3
3 ┄ %3 = φ (#1 => r, #2 => s)::Base.RefValue{Int64}
└──      return %3
end
function through_same(r::Base.RefValue{Int64}, s::Base.RefValue{Int64})::Int64
1 ─ %1 = %new(Base.RefValue{Int64}, 1)::Base.RefValue{Int64}
│   %2 = invoke Main.same(%1::Base.RefValue{Int64}, true::Bool, s::Base.RefValue{Int64})::Base.RefValue{Int64}
│        Base.setfield!(%2, :x, 3)::Int64
└──      return 3
end
function keeps(r::Base.RefValue{Int64}, box::Base.RefValue{Any})::Nothing
1 ─      Base.setfield!(box, :x, r)::Any
└──      return nothing
end
function leaks(box::Base.RefValue{Any})::Nothing
1 ─ %1 = %new(Base.RefValue{Int64}, 1)::Base.RefValue{Int64}
│        invoke Main.keeps(%1::Base.RefValue{Int64}, box::Base.RefValue{Any})::Nothing
│        Base.setfield!(%1, :x, 2)::Int64
└──      return nothing
end
function inner(box::Base.RefValue{Any})::Nothing
1 ─ %1 = Base.getfield(box, :x)::Any
│   %2 = π (%1, Base.RefValue{Int64})
│        Base.setfield!(%2, :x, 2)::Int64
└──      return nothing
end
function walks(r::Base.RefValue{Int64}, n::Int64)::Nothing
1 ─ %1 = Base.slt_int(n, 1)::Bool
└──      goto #3 if not %1
2 ─      return nothing
3 ─ %4 = Base.sub_int(n, 1)::Int64
│        invoke Main.bump(r::Base.RefValue{Int64}, n::Int64)::Nothing
│        invoke Main.walks(r::Base.RefValue{Int64}, %4::Int64)::Nothing
└──      return nothing
end
function keeps_address(p::Ptr{Nothing}, to::Base.RefValue{Ptr{Nothing}})::Nothing
1 ─ %1 = Base.add_ptr(p, 0x0000000000000008)::Ptr{Nothing}
│        Base.setfield!(to, :x, %1)::Ptr{Nothing}
└──      return nothing
end
function reads_address(p::Ptr{Int64})::Int64
1 ─ %1 = Base.pointerref(p, 1, 8)::Int64
└──      return %1
end
function claims(x::Any)::Int64
1 ─ %1 = π (x, Int64)
└──      return %1
end
function claims_field(box::Base.RefValue{Any})::Int64
1 ─ %1 = Base.getfield(box, :x)::Int64
└──      return %1
end
function claims_what_it_tested(x::Any)::Int64
1 ─ %1 = (x isa Int64)::Bool
└──      goto #3 if not %1
2 ─ %3 = π (x, Int64)
└──      return %3
3 ─      return 0
end
function claims_the_rest(x::Union{Nothing, Int64, String})::Int64
1 ─ %1 = (x === nothing)::Bool
│   %2 = Core.typeof(x)::DataType
│   %3 = (%2 === String)::Bool
│   %4 = Base.or_int(%1, %3)::Bool
│   %5 = Base.not_int(%4)::Bool
└──      goto #3 if not %5
2 ─ %7 = π (x, Int64)
└──      return %7
3 ─      return 0
end
function claims_too_much(x::Union{Nothing, Int64, String})::Int64
1 ─ %1 = (x === nothing)::Bool
└──      goto #3 if not %1
2 ─      return 0
3 ─ %4 = π (x, Int64)
└──      return %4
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

fn summary(module: &Module, name: &str) -> Summary {
    let id = module.named(module.cx.names.intern(name)).next().unwrap();
    module[id].summary.unwrap()
}

fn of(module: &Module, name: &str) -> Effects {
    summary(module, name).effects
}

/// Which arguments after the function object are in a set.
fn which(of: fn(&ArgFlow, usize) -> bool, flow: ArgFlow) -> Vec<usize> {
    (1..4).filter(|&n| of(&flow, n)).collect()
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

#[test]
fn summaries_describe_the_flow_of_arguments() {
    let module = module();
    let flow = |name| summary(&module, name).args;
    for name in ["bump", "walks"] {
        let of = flow(name);
        assert!(!of.elsewhere, "{name}");
        let expected = (Vec::new(), vec![1]);
        assert_eq!((which(ArgFlow::captures, of), which(ArgFlow::writes, of)), expected, "{name}");
    }
    let same = flow("same");
    assert_eq!(which(ArgFlow::returns, same), [1, 3]);
    assert!(which(ArgFlow::captures, same).is_empty() && !same.elsewhere);
    let keeps = flow("keeps");
    assert_eq!((which(ArgFlow::captures, keeps), which(ArgFlow::writes, keeps)), (vec![1], vec![2]));
    assert!(!keeps.elsewhere);
    // The referent of an argument is another object.
    assert!(flow("inner").elsewhere);
    // The object that was made is reached through what a call returned, which may be the argument as well.
    assert!(flow("through_same").elsewhere || flow("through_same").writes(2));
}

#[test]
fn objects_of_the_functions_own_do_not_show() {
    let module = module();
    let scratch = summary(&module, "scratch");
    assert!(scratch.effects.is_removable() && scratch.effects.writes == Regions::NONE);
    assert_eq!((scratch.args.captured, scratch.args.written, scratch.args.elsewhere), (0, 0, false));
    let fresh = of(&module, "fresh");
    assert!(fresh.effect_free && fresh.writes == Regions::NONE && !fresh.consistent);
    // Held by the box, the object is seen by others.
    let leaks = summary(&module, "leaks");
    assert!(!leaks.effects.effect_free && leaks.args.elsewhere);
}

/// An address may become a reference again.
#[test]
fn addresses_are_kept_like_objects() {
    let module = module();
    let flow = |name| summary(&module, name).args;
    assert_eq!(which(ArgFlow::captures, flow("keeps_address")), [1]);
    assert!(which(ArgFlow::captures, flow("reads_address")).is_empty());
}

#[test]
fn claims_that_nothing_proves_may_throw() {
    let module = module();
    let throws = |name| !of(&module, name).nothrow;
    for name in ["claims", "claims_field", "claims_too_much"] {
        assert!(throws(name), "{name}");
    }
    for name in ["claims_what_it_tested", "claims_the_rest"] {
        assert!(!throws(name), "{name}");
    }
}
