//! Exceptions as text (`brolga_ir::show`), from values of the interpreter.

use brolga_interp::{Interp, Options, SimMemory, Val};
use brolga_ir::show::AMBIGUOUS_WORLD;
use brolga_ir::{Context, Module, Type};

#[test]
fn exceptions_read_as_julia_prints_them() {
    let module = Module::new(Context::new());
    let cx = module.cx.clone();
    let mut interp = Interp::new(&module, Options::default(), Box::new(SimMemory::default()));
    let sym = |s: &str| Val::Symbol(cx.names.intern(s));
    let mut text = |s: &str| interp.string(s.as_bytes()).unwrap();
    let (no, none) = (text("no"), text(""));
    let array = interp.array(Type::INT64, &[2], &[Val::int64(1), Val::int64(2)]).unwrap();
    let matrix = interp.array(Type::INT64, &[0, 3], &[]).unwrap();
    let tuple = interp.tuple(&[Val::int64(1), Val::Type(Type::INT8), no.clone()]).unwrap();
    let pair = interp.tuple(&[Val::int64(3), Val::int64(4)]).unwrap();
    let ints = pair.clone();
    let inexact = interp.tuple(&[Val::Type(Type::INT64), Val::float64(1.5)]).unwrap();
    let f = Val::Singleton(cx.types.function(cx.names.intern("f")));
    let world = Val::bits(&cx.types, Type::UINT64, 0);
    let ambiguous = Val::bits(&cx.types, Type::UINT64, AMBIGUOUS_WORLD.into());
    let rows: [(&str, Vec<Val>, &str); 18] = [
        ("DivideError", vec![], "DivideError: integer division error"),
        ("OutOfMemoryError", vec![], "OutOfMemoryError()"),
        ("StackOverflowError", vec![], "StackOverflowError: the stack is used up"),
        ("ErrorException", vec![no.clone()], "no"),
        ("ArgumentError", vec![no.clone()], "ArgumentError: no"),
        ("KeyError", vec![sym("k")], "KeyError: key :k not found"),
        ("DomainError", vec![Val::float64(-1.0), no.clone()], "DomainError with -1.0:\nno"),
        ("BoundsError", vec![], "BoundsError"),
        (
            "BoundsError",
            vec![array.clone(), Val::int64(5)],
            "BoundsError: attempt to access 2-element Vector{Int64} at index [5]",
        ),
        (
            "BoundsError",
            vec![matrix, pair],
            "BoundsError: attempt to access 0×3 Matrix{Int64} at index [3, 4]",
        ),
        ("InexactError", vec![sym("trunc"), inexact.clone()], "InexactError: trunc(Int64, 1.5)"),
        ("InexactError", vec![sym("Int64"), inexact], "InexactError: Int64(1.5)"),
        ("UndefVarError", vec![sym("x")], "UndefVarError: `x` not defined"),
        (
            "TypeError",
            vec![sym("typeassert"), none.clone(), Val::Type(Type::INT64), Val::float64(1.0)],
            "TypeError: in typeassert, expected Int64, got a value of type Float64",
        ),
        (
            "TypeError",
            vec![sym("if"), none, Val::Type(Type::BOOL), Val::int64(1)],
            "TypeError: non-boolean (Int64) used in boolean context",
        ),
        (
            "MethodError",
            vec![f.clone(), tuple, world],
            "MethodError: no method matching f(::Int64, ::Type{Int8}, ::String)",
        ),
        ("MethodError", vec![f, ints, ambiguous], "MethodError: f(::Int64, ::Int64) is ambiguous"),
        ("FieldError", vec![Val::Type(Type::BOX), sym("x")], "FieldError: type Core.Box has no field `x`"),
    ];
    for (name, fields, expected) in rows {
        let decl = cx.types.find_decl(cx.names.intern(name)).unwrap();
        let ty = cx.types.nominal(decl, &[]).unwrap();
        let exception = Val::aggregate(ty, fields.into_iter().map(Some).collect());
        assert_eq!(interp.show_error(&exception).unwrap(), expected);
    }
    assert_eq!(interp.show_error(&Val::int64(7)).unwrap(), "7");
    assert_eq!(interp.show_error(&array).unwrap(), "[1, 2]");
}
