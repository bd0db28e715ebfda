//! Every operation is classified, each door is found at its statement, and harmless statements are accepted.

use super::*;
use crate::diag::SourceFile;
use crate::text;
use crate::verify::verify_module;

/// The doors of a text, by name and line.
fn found(source: &str) -> Vec<(String, u32)> {
    let source = SourceFile::new("test.jlir", source).unwrap();
    let (unit, findings) = text::read(&source, &Context::new());
    assert!(!findings.has_errors(), "{findings:?}");
    assert_eq!(verify_module(&unit.module), Ok(()));
    let mut all = Vec::new();
    for (id, violations) in of(&unit.module, unit.module.func_count()) {
        let func = &unit.module[id];
        let span = crate::verify::source_span(func);
        for violation in violations {
            let line = source.position(violation.diagnostic(&unit.module.cx, func, &span).at.start).line;
            all.push((violation.code().to_owned(), line));
        }
    }
    all
}

#[test]
fn every_intrinsic_is_safe_or_on_the_list() {
    for &intrinsic in Intrinsic::ALL {
        let shape = intrinsic.shape();
        let touches = shape.reads_memory() || shape.writes_memory();
        match standing_of_intrinsic(intrinsic) {
            Standing::Safe => {
                assert!(!touches || shape == Shape::AtomicFence, "{intrinsic} touches memory");
                assert_eq!(intrinsic.refusal(), None);
            }
            Standing::Refused => assert!(intrinsic.refusal().is_some(), "{intrinsic}"),
            Standing::Door(door) => {
                assert!(door == Door::Pointer && touches, "{intrinsic}");
            }
            Standing::Asks(_) => panic!("{intrinsic}: its operands are not examined"),
        }
    }
}

#[test]
fn every_builtin_is_safe_or_on_the_list() {
    for &builtin in Builtin::ALL {
        let refused = standing_of_builtin(builtin) == Standing::Refused;
        assert_eq!(builtin.refusal().is_some(), refused, "{builtin}");
    }
}

#[test]
fn operations_of_low_ir_are_doors_and_those_of_both_levels_are_not() {
    let low = [
        Op::MemCopy,
        Op::Safepoint,
        Op::TypeOf,
        Op::WriteBarrier,
        Op::GcLoaded,
        Op::PointerFromObjref,
        Op::ThreadAddr,
        Op::LaneSelect,
        Op::Alloc(Type::ANY),
    ];
    for op in low {
        assert_eq!(op.level(), Some(Level::Low));
        assert_eq!(standing(op), Standing::Door(Door::LowIr), "{op:?}");
    }
    for op in [Op::Phi, Op::Copy, Op::Goto, Op::Return, Op::Pi, Op::Call, Op::Enter, Op::Leave] {
        assert_ne!(op.level(), Some(Level::Low));
        assert_eq!(standing(op), Standing::Safe, "{op:?}");
    }
}

#[test]
fn doors_have_names_reasons_and_obligations_of_their_own() {
    for (at, door) in Door::ALL.into_iter().enumerate() {
        assert_eq!(door.code(), format!("door-{}", door.name()));
        for other in &Door::ALL[..at] {
            assert_ne!(door.name(), other.name());
            assert_ne!(door.reason(), other.reason());
            assert_ne!(door.obligation(), other.obligation());
        }
    }
}

#[test]
fn reading_through_an_address_is_a_door_and_making_one_is_none() {
    let peek = "function peek(n::UInt64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Int64}, n)::Ptr{Int64}
│   %2 = Base.add_ptr(%1, n)::Ptr{Int64}
│   %3 = Base.pointerref(%2, 1, 1)::Int64
│   %4 = Base.pointerset(%2, %3, 1, 1)::Ptr{Int64}
│   %5 = Base.atomic_pointerref(%2, :monotonic)::Int64
└──      return %5
end
";
    let pointer = |line| ("door-pointer".to_owned(), line);
    assert_eq!(found(peek), [pointer(4), pointer(5), pointer(6)]);
}

#[test]
fn c_functions_are_doors_but_for_those_of_the_list_with_their_types() {
    let call = |name: &str, result: &str, params: &str, args: &str| {
        found(&format!(
            "function f(x::Float64, n::Int64)::{result}\n1 ─ %1 = $(Expr(:foreigncall, :(:{name}), {result}, svec({params}), 0, :(:ccall), {args}))::{result}\n└──      return %1\nend\n"
        ))
    };
    let door = [("door-foreign".to_owned(), 2)];
    assert!(call("sin", "Float64", "Float64", ":(x)").is_empty());
    assert!(call("pow", "Float64", "Float64, Float64", ":(x), :(x)").is_empty());
    assert_eq!(call("sin", "Float64", "Int64", ":(n)"), door);
    assert_eq!(call("sin", "Int64", "Float64", ":(x)"), door);
    assert_eq!(call("pow", "Float64", "Float64", ":(x)"), door);
    assert_eq!(call("labs", "Int64", "Int64", ":(n)"), door);
    assert_eq!(call("jl_value_ptr", "Any", "Ptr{Nothing}", "Ptr{Nothing} @0x0000000000000010"), door);
    assert!(call("jl_alloc_array_1d", "Vector{Int64}", "Any, Int64", "Vector{Int64}, :(n)").is_empty());
}

#[test]
fn an_address_for_c_is_a_door() {
    let text = "function f(n::Int64)::Int64
1 ─      return n
end
function g()::Ptr{Nothing}
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(f), Int64, svec(Int64), :(:ccall)))::Ptr{Nothing}
└──      return %1
end
";
    assert_eq!(found(text), [("door-callback".to_owned(), 5)]);
}

#[test]
fn a_new_array_is_tested_and_its_parts_are_doors() {
    let array = |ty: &str, length: &str, size: &str, parts: &str| {
        let text = format!(
            "function f(n::Int64, m::Int64)::{ty}
1 ─ %1 = Core.memorynew(Memory{{Int64}}, {length})::Memory{{Int64}}
│   %2 = Core.memoryrefnew(%1)::MemoryRef{{Int64}}
│   %3 = Core.tuple({size})::{parts}
│   %4 = %new({ty}, %2, %3)::{ty}
└──      return %4
end
"
        );
        assert!(found(&text).is_empty());
        let cx = crate::Context::new();
        let source = crate::diag::SourceFile::new("test", text).unwrap();
        let (unit, _) = crate::text::read(&source, &cx);
        let func = unit.module.funcs().next().unwrap().1;
        let new = func.blocks().flat_map(|block| func.block_insts(block));
        let new = new.into_iter().find(|&inst| matches!(func.op(inst), Op::New(_))).unwrap();
        crate::room::has_room(&cx.types, func, new)
    };
    let vector = |length, size| array("Vector{Int64}", length, size, "Tuple{Int64}");
    assert!(vector("n", "n") && vector("3", "3") && vector("3", "2") && vector("n", "0"));
    assert!(!vector("n", "m") && !vector("3", "4") && !vector("n", "3") && !vector("3", "-1"));
    let matrix = |length, size| array("Matrix{Int64}", length, size, "Tuple{Int64, Int64}");
    assert!(matrix("6", "2, 3") && !matrix("n", "0, m") && matrix("n", "0, 5"));
    assert!(!matrix("6", "-2, -3") && !matrix("n", "n, 1") && !matrix("6", "3, 3"));
    let set = "function f(a::Vector{Int64}, n::Int64)::Nothing
1 ─ %1 = Core.tuple(n)::Tuple{Int64}
│        Core.setfield!(a, :size, %1)::Tuple{Int64}
└──      return nothing
end
";
    assert!(found(set).is_empty());
}

#[test]
fn a_low_function_is_a_door_and_an_unchecked_access_is_none() {
    let low = "low function f(n::i64)::i64\n1 ─      return n\nend\n";
    assert_eq!(found(low), [("door-low-ir".to_owned(), 2)]);
    let unchecked = "function f(a::Vector{Int64}, n::Int64)::Int64
1 ─ %1 = Base.arrayref(false, a, n)::Int64
└──      return %1
end
";
    assert!(found(unchecked).is_empty());
}
