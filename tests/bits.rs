//! Bits from outside that are not a value of their type are refused: a `Bool` is 0 or 1, a selector names a member of its union.

use std::cell::Cell;

use brolga::host::Word;
use brolga::{CallError, Engine, Options, Program};

const PROGRAM: &str = "\
struct Flags
    a::Bool
    b::UInt8
end
function one(x::Bool)::Int64
1 ─ %1 = Base.zext_int(Int64, x)::Int64
└──      return %1
end
function of_struct(x::Main.Flags)::Int64
1 ─ %1 = Base.getfield(x, :a)::Bool
│   %2 = Base.zext_int(Int64, %1)::Int64
└──      return %2
end
function of_tuple(n::Int64, x::Tuple{UInt8, Tuple{Bool, Bool}})::Int64
1 ─ %1 = Base.getfield(x, 2)::Tuple{Bool, Bool}
│   %2 = Base.getfield(%1, 2)::Bool
│   %3 = Base.zext_int(Int64, %2)::Int64
└──      return %3
end
function of_union(x::Union{Bool, Int64})::Int64
1 ─ %1 = (x isa Bool)::Bool
│   %2 = Base.zext_int(Int64, %1)::Int64
└──      return %2
end
function in_memory(x::NTuple{9, Bool})::Int64
1 ─ %1 = Base.getfield(x, 9)::Bool
│   %2 = Base.zext_int(Int64, %1)::Int64
└──      return %2
end
function byte(x::UInt8)::Int64
1 ─ %1 = Base.zext_int(Int64, x)::Int64
└──      return %1
end
";

#[test]
fn the_untyped_door_takes_values_only() {
    let engine = Engine::new(crate::doors::open(Options::new())).unwrap();
    let unit = engine.compile(&Program::read("bits.jlir", PROGRAM.as_bytes()).unwrap()).unwrap();
    let call = |name: &str, args: &[u128]| unit.untyped(name).unwrap().call(args);
    let refused = |name: &str, args: &[u128], at: usize, of: &str| match call(name, args) {
        Err(CallError::NoValue(refused)) => assert_eq!((refused.index, &*refused.ty), (at, of), "{name}"),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(call("one", &[1]).unwrap(), [1]);
    refused("one", &[255], 1, "Bool");
    refused("one", &[2], 1, "Bool");
    assert_eq!(call("of_struct", &[1, 255]).unwrap(), [1]);
    refused("of_struct", &[255, 1], 1, "Flags");
    assert_eq!(call("of_tuple", &[9, 255, 0, 1]).unwrap(), [1]);
    refused("of_tuple", &[9, 255, 0, 3], 2, "Tuple{UInt8, Tuple{Bool, Bool}}");
    // Members count in the order in which the union is printed.
    let (bool, int) = match unit.untyped("of_union").unwrap().call(&[255, 0]) {
        Err(_) => (0, 1),
        Ok(_) => (1, 0),
    };
    assert_eq!(call("of_union", &[1, bool]).unwrap(), [1]);
    assert_eq!(call("of_union", &[255, int]).unwrap(), [0]);
    refused("of_union", &[255, bool], 1, "Union{Bool, Int64}");
    refused("of_union", &[0, 2], 1, "Union{Bool, Int64}");
    assert_eq!(call("byte", &[255]).unwrap(), [255], "other types have a value for all bits");

    let memory = |byte: u8| {
        [Cell::new(u128::from_ne_bytes([byte.min(1); 16])), Cell::new(0)].map(|cell| {
            let mut bytes = cell.get().to_ne_bytes();
            bytes[8] = byte;
            Cell::new(u128::from_ne_bytes(bytes))
        })
    };
    let func = unit.untyped("in_memory").unwrap();
    assert_eq!(func.call_with(&[Word::Memory(&memory(1))]).unwrap(), [1]);
    let error = func.call_with(&[Word::Memory(&memory(255))]).unwrap_err();
    assert!(matches!(&error, CallError::NoValue(refused) if refused.index == 1), "{error}");
}

#[path = "support/doors.rs"]
mod doors;
